import Foundation
import Glibc
import Testing

@Suite("Key reload")
struct KeyReloadTests {
  /// Requires that `request` was signed with the key whose public half is in `file`, in the word of another library;
  /// returns its key id.
  @discardableResult
  private func verify(_ request: TestPeer.Event, by file: String, in s: Scenario) throws -> String {
    struct Token: Decodable { let header: [String: String] }
    let bearer = try #require(request.header("authorization")?.dropFirst("bearer ".count))
    let result = try runToEnd(
      [Paths.python, "\(Paths.peers)/verify_token.py", file], folder: s.folder, input: String(bearer))
    #expect(result.exit == .code(0), "\(result.output)\(result.errors)")
    return try JSONDecoder().decode(Token.self, from: Data(result.output.utf8)).header["kid"] ?? "none"
  }

  /// A worker whose `--key-file` is `file`, with other settings as ever.
  private func worker(
    _ s: Scenario, _ peer: TestPeer, key file: String, _ more: [String] = [],
    environment: [String: String] = [:]
  ) throws -> Child {
    try s.start(
      [
        "run", "--database", s.database, "--ca-file", s.credentials.authority, "--team-id",
        Credentials.teamID,
        "--production-url", peer.url, "--sandbox-url", "https://127.0.0.1:1", "--log-level", "debug",
        "--production-key-file", file,
      ] + more, environment: environment)
  }

  private func copy(_ from: String, to: String) throws {
    // Written beside and renamed, as deployment tools do.
    try FileManager.default.copyItem(atPath: from, toPath: to + ".new")
    guard rename(to + ".new", to) == 0 else { throw Failure("rename: \(errno)") }
  }

  private func write(_ from: String, over path: String) throws {
    let handle = try #require(FileHandle(forWritingAtPath: path))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: try #require(FileManager.default.contents(atPath: from)))
    try handle.close()
  }

  private func link(_ target: String, at path: String) throws {
    guard symlink(target, path + ".new") == 0, rename(path + ".new", path) == 0 else {
      throw Failure("link: \(errno)")
    }
  }

  private func send(_ s: Scenario) async throws {
    try await s.backend.settled(try s.backend.nudge())
  }

