import Foundation
import Testing

@Suite("TLS")
struct TLSTests {
  /// What is wrong with a peer's TLS.
  enum Fault: String, CaseIterable {
    case unknownAuthority, wrongName, expired, noALPN
  }

  @Test(
    "a peer that TLS does not vouch for gets no request byte; rows wait and go when it is put right",
    arguments: Fault.allCases)
  func tls(_ fault: Fault) async throws {
    try await scenario { s in
      let certificate =
        switch fault {
        case .unknownAuthority: s.credentials.untrusted
        case .wrongName: s.credentials.wrongName
        case .expired: s.credentials.expired
        case .noALPN: s.credentials.certificate
        }
      let peer = try await s.peer(certificate: certificate, alpn: fault != .noALPN)
      try s.backend.register("phone-1", token: token(1))
      let ids = try (1...5).map { _ in try s.backend.nudge() }
      let worker = try s.worker(production: peer)
      let word = fault == .noALPN ? "alpn" : "certificate"
      try await eventually("it says what is wrong", state: { worker.errors }) {
        worker.errors.lowercased().contains(word)
      }
      let passed = try s.backend.nudge(["title": "T", "recipient": "nobody"])
      try await s.backend.settled(passed, as: "unaddressed")
      #expect(try peer.requests().isEmpty)
      #expect(try peer.events("bytes_without_alpn").isEmpty)
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 0)
      for id in ids { #expect(try s.backend.state(id) == "pending") }
      let port = peer.port
      peer.end()
      let good = try await s.peer(port: port)
      for id in ids { try await s.backend.settled(id, within: .seconds(20)) }
      #expect(try good.requests().count == 5)
      #expect(worker.errors.split(separator: "\n").count < 60)
    }
  }

  @Test("a host name is resolved, verified, and tried at every address")
  func hostName() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let settings = s.settings(production: peer).map {
        $0 == peer.url ? "https://localhost:\(peer.port)" : $0
      }
      let result = try await s.nudged(["run", "--drain"] + settings)
      #expect(result.exit == .code(0), "\(result.errors)")
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().first?.header(":authority") == "localhost:\(peer.port)")
    }
  }

  @Test("a host name that does not resolve leaves its rows, and says so")
  func unknownName() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let settings = s.settings(production: peer).map { $0 == peer.url ? "https://no-such-host.invalid" : $0 }
      let result = try await s.nudged(["run", "--drain"] + settings, within: .seconds(60))
      #expect(result.exit == .code(69), "\(result.exit)")
      #expect(result.errors.contains("no-such-host.invalid"), "\(result.errors)")
      #expect(try s.backend.state(id) == "pending")
    }
  }
}
