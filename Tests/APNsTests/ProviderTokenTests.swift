import Foundation
import OpenSSL
import Testing

@testable import APNs

@Suite struct ProviderTokenTests {
  private static let wall: Int64 = 1_790_000_000_500
  private let start = ContinuousClock.now
  private let folder: URL
  private let keyPEM: [UInt8]

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "provider-token-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    keyPEM = Array(
      try Tool.run(
        "/usr/bin/openssl", ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]))
  }

  private func token() throws -> ProviderToken {
    ProviderToken(
      key: try SigningKey(pem: keyPEM), identity: try KeyIdentity(keyID: "ABC123DEFG", teamID: "TEAM000001"))
  }

  private func minutes(_ count: Int) -> ContinuousClock.Instant { start + .seconds(60 * count) }

  private func wall(_ count: Int) -> Int64 { ProviderTokenTests.wall + Int64(count) * 60_000 }

  /// The generation in use when both clocks have moved by so many minutes.
  private func generation(_ token: ProviderToken, at count: Int) throws -> Int {
    try token.current(wallMilliseconds: wall(count), now: minutes(count)).generation
  }

  @Test("a thousand tokens are verified by another library, with 64 bytes of signature, unpadded")
  func mints() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let token = try token()
    var lines = ""
    for index in 0..<1_000 {
      let current = try token.current(
        wallMilliseconds: ProviderTokenTests.wall + Int64(index) * 1_000, now: minutes(index * 50))
      #expect(current.generation == index + 1)
      let value = String(decoding: current.headerValue, as: UTF8.self)
      #expect(value.hasPrefix("bearer "))
      #expect(!value.contains("="))
      lines += value.dropFirst("bearer ".count) + "\n"
    }
    let key = folder.appending(path: "key.pem")
    let list = folder.appending(path: "tokens")
    try Data(keyPEM).write(to: key)
    try Data(lines.utf8).write(to: list)
    let script = """
      import base64, json, sys
      from cryptography.hazmat.primitives import hashes, serialization
      from cryptography.hazmat.primitives.asymmetric import ec, utils
      public = serialization.load_pem_private_key(open(sys.argv[1], 'rb').read(), None).public_key()
      unpack = lambda part: base64.b64decode(part + '=' * (-len(part) % 4), b'-_', validate=True)
      seconds = int(sys.argv[3])
      for index, line in enumerate(open(sys.argv[2]).read().split()):
          head, claims, signature = line.split('.')
          raw = unpack(signature)
          assert len(raw) == 64, len(raw)
          r, s = int.from_bytes(raw[:32], 'big'), int.from_bytes(raw[32:], 'big')
          public.verify(utils.encode_dss_signature(r, s), (head + '.' + claims).encode(), ec.ECDSA(hashes.SHA256()))
          assert json.loads(unpack(head)) == {'alg': 'ES256', 'kid': 'ABC123DEFG'}
          assert json.loads(unpack(claims)) == {'iss': 'TEAM000001', 'iat': seconds + index}
      print('verified', index + 1)
      """
    let output = try Tool.run(
      "/usr/bin/python3", ["-c", script, key.path, list.path, "\(ProviderTokenTests.wall / 1000)"])
    #expect(String(decoding: output, as: UTF8.self) == "verified 1000\n")
  }

  @Test("age counts from the token's own mint: +45 and +56 minutes the same, +106 a new one")
  func age() throws {
    let token = try token()
    let first = try token.current(wallMilliseconds: wall(45), now: minutes(45))
    let second = try token.current(wallMilliseconds: wall(56), now: minutes(56))
    let third = try token.current(wallMilliseconds: wall(106), now: minutes(106))
    #expect(first.headerValue == second.headerValue)
    #expect(first.generation == second.generation)
    #expect(third.generation == 2)
    #expect(third.headerValue != first.headerValue)
  }

  @Test("it is renewed at 50 minutes of monotonic age, and not before, though the wall clock stands")
  func monotonicAge() throws {
    let token = try token()
    func generation(_ now: ContinuousClock.Instant) throws -> Int {
      try token.current(wallMilliseconds: ProviderTokenTests.wall, now: now).generation
    }
    #expect(try generation(start) == 1)
    #expect(try generation(minutes(50) - .milliseconds(1)) == 1)
    #expect(try generation(minutes(50)) == 2)
    #expect(try generation(minutes(99)) == 2)
    #expect(try generation(minutes(100)) == 3)
  }

  @Test("a wall clock set back makes it come from the future: more than 60 s is stale")
  func clockSetBack() throws {
    let token = try token()
    func generation(seconds: Int64) throws -> Int {
      try token.current(wallMilliseconds: ProviderTokenTests.wall + seconds * 1_000, now: start).generation
    }
    #expect(try generation(seconds: 0) == 1)
    #expect(try generation(seconds: -60) == 1)
    #expect(try generation(seconds: -61) == 2)
    #expect(try generation(seconds: -61) == 2)
    #expect(try generation(seconds: -3_600) == 3)
  }

  @Test("a wall clock set forward makes it look old: renewed once the last mint is 20 minutes ago")
  func clockSetForward() throws {
    let token = try token()
    func generation(wall: Int, at: Int) throws -> Int {
      try token.current(wallMilliseconds: self.wall(wall), now: minutes(at)).generation
    }
    #expect(try generation(wall: 0, at: 0) == 1)
    #expect(try generation(wall: 24 * 60, at: 1) == 1)
    #expect(try generation(wall: 24 * 60 + 18, at: 19) == 1)
    #expect(try generation(wall: 24 * 60 + 19, at: 20) == 2)
    #expect(try generation(wall: 24 * 60 + 60, at: 61) == 2)
    let young = try self.token()
    _ = try young.current(wallMilliseconds: wall(0), now: start)
    #expect(try young.current(wallMilliseconds: wall(55), now: minutes(30)).generation == 1)
    #expect(try young.current(wallMilliseconds: wall(55) + 1_000, now: minutes(30)).generation == 2)
  }

  @Test("ExpiredProviderToken forces one mint in 20 minutes, and old connections are retired")
  func expired() throws {
    let token = try token()
    #expect(!token.expired(generation: 1, now: start), "nothing has been minted")
    #expect(try generation(token, at: 0) == 1)
    #expect(token.expired(generation: 1, now: minutes(1)))
    #expect(token.expired(generation: 1, now: minutes(1)), "another answer in flight says the same")
    #expect(try generation(token, at: 1) == 2)
    #expect(token.expired(generation: 1, now: minutes(2)), "a late answer about the old one")
    #expect(try generation(token, at: 2) == 2)
    #expect(!token.expired(generation: 2, now: minutes(3)), "the new one is called expired too")
    #expect(try generation(token, at: 3) == 2)
    #expect(!token.expired(generation: 2, now: minutes(21) - .milliseconds(1)))
    #expect(token.expired(generation: 2, now: minutes(21)))
    #expect(try generation(token, at: 21) == 3)
  }

  @Test("a new key's token goes on counting, and what is said about the old key's forces no mint")
  func successor() throws {
    let old = try token()
    #expect(try generation(old, at: 0) == 1)
    let new = ProviderToken(
      key: try SigningKey(pem: keyPEM), identity: try KeyIdentity(keyID: "ZYX987WVUT", teamID: "TEAM000001"),
      after: old)
    #expect(new.expired(generation: 1, now: minutes(1)), "a late answer, before the first mint")
    #expect(try generation(new, at: 1) == 2)
    #expect(new.expired(generation: 1, now: minutes(2)), "a late answer")
    #expect(try generation(new, at: 2) == 2)
    #expect(new.expired(generation: 2, now: minutes(3)), "an answer about this one")
    #expect(try generation(new, at: 3) == 3)
  }

  @Test("ten refusals within a minute make two tokens at most")
  func alwaysRefused() throws {
    let token = try token()
    var values: Set<[UInt8]> = []
    for second in 0..<60 {
      let now = start + .seconds(second)
      let current = try token.current(
        wallMilliseconds: ProviderTokenTests.wall + Int64(second) * 1_000, now: now)
      values.insert(current.headerValue)
      _ = token.expired(generation: current.generation, now: now)
    }
    #expect(values.count == 2)
  }
}

