import Foundation
import Testing

@Suite("Flow control and many connections")
struct FlowTests {
  @Test("when every stream is taken, further connections are opened, up to --connections", arguments: [1, 3])
  func growth(_ most: Int) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.wait(milliseconds: 60), .answer()])], maxConcurrentStreams: 2))
      try s.backend.register("phone-1", token: token(1))
      for _ in 1...150 { try s.backend.nudge() }
      try await s.drain(production: peer, ["--connections", "\(most)"])
      #expect(try s.backend.states() == ["attempted": 150])
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 150)
      #expect(try Set(peer.requests().compactMap(\.connection)).count == most)
      #expect(try peer.events("protocol_error").isEmpty)
      #expect(try Set(peer.requests().compactMap { $0.header("apns-id") }).count == 150)
    }
  }

  @Test("a body goes through a window much smaller than itself")
  func smallWindow() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(initialWindowSize: 100))
      try s.backend.register("phone-1", token: token(1))
      let body = String(repeating: "0123456789", count: 390)
      for _ in 1...5 { try s.backend.nudge(["title": "T", "body": .text(body)]) }
      try await s.drain(production: peer)
      #expect(try peer.requests().count == 5)
      #expect(try peer.requests().allSatisfy { $0.alert["body"] as? String == body })
    }
  }

  @Test("what the connection's window does not take is not claimed: nothing is queued")
  func exhaustedWindow() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(updatesWindows: false))
      try s.backend.register("phone-1", token: token(1))
      let body = Value.text(String(repeating: "x", count: 5000))
      // 15 payloads of 4,096 bytes fit into the 65,535 that a connection begins with.
      for _ in 1...20 { try s.backend.nudge(["title": "T", "body": body]) }
      let worker = try s.worker(production: peer, ["--connections", "1"])
      try await eventually("15 are accepted") {
        try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 15
      }
      // At its end it has nothing to interrupt.
      worker.signal(15)
      #expect(try await worker.wait() == .code(0))
      #expect(try s.backend.states() == ["attempted": 15, "pending": 5])
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 15)
    }
  }

  @Test("an informational answer and then silence is silence")
  func interimOnly() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule([.interim(103)])]))
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      try await s.drain(production: peer, ["--answer-timeout", "1s"])
      #expect(try s.backend.outcomes(id) == ["unanswered"])
      #expect(try s.backend.attempts(id).first?["status"].isNull == true)
    }
  }

  @Test(
    "whatever a peer does and whenever the worker dies, nothing buzzes twice and nothing is lost",
    arguments: 1...4)
  func chaos(_ seed: Int) async throws {
    try await scenario { s in
      var random = Seeded(state: UInt64(seed))
      let steps: [[Step]] = [
        [.reset(.refused)], [.reset(.internal)], [.reset(.cancel)], [.answer(), .close], [.answer(), .abort],
        [.abort], [.answer(410, reason: "Unregistered", timestamp: 1)], [.answer(400, reason: "BadPriority")],
        [.answer(200, body: "odd", ends: false), .reset(.internal)], [.wait(milliseconds: 80), .answer()],
        [.interim(103), .answer(413, reason: "PayloadTooLarge")],
        [.settings(maxConcurrentStreams: 1), .answer()],
        [.settings(maxConcurrentStreams: 7), .answer()], [.answer(), .goaway(last: 1_000_001)],
        [.goaway(last: 1_000_001), .wait(milliseconds: 20), .answer(), .close],
        [.goaway(last: 1), .close], [.goaway(last: 9, code: .internal), .answer()],
      ]
      var rules: [Rule] = []
      for request in 1...400 where random.next() % 100 < 12 {
        rules.append(Rule(request: request, steps[Int(random.next() % UInt64(steps.count))]))
      }
      rules.append(Rule([.wait(milliseconds: 5), .answer()]))
      let peer = try await s.peer(.python, PeerScript(rules: rules, maxConcurrentStreams: 6))
      for number in 1...3 { try s.backend.register("phone-\(number)", token: token(number)) }
      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 100)
        insert into nudge_outbox (title) select 'row ' || i from n;
        """)
      for target in [40, 120, 200] {
        let worker = try s.worker(production: peer, ["--answer-timeout", "2s"])
        try await peer.waitForRequests(target, within: .seconds(40))
        worker.kill()
      }
      _ = try s.worker(production: peer, ["--answer-timeout", "2s"])
      try await eventually(
        "all are settled", within: .seconds(60), state: { "\((try? s.backend.states()) ?? [:])" }
      ) {
        try s.backend.states() == ["attempted": 100]
      }
      // Each device of each nudge: one attempt that may have buzzed, or three that provably did not.
      let pairs = try s.backend.run(
        """
        select nudge_id, device_id, count(may_have_buzzed) as buzzes, sum(outcome = 'unsent') as unsent
        from nudge_attempt group by nudge_id, device_id
        """)
      #expect(pairs.count == 300)
      for pair in pairs {
        #expect(pair["buzzes"] == 1 || (pair["buzzes"] == 0 && pair["unsent"] == 3), "\(pair)")
      }
      // The peer has seen nothing that is not in the table, and nothing twice.
      let recorded = Set(
        try s.backend.run("select apns_id from nudge_attempt").compactMap { $0["apns_id"].text })
      let seen = try peer.requests().compactMap { $0.header("apns-id") }
      #expect(Set(seen).count == seen.count)
      #expect(Set(seen).isSubset(of: recorded))
      #expect(try peer.events("protocol_error").isEmpty)
      #expect(try s.backend.value("pragma integrity_check") == "ok")
    }
  }

  /// The same numbers for the same seed (SplitMix64).
  private struct Seeded {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var value = state
      value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
      value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
      return value ^ (value >> 31)
    }
  }
}
