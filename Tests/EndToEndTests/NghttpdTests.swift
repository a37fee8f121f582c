import Foundation
import Glibc
import Testing

/// nghttpd answers a POST to a file of its folder with 200, and with 404 and an HTML page where there is none.
@Suite("nghttpd as the peer")
struct NghttpdTests {
  @Test("a push to a path that it has is accepted, one that it has not is rejected, on one connection")
  func twoAnswers() async throws {
    try await scenario { s in
      let port = try await start(s, streams: 100)
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      let good = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      let bad = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await drain(s, port)
      #expect(try s.backend.outcomes(good) == ["accepted"])
      let rejected = try #require(try s.backend.attempts(bad).first)
      #expect(rejected["outcome"] == "rejected")
      #expect(rejected["status"] == 404)
      #expect(rejected["reason"] == .null)
      #expect(try s.backend.tokens().count == 2)
      let log = try String(contentsOfFile: s.path("nghttpd.out"), encoding: .utf8)
      #expect(log.contains(":path: /3/device/\(token(1))"))
      #expect(log.contains("apns-push-type: alert"))
      // The first connection was only the look whether it listens.
      #expect(!log.contains("[id=3]"))
    }
  }

  @Test("a fan-out keeps within one stream at a time")
  func oneStream() async throws {
    try await scenario { s in
      let port = try await start(s, streams: 1)
      for number in 1...50 { try s.backend.register("phone-\(number)", token: token(number)) }
      let id = try s.backend.nudge()
      try await drain(s, port)
      let statuses = try s.backend.attempts(id).compactMap { $0["status"].integer }
      #expect(statuses.count == 50)
      #expect(statuses.filter { $0 == 200 }.count == 1)
      #expect(statuses.filter { $0 == 404 }.count == 49)
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'unsent'") == 0)
    }
  }

  /// Starts nghttpd on a free port, with a file for the path of `token(1)`.
  private func start(_ s: Scenario, streams: Int) async throws -> Int {
    let folder = s.path("www/3/device")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try "".write(toFile: "\(folder)/\(token(1))", atomically: true, encoding: .utf8)
    // nghttpd does not tell a port that the system chose, so one is chosen here; it may be taken meanwhile.
    for _ in 1...5 {
      let port = try freePort()
      let server = try s.run(
        "nghttpd",
        [
          try Paths.program("nghttpd"), "-v", "-a", "127.0.0.1", "-d", s.path("www"), "-m", "\(streams)",
          "\(port)",
          s.credentials.serverKey, s.credentials.certificate,
        ])
      try await eventually("nghttpd listens or ends") { !server.isRunning || accepts(port) }
      if server.isRunning { return port }
    }
    throw Failure("nghttpd finds no port")
  }

  private func drain(_ s: Scenario, _ port: Int) async throws {
    let result = try await s.nudged([
      "run", "--drain", "--database", s.database, "--ca-file", s.credentials.authority, "--team-id",
      Credentials.teamID, "--production-url", "https://127.0.0.1:\(port)", "--sandbox-url",
      "https://127.0.0.1:1",
      "--production-key-file", s.credentials.providerKey,
    ])
    #expect(result.exit == .code(0), "\(result.errors)")
  }

  private func freePort() throws -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = local(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
      }
    }
    guard status == 0 else { throw Failure("no free port: \(errno)") }
    return Int(UInt16(bigEndian: address.sin_port))
  }

  private func accepts(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = local(port: UInt16(port))
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  private func local(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }
}