@Suite struct KeyIdentityTests {
  @Test("key and team id are ten characters of A-Z and 0-9, and the fault names which")
  func forms() throws {
    _ = try KeyIdentity(keyID: "ABC123DEFG", teamID: "0123456789")
    for bad in ["", "ABC123DEF", "ABC123DEFGH", "abc123defg", "ABC123DEF-", "ABC123DEFÉ", "ABC12\"DEFG"] {
      #expect {
        try KeyIdentity(keyID: bad, teamID: "0123456789")
      } throws: {
        ($0 as? KeyIdentity.Fault)?.words.hasPrefix("key id ") == true
      }
      #expect {
        try KeyIdentity(keyID: "ABC123DEFG", teamID: bad)
      } throws: {
        ($0 as? KeyIdentity.Fault)?.words.hasPrefix("team id ") == true
      }
    }
  }

  @Test("the key id is in the name that Apple gives the file")
  func fileName() {
    #expect(KeyIdentity.keyID(fromPath: "AuthKey_ABC123DEFG.p8") == "ABC123DEFG")
    #expect(KeyIdentity.keyID(fromPath: "/etc/nudged/AuthKey_ABC123DEFG.p8") == "ABC123DEFG")
    for path in [
      "", "/", "key.p8", "AuthKey_.p8", "AuthKey_ABC123DEF.p8", "AuthKey_ABC123DEFG.pem",
      "authkey_ABC123DEFG.p8",
      "AuthKey_ABC123DEFG.p8/key",
    ] {
      #expect(KeyIdentity.keyID(fromPath: path) == nil)
    }
  }
}

@Suite struct Base64URLTests {
  @Test("bytes of every length come back from Foundation")
  func everyLength() {
    var generator = SeededGenerator(seed: 5)
    for length in 0..<200 {
      let source = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
      var output: [UInt8] = []
      Base64URL.append(source, to: &output)
      let expected = Data(source).base64EncodedString()
        .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
        .replacingOccurrences(of: "=", with: "")
      #expect(String(decoding: output, as: UTF8.self) == expected)
    }
  }
}

/// Runs a program and returns what it prints.
enum Tool {
  struct Failure: Error {
    let status: Int32
  }

  static func run(_ path: String, _ arguments: [String]) throws -> Data {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
    return data
  }
}
