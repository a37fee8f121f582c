import Foundation
import Glibc
import Testing

@Suite("Doctor")
struct DoctorTests {
  private struct Line: Decodable {
    let check: String
    let status: String
    let detail: String
    let fix: String?
  }

  /// What `nudged doctor --json` says with a worker's settings.
  private func doctor(
    _ s: Scenario, _ settings: [String], exit expected: Int32, within limit: Duration = .seconds(30),
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> [String: Line] {
    let result = try await s.nudged(["doctor", "--json"] + known(settings), within: limit)
    #expect(
      result.exit == .code(expected), "\(result.exit) \(result.output)\(result.errors)",
      sourceLocation: sourceLocation)
    let lines = try result.output.split(separator: "\n").map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
    return Dictionary(lines.map { ($0.check, $0) }) { first, _ in first }
  }

  /// Without what only the worker takes.
  private func known(_ settings: [String]) -> [String] {
    let level = settings.firstIndex(of: "--log-level") ?? settings.endIndex
    return Array(settings[..<level] + settings[level...].dropFirst(2))
  }

  private static let steps = ["dns", "tcp", "tls", "alpn"]

  @Test("all is well with both hosts and a worker, no request is sent, and no file is left")
  func well() async throws {
    try await scenario { s in
      let (production, sandbox) = (try await s.peer(), try await s.peer())
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: production, sandbox: sandbox)
      let id = try s.backend.nudge()
      try await s.backend.settled(id)
      let files = try FileManager.default.contentsOfDirectory(atPath: s.folder).filter {
        $0.hasPrefix("app.db")
      }
      let lines = try await doctor(s, s.settings(production: production, sandbox: sandbox), exit: 0)
      for line in lines.values { #expect(line.status == "ok", "\(line)") }
      for environment in ["production", "sandbox"] {
        for step in Self.steps { #expect(lines["\(environment) \(step)"] != nil, "\(step)") }
      }
      #expect(lines["production tcp"]?.detail.hasPrefix("127.0.0.1:\(production.port), ") == true)
      #expect(lines["worker"]?.detail == "runs with pid \(worker.pid)")
      #expect(lines["production answers"]?.detail.hasPrefix("last accepted ") == true)
      #expect(try production.requests().count == 1)
      #expect(try sandbox.requests().isEmpty)
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: s.folder).filter { $0.hasPrefix("app.db") }
          .sorted()
          == files.sorted())
      // It took no lock away: the worker works on.
      try await s.backend.settled(try s.backend.nudge())
    }
  }

  @Test("the simulator is well, by its own settings, and the table is for people")
  func simulator() async throws {
    let products = URL(filePath: try Paths.nudged()).deletingLastPathComponent().path
    try await scenario { s in
      let simulator = try s.run("simulator", ["\(products)/apns-simulator", "--directory", s.path("sim")])
      try await eventually("the simulator listens", state: { simulator.errors }) {
        FileManager.default.fileExists(atPath: s.path("sim/settings.env"))
      }
      let client = try s.run(
        "doctor",
        [
          "/bin/sh", "-c",
          "set -a; . '\(s.path("sim/settings.env"))'; '\(try Paths.nudged())' doctor --database '\(s.database)'",
        ])
      #expect(try await client.wait() == .code(0), "\(client.output)\(client.errors)")
      for step in Self.steps { #expect(client.output.contains("✓ sandbox \(step)"), "\(client.output)") }
      #expect(client.output.contains("→ nudged register "))
      #expect(client.output.hasSuffix("\nno fault, 2 warnings\n"), "\(client.output)")
      #expect(!client.output.contains("\u{1b}"))
    }
  }

  @Test(
    "a peer that TLS does not vouch for: the step, the reason and what to do; later steps are not claimed",
    arguments: TLSTests.Fault.allCases)
  func tls(_ fault: TLSTests.Fault) async throws {
    try await scenario { s in
      let (certificate, step, reason, fix) =
        switch fault {
        case .unknownAuthority: (s.credentials.untrusted, "tls", "self-signed", "ca-certificates")
        case .wrongName: (s.credentials.wrongName, "tls", "mismatch", "--production-url")
        case .expired: (s.credentials.expired, "tls", "expired", "timedatectl")
        case .noALPN: (s.credentials.certificate, "alpn", "h2", "HTTP/2")
        }
      let peer = try await s.peer(certificate: certificate, alpn: fault != .noALPN)
      let lines = try await doctor(s, s.settings(production: peer), exit: 69)
      let line = try #require(lines["production \(step)"])
      #expect(line.status == "fault")
      #expect(line.detail.contains(reason), "\(line)")
      #expect(line.fix?.contains(fix) == true, "\(line)")
      #expect(lines["production tcp"]?.status == "ok")
      #expect(lines["production alpn"]?.status != "ok")
      #expect(lines["sandbox dns"] == nil, "a host without a key is not asked")
      #expect(try peer.requests().isEmpty)
    }
  }

  @Test("a closed port, a name that does not exist, and a peer that stays silent")
  func unreachable() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let settings = s.settings(production: peer, sandbox: peer)
      func with(_ url: String) -> [String] { settings.map { $0 == peer.url ? url : $0 } }
      let closed = try await doctor(s, with("https://127.0.0.1:1"), exit: 69)
      #expect(closed["production dns"]?.status == "ok")
      #expect(closed["production tcp"]?.detail == "127.0.0.1:1: Connection refused")
      #expect(closed["production tcp"]?.fix?.contains("port 1") == true)
      let unknown = try await doctor(s, with("https://no-such-host.invalid"), exit: 69, within: .seconds(60))
      #expect(unknown["sandbox dns"]?.status == "fault")
      #expect(unknown["sandbox dns"]?.fix?.contains("getent hosts no-such-host.invalid") == true)
      peer.freeze()
      let silent = try await doctor(s, settings, exit: 69, within: .seconds(60))
      #expect(silent["production tls"]?.detail.contains("not finished within") == true, "\(silent)")
      peer.thaw()
    }
  }

  @Test("after refusals it says what they mean, and shows no token, key, provider token or text")
  func refused() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(403, reason: "InvalidProviderToken")])]))
      try s.backend.register("phone-1", token: token(1))
      let marker = "Xyzzy-Plugh"
      try s.backend.nudge(["title": .text(marker), "body": .text(marker)])
      try s.backend.nudge(["title": .text(marker), "created_at": .integer(now() - 300_000)])
      try await s.drain(production: peer, exit: 69)
      let settings = known(s.settings(production: peer))
      let result = try await s.nudged(["doctor"] + settings)
      #expect(result.exit == .code(69), "\(result.output)\(result.errors)")
      for words in [
        "✗ worker ", "none runs, and 1 nudge due", "systemctl status nudged",
        "403 InvalidProviderToken", "do not belong together", "--team-id",
      ] { #expect(result.output.contains(words), "\(words): \(result.output)") }
      let key = try String(contentsOfFile: s.credentials.providerKey, encoding: .utf8)
      let bearer = try #require(
        try peer.requests().first?.header("authorization")?.dropFirst("bearer ".count))
      let secrets =
        key.split(separator: "\n").filter { !$0.hasPrefix("---") } + bearer.split(separator: ".")
        + [Substring(token(1)), Substring(marker)]
      for secret in secrets { #expect(!(result.output + result.errors).contains(secret)) }
    }
  }

  @Test("a worker that was killed: its requests without an outcome are told, and its log is read as it is")
  func killed() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule([.stall])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      try s.backend.nudge()
      try await peer.waitForRequests(1)
      worker.kill()
      s.backend.end()
      let log = try Data(contentsOf: URL(filePath: s.database + "-wal"))
      let lines = try await doctor(s, s.settings(production: peer), exit: 0)
      #expect(lines["worker"]?.status == "warning")
      #expect(lines["worker"]?.detail == "none runs; it left 1 request without an outcome")
      #expect(try Data(contentsOf: URL(filePath: s.database + "-wal")) == log)
    }
  }

  @Test("a clock that is years off is a fault, also where no certificate shows it")
  func clock() async throws {
    try await scenario { s in
      let clock = try ShiftedClock(in: s)
      try clock.set(seconds: -20 * 365 * 24 * 3600)
      let child = try clock.start(["doctor", "--json", "--database", s.database])
      #expect(try await child.wait() == .code(78), "\(child.output)\(child.errors)")
      #expect(child.output.contains(#"{"check":"clock","status":"fault","detail":"2006-"#), "\(child.output)")
      #expect(child.output.contains("timedatectl"))
    }
  }
}
