import Foundation
import Testing

/// The edges of HTTP/2 at which a stream's close code says something else than what happened. The peer writes its
/// frames itself; each case has one right outcome by DESIGN section 3.
@Suite("The edges of HTTP/2")
struct EdgeTests {
  /// What the peer does with the request, and what has to stand in its attempt then.
  struct Edge: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var steps: @Sendable () -> [RawStep]
    let outcome: String
    var status: Int64? = 200
    var reason: String?
    /// The connection that the next row goes on.
    var next = 1
  }

  static let edges: [Edge] = [
    Edge(
      testDescription: "200, then GOAWAY below it, before its stream closes",
      steps: { [.headers([(":status", "200")]), .goaway(last: 0)] }, outcome: "accepted", next: 2),
    Edge(
      testDescription: "200, then GOAWAY with an error and the end of the connection",
      steps: { [.headers([(":status", "200")]), .goaway(last: 0, code: 1), .close] }, outcome: "accepted",
      next: 2),
    Edge(
      testDescription: "410 whole, then GOAWAY and the end",
      steps: {
        [
          .headers([(":status", "410")]), .data(#"{"reason":"Unregistered"}"#, end: true),
          .goaway(last: 0, code: 2), .close,
        ]
      }, outcome: "dead_token", status: 410, reason: "Unregistered", next: 2),
    Edge(
      testDescription: "200, then RST_STREAM(INTERNAL_ERROR)",
      steps: { [.headers([(":status", "200")]), .reset(2)] }, outcome: "accepted"),
    Edge(
      testDescription: "200, then RST_STREAM(REFUSED_STREAM)",
      steps: { [.headers([(":status", "200")]), .reset(7)] }, outcome: "accepted"),
    Edge(
      testDescription: "400, then RST_STREAM(NO_ERROR) in the middle of its body",
      steps: { [.headers([(":status", "400")]), .data(#"{"reason":"Bad"#), .reset(0)] }, outcome: "rejected",
      status: 400),
    Edge(
      testDescription: "200 whose content-length promises more",
      steps: { [.headers([(":status", "200"), ("content-length", "100")]), .data("short", end: true)] },
      outcome: "accepted"),
    Edge(
      testDescription: "200 whose content-length promises less",
      steps: { [.headers([(":status", "200"), ("content-length", "1")]), .data("longer", end: true)] },
      outcome: "accepted"),
    Edge(
      testDescription: "200 with a trailer that has a pseudo-header",
      steps: { [.headers([(":status", "200")]), .headers([(":status", "500")], end: true)] },
      outcome: "accepted"),
    Edge(
      testDescription: "200 with a trailer that does not end the stream",
      steps: { [.headers([(":status", "200")]), .data("x"), .headers([("x-a", "b")])] }, outcome: "accepted"),
    Edge(
      testDescription: "200 and trailers",
      steps: { [.headers([(":status", "200")]), .data("x"), .headers([("x-a", "b")], end: true)] },
      outcome: "accepted"),
    Edge(
      testDescription: "103 twice before 400",
      steps: {
        [
          .headers([(":status", "103"), ("link", "</x>")]), .headers([(":status", "103")]),
          .headers([(":status", "400")]), .data(#"{"reason":"BadPriority"}"#, end: true),
        ]
      }, outcome: "rejected", status: 400, reason: "BadPriority"),
    Edge(
      testDescription: "103, then RST_STREAM(CANCEL)",
      steps: { [.headers([(":status", "103")]), .reset(8)] }, outcome: "unanswered", status: nil),
    Edge(
      testDescription: "103 that ends the stream", steps: { [.headers([(":status", "103")], end: true)] },
      outcome: "unanswered", status: nil),
    Edge(
      testDescription: "RST_STREAM(NO_ERROR) without an answer", steps: { [.reset(0)] },
      outcome: "unanswered",
      status: nil),
    Edge(
      testDescription: "END_STREAM without an answer", steps: { [.data(end: true)] }, outcome: "unanswered",
      status: nil,
      next: 2),
    Edge(
      testDescription: "a status of two digits", steps: { [.headers([(":status", "20")], end: true)] },
      outcome: "unanswered", status: nil),
    Edge(
      testDescription: "no status at all", steps: { [.headers([("server", "x")], end: true)] },
      outcome: "unanswered", status: nil),
    Edge(
      testDescription: "200 twice",
      steps: { [.headers([(":status", "200")]), .headers([(":status", "410")], end: true)] },
      outcome: "accepted"),
    Edge(
      testDescription: "101, which HTTP/2 does not know",
      steps: { [.headers([(":status", "101")]), .answer(200)] },
      outcome: "unanswered", status: nil),
    Edge(
      testDescription: "two GOAWAYs, the second above it, then the answer",
      steps: { [.goaway(last: 0x7fff_ffff), .goaway(last: 3), .wait(milliseconds: 50), .answer(200)] },
      outcome: "accepted", next: 2),
  ]

  @Test("the outcome is right, the row is requested once, and the next row flows", arguments: edges)
  func edge(_ edge: Edge) async throws {
    try await scenario { s in
      let peer = try await s.peer(.raw, RawScript(rules: [RawRule(request: 2, edge.steps())]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      let worker = try s.worker(production: peer, ["--answer-timeout", "3s"])
      try await s.backend.settled(try s.backend.nudge(["title": "T", "device_id": "phone-2"]))
      let id = try s.backend.nudge(["title": "edge", "device_id": "phone-1"])
      try await s.backend.settled(id)
      let attempts = try s.backend.attempts(id)
      #expect(attempts.map { $0["outcome"] } == [.text(edge.outcome)], "\(worker.errors)")
      #expect(attempts.first?["status"] == Value(edge.status))
      #expect(attempts.first?["reason"] == Value(edge.reason))
      #expect(attempts.first?["may_have_buzzed"] == 1)
      let after = try s.backend.nudge(["title": "after", "device_id": "phone-2"])
      try await s.backend.settled(after)
      #expect(try s.backend.outcomes(after) == ["accepted"])
      let requests = try peer.requests()
      #expect(requests.map(\.token) == [token(2), token(1), token(2)])
      #expect(requests.last?.connection == edge.next, "\(worker.errors)")
      #expect(try s.backend.tokens("phone-1").count == (edge.outcome == "dead_token" ? 0 : 1))
    }
  }

  @Test("a second GOAWAY that goes below a request makes it unsent, and it goes once on the next connection")
  func secondGoaway() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .raw,
        RawScript(rules: [
          RawRule(request: 2, [.goaway(last: 0x7fff_ffff), .wait(milliseconds: 50), .goaway(last: 1)])
        ]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      let id = try s.backend.nudge()
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["unsent", "accepted"])
      #expect(try s.backend.attempts(id).map { $0["may_have_buzzed"] } == [nil, 1])
      #expect(try peer.requests().map(\.connection) == [1, 1, 2])
    }
  }

  @Test(
    "a whole answer while our body waits for the window counts, and our side is given up",
    arguments: [0, 10], [200, 413])
  func blocked(_ window: Int, _ status: Int) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .raw,
        RawScript(
          hello: [.settings([(4, window)])], rules: [RawRule([.wait(milliseconds: 20), .answer(status)])],
          actsAtHeaders: true, credits: false))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      for _ in 1...3 {
        let id = try s.backend.nudge()
        try await s.backend.settled(id)
        #expect(try s.backend.attempts(id).map { $0["status"] } == [Value(Int64(status))])
      }
      // Each stream of ours was reset, so that the peer need not wait for its end.
      try await eventually("the streams are given up") { try peer.events("reset").count == 3 }
      #expect(try peer.events("body").allSatisfy { ($0.code ?? 0) <= window })
      #expect(try peer.requests().map(\.connection) == [1, 1, 1])
    }
  }

  @Test("a body that the peer's window never takes ends at the answer time-out, and later rows flow")
  func neverTaken() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .raw,
        RawScript(
          hello: [.settings([(4, 0)])],
          rules: [RawRule(request: 1, [.answer(200)]), RawRule(request: 2, [])] + [RawRule([.answer(200)])],
          actsAtHeaders: true, credits: false))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--answer-timeout", "1s"])
      try await s.backend.settled(try s.backend.nudge())
      let stuck = try s.backend.nudge()
      try await s.backend.settled(stuck)
      #expect(try s.backend.outcomes(stuck) == ["unanswered"])
      let next = try s.backend.nudge()
      try await s.backend.settled(next)
      #expect(try s.backend.outcomes(next) == ["accepted"])
      #expect(try peer.requests().count == 3)
    }
  }

  @Test(
    "an answer that crosses our CANCEL changes nothing, and the connection lives on", arguments: [200, 410])
  func crossesCancel(_ status: Int) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .raw,
        RawScript(rules: [
          RawRule(
            request: 2, [.untilReset(seconds: 15), .answer(status, body: #"{"reason":"Unregistered"}"#)])
        ]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--answer-timeout", "1s"])
      try await s.backend.settled(try s.backend.nudge())
      let late = try s.backend.nudge()
      try await s.backend.settled(late)
      for _ in 1...3 { try await s.backend.settled(try s.backend.nudge()) }
      #expect(try s.backend.outcomes(late) == ["unanswered"])
      #expect(try s.backend.attempts(late).first?["status"] == .null)
      #expect(try s.backend.tokens().count == 1)
      #expect(try peer.requests().map(\.connection) == [1, 1, 1, 1, 1])
      #expect(try peer.events("reset").map(\.code) == [8])
    }
  }

  @Test("answers that arrived before the connection was reset count, those that did not are unanswered")
  func answersBeforeReset() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(maxConcurrentStreams: 50))
      let raw = try await s.peer(
        .raw,
        RawScript(rules: [
          RawRule(request: 1, [.answer(200)]), RawRule(request: 2, []), RawRule(request: 3, []),
          RawRule(
            request: 4,
            [.answer(200, body: ""), .headers([(":status", "400")], end: true, stream: 3), .close]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: raw)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      let ids = try (1...3).map { number in
        let id = try s.backend.nudge()
        return (number, id)
      }
      for (_, id) in ids { try await s.backend.settled(id) }
      let outcomes = try ids.map { try s.backend.outcomes($0.1).joined(separator: ",") }
      #expect(outcomes.sorted() == ["accepted", "rejected", "unanswered"])
      #expect(try raw.requests().count == 4)
    }
  }
}
