import Foundation
import Testing

@Suite("Fan-out")
struct FanOutTests {
  @Test("300 devices get one nudge in pieces, once each, within 10 streams", arguments: Stack.allCases)
  func fanOut(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(stack, PeerScript(maxConcurrentStreams: 10))
      for number in 1...300 { try s.backend.register("phone-\(number)", token: token(number)) }
      let id = try s.backend.nudge(["title": "all of you"])
      let behind = try s.backend.nudge(["title": "one of you", "device_id": "phone-7"])
      _ = try s.worker(production: peer)
      try await s.backend.settled(id, within: .seconds(30))
      try await s.backend.settled(behind)
      let outcomes = try s.backend.outcomes(id)
      #expect(outcomes.count == 300 && Set(outcomes) == ["accepted"])
      let tokens = try peer.requests().filter { $0.alert["title"] as? String == "all of you" }.compactMap(
        \.token)
      #expect(tokens.count == 300 && Set(tokens).count == 300)
      #expect(try peer.events("protocol_error").isEmpty)
      // The rows behind a large fan-out take turns with it.
      let place = try #require(
        try peer.requests().firstIndex { $0.alert["title"] as? String == "one of you" })
      #expect(place < 300)
    }
  }

  @Test("what runs out in the middle of a fan-out is counted, and the rest is not sent")
  func expiresMidway() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.wait(milliseconds: 100), .answer()])], maxConcurrentStreams: 1))
      for number in 1...100 { try s.backend.register("phone-\(number)", token: token(number)) }
      _ = try s.worker(production: peer, ["--connections", "1"])
      let id = try s.backend.nudge(["title": "T", "expires_at": .integer(now(plus: 1500))])
      try await s.backend.settled(id)
      let count = try s.backend.attempts(id).count
      #expect((1..<100).contains(count))
      #expect(try Set(s.backend.outcomes(id)) == ["accepted"])
      let detail = try s.backend.row(id)["detail"].text
      #expect(detail == "expired before \(100 - count) of 100 devices", "\(detail ?? "") after \(count)")
      #expect(try peer.requests().count == count)
    }
  }

  @Test("a fan-out that is cancelled midway stops, and its attempts stand")
  func cancelledMidway() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      for number in 1...5 { try s.backend.register("phone-\(number)", token: token(number)) }
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      #expect(try s.backend.state(id) == "pending")
      try s.backend.run("update nudge_outbox set state = 'cancelled' where id = ?", [.integer(id)])
      try s.release("go")
      let next = try s.backend.nudge(["title": "next", "device_id": "phone-5"])
      try await s.backend.settled(next)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 2)
    }
  }

  @Test("tokens are read when their piece is claimed: what changed before is used")
  func freshTokens() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      for number in 1...5 { try s.backend.register("phone-\(number)", token: token(number)) }
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      let first = try #require(try await peer.waitForRequests(1).first?.token)
      // Everybody gets another token, one is removed and one joins.
      for number in 1...5 { try s.backend.register("phone-\(number)", token: token(number + 10)) }
      let removed = first == token(3) ? 4 : 3
      try s.backend.run("delete from nudge_device where device_id = ?", [.text("phone-\(removed)")])
      try s.backend.register("phone-9", token: token(99))
      try s.release("go")
      try await s.backend.settled(id)
      let old = try #require((1...5).first { token($0) == first })
      let expected = Set(
        (1...5).filter { $0 != old && $0 != removed }.map { token($0 + 10) } + [first, token(99)])
      let tokens = try peer.requests().compactMap(\.token)
      #expect(Set(tokens) == expected && tokens.count == expected.count, "\(tokens)")
    }
  }

  @Test("a device that is registered after the nudge was settled gets nothing of it")
  func lateDevice() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await s.backend.settled(id)
      try s.backend.register("phone-2", token: token(2))
      let next = try s.backend.nudge(["title": "next", "device_id": "phone-1"])
      try await s.backend.settled(next)
      #expect(try peer.requests().map(\.token) == [token(1), token(1)])
    }
  }

  @Test("a row cancelled while its only request is open stays what it is: attempted")
  func cancelledInFlight() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      try s.backend.run("update nudge_outbox set state = 'cancelled' where id = ?", [.integer(id)])
      try s.release("go")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
    }
  }
}