  @Test(
    "a file that is renamed over the old one, written over, or reread at SIGHUP signs the next request",
    arguments: ["rename", "write", "signal"])
  func replaced(how: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let file = s.path("key.p8")
      try copy(s.credentials.providerKey, to: file)
      let worker = try worker(s, peer, key: file, ["--production-key-id", Credentials.keyID])
      try await send(s)
      switch how {
      case "write":
        try write(s.credentials.secondProviderKey, over: file)
      case "signal":
        // Through another name of the file, which no watch of ours sees.
        let elsewhere = s.path("elsewhere")
        try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: false)
        try FileManager.default.linkItem(atPath: file, toPath: "\(elsewhere)/key")
        try await send(s)
        #expect(!worker.errors.contains("signing key"))
        try write(s.credentials.secondProviderKey, over: "\(elsewhere)/key")
        worker.signal(SIGHUP)
      default: try copy(s.credentials.secondProviderKey, to: file)
      }
      try await eventually("the new key", state: { worker.errors }) {
        worker.errors.contains("new signing key in use")
      }
      try await send(s)
      let requests = try peer.requests()
      let last = try #require(requests.last)
      try verify(requests[0], by: s.credentials.providerPublicKey, in: s)
      try verify(last, by: s.credentials.secondProviderPublicKey, in: s)
      // A connection belongs to one key.
      #expect(requests[0].connection != last.connection)
      #expect(worker.errors.components(separatedBy: "new signing key").count == 2, "\(worker.errors)")
    }
  }

  @Test("a link that is set to another key changes the key id with it, through a link to a folder as well")
  func links() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let files = FileManager.default
      for (folder, key) in [("1", s.credentials.providerKey), ("2", s.credentials.secondProviderKey)] {
        try files.createDirectory(atPath: s.path("release-\(folder)"), withIntermediateDirectories: true)
        try files.copyItem(
          atPath: key, toPath: s.path("release-\(folder)/\(URL(filePath: key).lastPathComponent)"))
        try link(URL(filePath: key).lastPathComponent, at: s.path("release-\(folder)/key.p8"))
      }
      try link("release-1", at: s.path("current"))
      let worker = try worker(s, peer, key: s.path("current/key.p8"))
      try await send(s)
      try link("release-2", at: s.path("current"))
      try await eventually("the new key", state: { worker.errors }) {
        worker.errors.contains("new signing key in use")
      }
      try await send(s)
      let requests = try peer.requests()
      #expect(try verify(requests[0], by: s.credentials.providerPublicKey, in: s) == Credentials.keyID)
      #expect(
        try verify(requests[1], by: s.credentials.secondProviderPublicKey, in: s) == Credentials.secondKeyID)
      // And back, within the new folder.
      try files.copyItem(atPath: s.credentials.providerKey, toPath: s.path("AuthKey_\(Credentials.keyID).p8"))
      try link("../AuthKey_\(Credentials.keyID).p8", at: s.path("release-2/key.p8"))
      try await eventually("the old key again", state: { worker.errors }) {
        worker.errors.components(separatedBy: "new signing key in use").count == 3
      }
      try await send(s)
      let last = try #require(try peer.requests().last)
      #expect(try verify(last, by: s.credentials.providerPublicKey, in: s) == Credentials.keyID)
    }
  }

  @Test("what is in flight when SIGHUP comes is answered, and only the next request has the new key")
  func inFlight() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let file = s.path("key.p8")
      try copy(s.credentials.providerKey, to: file)
      let worker = try worker(s, peer, key: file, ["--production-key-id", Credentials.keyID])
      try await send(s)
      try peer.script(PeerScript(rules: [Rule(connection: 1, [.hold(s.path("go")), .answer()])]))
      let held = try (1...20).map { try s.backend.nudge(["title": .text("held \($0)")]) }
      try await peer.waitForRequests(21)
      try copy(s.credentials.secondProviderKey, to: file)
      worker.signal(SIGHUP)
      try await eventually("the new key", state: { worker.errors }) {
        worker.errors.contains("new signing key in use")
      }
      try await send(s)
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome is null") == 20)
      try s.release("go")
      for id in held { try await s.backend.settled(id) }
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 22)
      let requests = try peer.requests()
      #expect(requests.count == 22)
      try verify(requests[20], by: s.credentials.providerPublicKey, in: s)
      try verify(requests[21], by: s.credentials.secondProviderPublicKey, in: s)
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
    }
  }

  @Test("a bad new key keeps the old one and is said once, with file and fault; a good one after it is taken")
  func bad() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let file = s.path("key.p8")
      try copy(s.credentials.providerKey, to: file)
      let manager = try ServiceManager(s.path("notify"))
      let worker = try worker(
        s, peer, key: file, ["--production-key-id", Credentials.keyID],
        environment: ["NOTIFY_SOCKET": manager.name])
      try await send(s)
      let rsa = s.path("rsa.pem")
      _ = try runToEnd([try Paths.program("openssl"), "genrsa", "-out", rsa, "2048"], folder: s.folder)
      let faults: [(what: String, make: () throws -> Void)] = [
        ("P-256", { try copy(rsa, to: file) }),
        ("is empty", { try "".write(toFile: file, atomically: true, encoding: .utf8) }),
        ("No such file", { try FileManager.default.removeItem(atPath: file) }),
        (
          "is a directory",
          { try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false) }
        ),
      ]
      for (count, fault) in faults.enumerated() {
        try fault.make()
        try await eventually("\(fault.what) is said", state: { worker.errors }) {
          errors(worker).count == count + 1
        }
        let line = try #require(errors(worker).last)
        #expect(line.contains(fault.what) && line.contains(file), "\(line)")
        try await send(s)
      }
      // The same again says nothing; whoever asks is told.
      let reloads = manager.values("MONOTONIC_USEC").count
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: file)
      try await eventually("it has looked") { manager.values("MONOTONIC_USEC").count > reloads }
      try await send(s)
      #expect(errors(worker).count == faults.count)
      worker.signal(SIGHUP)
      try await eventually("the answer", state: { worker.errors }) {
        errors(worker).count == faults.count + 1
      }
      for request in try peer.requests() { try verify(request, by: s.credentials.providerPublicKey, in: s) }
      try FileManager.default.removeItem(atPath: file)
      try copy(s.credentials.secondProviderKey, to: file)
      try await eventually("the good key", state: { worker.errors }) {
        worker.errors.contains("new signing key in use")
      }
      try await send(s)
      try verify(try #require(try peer.requests().last), by: s.credentials.secondProviderPublicKey, in: s)
      for key in [s.credentials.providerKey, s.credentials.secondProviderKey, rsa] {
        for line in try String(contentsOfFile: key, encoding: .utf8).split(separator: "\n")
        where line.count == 64 {
          #expect(!worker.errors.contains(line))
        }
      }
    }
  }

  private func errors(_ worker: Child) -> [Substring] {
    worker.errors.split(separator: "\n").filter { $0.contains("new signing key cannot be used") }
  }

  @Test(
    "a key that its file's name contradicts is not taken, nor one without an id", arguments: [true, false])
  func contradiction(isIDGiven: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let file = s.path("key.p8")
      try link(s.credentials.providerKey, at: file)
      let worker = try worker(
        s, peer, key: file, isIDGiven ? ["--production-key-id", Credentials.keyID] : [])
      try await send(s)
      if isIDGiven {
        try link(s.credentials.secondProviderKey, at: file)
      } else {
        try copy(s.credentials.secondProviderKey, to: file)
      }
      try await eventually("it is said", state: { worker.errors }) { errors(worker).count == 1 }
      #expect(
        errors(worker)[0].contains(isIDGiven ? "--production-key-id says \(Credentials.keyID)" : "--key-id"))
      try await send(s)
      try verify(try peer.requests()[1], by: s.credentials.providerPublicKey, in: s)
    }
  }

  @Test("the same content again is no new key, and its provider token stays")
  func same() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let file = s.path("key.p8")
      try copy(s.credentials.providerKey, to: file)
      let worker = try worker(s, peer, key: file, ["--production-key-id", Credentials.keyID])
      try await send(s)
      try copy(s.credentials.providerKey, to: file)
      worker.signal(SIGHUP)
      try await eventually("the answer", state: { worker.errors }) {
        worker.errors.contains("signing key is the same as before")
      }
      try await send(s)
      let requests = try peer.requests()
      #expect(requests[0].header("authorization") == requests[1].header("authorization"))
      #expect(requests[0].connection == requests[1].connection)
    }
  }

  @Test("a pause for refused credentials ends with a new key")
  func pause() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(times: 3, [.answer(403, reason: "InvalidProviderToken")])]))
      try s.backend.register("phone-1", token: token(1))
      let file = s.path("key.p8")
      try copy(s.credentials.providerKey, to: file)
      let worker = try worker(s, peer, key: file, ["--production-key-id", Credentials.keyID])
      // Three pauses in a row: 5, 10 and 20 s. The last would outlast the test's patience.
      for number in 1...3 {
        try s.backend.nudge()
        try await eventually("refusal \(number)", within: .seconds(30), state: { worker.errors }) {
          worker.errors.components(separatedBy: "refuses our credentials").count == number + 1
        }
      }
      let id = try s.backend.nudge()
      let start = ContinuousClock.now
      try copy(s.credentials.secondProviderKey, to: file)
      try await s.backend.settled(id, within: .seconds(18))
      #expect(ContinuousClock.now - start < .seconds(18))
      #expect(try s.backend.outcomes(id) == ["accepted"])
      try verify(try #require(try peer.requests().last), by: s.credentials.secondProviderPublicKey, in: s)
    }
  }

  @Test("around a reload the service manager is told, with its clock")
  func notified() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let worker = try s.start(
        ["run"] + s.settings(production: try await s.peer()), environment: ["NOTIFY_SOCKET": manager.name])
      try await eventually("it is ready") { manager.states == ["READY=1"] }
      worker.signal(SIGHUP)
      try await eventually("it has reloaded") { manager.states == ["READY=1", "RELOADING=1", "READY=1"] }
      let told = try #require(manager.values("MONOTONIC_USEC").first.flatMap(Int64.init))
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      let age = Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000 - told
      #expect((0..<30_000_000).contains(age))
    }
  }

  @Test("SIGHUP while the worker starts, at the moment when it reads its key, is no end, and is heard")
  func early() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let strace = [
        try Paths.program("strace"), "-D", "-f", "-qq", "-o", "/dev/null", "-P", s.credentials.providerKey,
        "-e", "trace=openat", "-e", "inject=openat:signal=SIGHUP:when=1",
      ]
      let worker = try s.run(
        "worker", strace + [try Paths.nudged(), "run"] + s.settings(production: peer))
      try await eventually("the answer", state: { worker.errors }) {
        worker.errors.contains("signing key is the same as before")
      }
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
    }
  }
}
