import Foundation
import Testing

@Suite("What is sent to whom, and when")
struct OutboxRuleTests {
  @Test("job_finished fires only when a heartbeat delivered it or a push was requested")
  func jobFinished() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let silent: [KeyValuePairs<String, Value>] = [
        ["title": "no", "event": "job_finished"],
        ["title": "no", "event": "job_finished", "delivered_by": "turn"],
        ["title": "no", "event": "job_finished", "delivered_by": nil, "push_requested": nil],
        ["title": "no", "event": "job_finished", "push_requested": 0],
      ]
      let loud: [KeyValuePairs<String, Value>] = [
        ["title": "a", "event": "job_finished", "delivered_by": "heartbeat"],
        ["title": "b", "event": "job_finished", "push_requested": 1],
        ["title": "c", "event": "turn_finished"],
        ["title": "d", "event": "failure"],
      ]
      let quiet = try silent.map { try s.backend.nudge($0) }
      for columns in loud { try s.backend.nudge(columns) }
      try await s.drain(production: peer)
      #expect(try Set(peer.requests().map { $0.alert["title"] as? String }) == ["a", "b", "c", "d"])
      for id in quiet { #expect(try s.backend.state(id) == "suppressed") }
    }
  }

  @Test("a second row with the same dedupe key is suppressed, naming the first")
  func dedupe() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let first = try s.backend.nudge(["title": "once", "dedupe_key": "turn-5"])
      let second = try s.backend.nudge(["title": "twice", "dedupe_key": "turn-5"])
      try await s.drain(production: peer)
      let third = try s.backend.nudge(["title": "thrice", "dedupe_key": "turn-5"])
      try await s.drain(production: peer)
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["once"])
      for id in [second, third] {
        #expect(try s.backend.state(id) == "suppressed")
        #expect(try s.backend.row(id)["detail"].text == "duplicate of nudge \(first)")
      }
    }
  }

  @Test("a row is sent at its time and not before; a cancelled one never is")
  func notBefore() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let due = now(plus: 1500)
      let cancelled = try s.backend.nudge(["title": "cancelled", "not_before_at": .integer(due - 200)])
      let later = try s.backend.nudge(["title": "later", "not_before_at": .integer(due)])
      let at = try s.backend.nudge(["title": "now"])
      try await s.backend.settled(at)
      try s.backend.run("update nudge_outbox set state = 'cancelled' where id = ?", [.integer(cancelled)])
      #expect(try s.backend.state(later) == "pending")
      try await s.backend.settled(later)
      let requests = try peer.requests()
      #expect(requests.map { $0.alert["title"] as? String } == ["now", "later"])
      try #require(requests.count == 2)
      #expect(requests[1].atMs >= Double(due))
      #expect(requests[1].atMs < Double(due + 1000))
      #expect(try s.backend.state(cancelled) == "cancelled")
      #expect(try s.backend.attempts(cancelled).isEmpty)
    }
  }

  @Test("what is too old is expired without a request, by its own expiry or by --expire-after")
  func expired() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let own = try s.backend.nudge(["title": "own", "expires_at": .integer(now(plus: -1000))])
      let old = try s.backend.nudge(["title": "old", "created_at": .integer(now(plus: -3_700_000))])
      let young = try s.backend.nudge(["title": "young", "created_at": .integer(now(plus: -3_500_000))])
      let dated = try s.backend.nudge([
        "title": "dated", "created_at": .integer(now(plus: -9_000_000)),
        "not_before_at": .integer(now(plus: -1000)),
      ])
      try await s.drain(production: peer)
      for id in [own, old] {
        #expect(try s.backend.state(id) == "expired")
        #expect(try s.backend.attempts(id).isEmpty)
      }
      for id in [young, dated] { #expect(try s.backend.outcomes(id) == ["accepted"]) }
      #expect(try peer.requests().count == 2)
    }
  }

  @Test("during an outage rows wait, those whose time runs out expire, and no stale burst follows")
  func outage() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let port = peer.port
      peer.end()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let expiry = Value.integer(now(plus: 1500))
      let stale = try (1...20).map { _ in try s.backend.nudge(["title": "stale", "expires_at": expiry]) }
      let lasting = try s.backend.nudge(["title": "lasting"])
      for id in stale { try await s.backend.settled(id, as: "expired") }
      #expect(try s.backend.state(lasting) == "pending")
      let again = try await s.peer(port: port)
      try await s.backend.settled(lasting, within: .seconds(20))
      #expect(try again.requests().map { $0.alert["title"] as? String } == ["lasting"])
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 1)
      #expect(worker.isRunning)
    }
  }

  @Test("a row without a device to send to is unaddressed")
  func unaddressed() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("mine", token: token(1))
      try s.backend.register("hers", token: token(2), recipient: "anna")
      try s.backend.register("bare", token: nil, surface: "watch")
      let ids = try [
        s.backend.nudge(["title": "T", "recipient": "nobody"]),
        s.backend.nudge(["title": "T", "surface": "tablet"]),
        s.backend.nudge(["title": "T", "surface": "watch"]),
        s.backend.nudge(["title": "T", "device_id": "unknown"]),
        s.backend.nudge(["title": "T", "device_id": "hers"]),
        s.backend.nudge(["title": "T", "kind": "voip", "data": "{}"]),
      ]
      try await s.drain(production: peer)
      for id in ids { #expect(try s.backend.state(id) == "unaddressed", "\(s.backend.describe(id))") }
      #expect(try peer.requests().isEmpty)
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 0)
    }
  }

  @Test("recipient, surface and device say who gets it")
  func addressing() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone", token: token(1))
      try s.backend.register("tablet", token: token(2), surface: "tablet")
      try s.backend.register("anna-phone", token: token(3), recipient: "anna")
      try s.backend.register("anna-tablet", token: token(4), recipient: "anna", surface: "tablet")
      let cases: [(String, KeyValuePairs<String, Value>, Set<String>)] = [
        ("defaults", ["title": "defaults"], [token(1)]),
        ("nulls", ["title": "nulls", "recipient": nil, "surface": nil], [token(1)]),
        ("surface", ["title": "surface", "surface": "tablet"], [token(2)]),
        ("all", ["title": "all", "surface": "*"], [token(1), token(2)]),
        ("anna", ["title": "anna", "recipient": "anna"], [token(3)]),
        ("anna-all", ["title": "anna-all", "recipient": "anna", "surface": "*"], [token(3), token(4)]),
        ("device", ["title": "device", "device_id": "tablet"], [token(2)]),
        (
          "device-surface", ["title": "device-surface", "device_id": "tablet", "surface": "phone"], [token(2)]
        ),
      ]
      for (_, columns, _) in cases { try s.backend.nudge(columns) }
      try await s.drain(production: peer)
      let requests = try peer.requests()
      for (title, _, expected) in cases {
        let tokens = requests.filter { $0.alert["title"] as? String == title }.compactMap(\.token)
        #expect(tokens.count == expected.count && Set(tokens) == expected, "\(title): \(tokens)")
      }
    }
  }

  @Test("undated rows go in the order of their ids")
  func order() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(maxConcurrentStreams: 1))
      try s.backend.register("phone-1", token: token(1))
      for number in 1...30 { try s.backend.nudge(["title": .text("\(number)")]) }
      try await s.drain(production: peer)
      #expect(try peer.requests().map { $0.alert["title"] as? String } == (1...30).map { "\($0)" })
    }
  }
}
