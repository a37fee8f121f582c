import Foundation
import Testing

@Suite("Connections")
struct ConnectionTests {
  @Test("REFUSED_STREAM was never processed: unsent, then sent, one buzz", arguments: Stack.allCases)
  func refusedOnce(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(stack, PeerScript(rules: [Rule(times: 1, [.reset(.refused)])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["unsent", "accepted"])
      #expect(try s.backend.attempts(id).map { $0["may_have_buzzed"] } == [nil, 1])
      let requests = try peer.requests()
      try #require(requests.count == 2)
      #expect(requests[0].header("apns-id") != requests[1].header("apns-id"))
    }
  }

  @Test("what is always refused is tried three times, and the third stands")
  func refusedAlways() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(token: token(1), [.reset(.refused)])]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      try await s.backend.settled(id, within: .seconds(30))
      #expect(try s.backend.outcomes(id) == ["unsent", "unsent", "unsent"])
      let behind = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await s.backend.settled(behind, within: .seconds(30))
      #expect(try s.backend.outcomes(behind) == ["accepted"])
      #expect(try peer.requests().filter { $0.token == token(1) }.count == 3)
    }
  }

  @Test("any other reset leaves the request unanswered, and it is not sent again", arguments: Stack.allCases)
  func reset(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(stack, PeerScript(rules: [Rule(token: token(1), [.reset(.internal)])]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      try await s.backend.settled(id)
      let behind = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await s.backend.settled(behind)
      #expect(try s.backend.outcomes(id) == ["unanswered"])
      #expect(try s.backend.attempts(id).first?["may_have_buzzed"] == 1)
      #expect(try s.backend.attempts(id).first?["status"] == .null)
      #expect(try peer.requests().filter { $0.token == token(1) }.count == 1)
    }
  }

  @Test("a connection lost with a request open leaves it unanswered; the next row goes on a new one")
  func lost() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(request: 2, [.abort])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      let second = try s.backend.nudge()
      try await s.backend.settled(second)
      let third = try s.backend.nudge()
      try await s.backend.settled(third)
      #expect(try s.backend.outcomes(second) == ["unanswered"])
      #expect(try s.backend.outcomes(third) == ["accepted"])
      #expect(try peer.requests().map(\.connection) == [1, 1, 2])
    }
  }

  @Test("after GOAWAY the rows go on the next connection, though TCP stays open", arguments: Stack.allCases)
  func goaway(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        stack, PeerScript(rules: [Rule(onConnection: 3, connection: 1, [.answer(), .goaway(last: 5)])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      for _ in 1...3 { try await s.backend.settled(try s.backend.nudge(["title": "old"])) }
      #expect(try peer.requests().map(\.stream) == [1, 3, 5])
      try s.backend.transaction(
        (1...5).map { .init("insert into nudge_outbox (title) values (?)", [.text("new \($0)")]) })
      try await eventually("all are settled") { try s.backend.states() == ["attempted": 8] }
      let requests = try peer.requests()
      #expect(requests.count == 8)
      #expect(requests.dropFirst(3).allSatisfy { $0.connection == 2 })
      #expect(Set(requests.dropFirst(3).compactMap { $0.alert["title"] as? String }).count == 5)
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 8)
    }
  }

  @Test("what a GOAWAY excludes was never sent, and goes once on the next connection")
  func goawayWithError() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [
          Rule(onConnection: 4, connection: 1, [.goaway(last: 1, code: .protocol), .close]),
          Rule(fromRequest: 2, connection: 1, []),
        ]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let proof = try s.backend.nudge(["title": "proof"])
      try await s.backend.settled(proof)
      try s.backend.transaction(
        (1...3).map { .init("insert into nudge_outbox (title) values (?)", [.text("row \($0)")]) })
      try await eventually("all are settled") { try s.backend.states() == ["attempted": 4] }
      for id in proof + 1...proof + 3 {
        #expect(try s.backend.outcomes(id) == ["unsent", "accepted"], "\(s.backend.describe(id))")
      }
      #expect(try peer.requests().filter { $0.connection == 2 }.count == 3)
    }
  }

  @Test("requests that are open when a GOAWAY spares them are answered on the old connection")
  func goawaySpares() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(rules: [Rule(request: 2, [.goaway(last: 3), .hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      let spared = try s.backend.nudge()
      try await peer.waitForRequests(2)
      let next = try s.backend.nudge()
      try await s.backend.settled(next)
      #expect(try s.backend.outcomes(spared) == ["open"])
      try s.release("go")
      try await eventually("the spared one is answered") { try s.backend.outcomes(spared) == ["accepted"] }
      #expect(try peer.requests().map(\.connection) == [1, 1, 2])
    }
  }

  @Test("silence ends at --answer-timeout as unanswered; the stream is given back and later rows flow")
  func silence() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(token: token(2), [])], maxConcurrentStreams: 2))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      _ = try s.worker(production: peer, ["--answer-timeout", "1s", "--connections", "1"])
      try await s.backend.settled(try s.backend.nudge(["title": "T", "device_id": "phone-1"]))
      try s.backend.transaction(
        (1...10).map {
          .init(
            "insert into nudge_outbox (title, device_id) values ('T', ?)",
            [.text($0 <= 2 ? "phone-2" : "phone-1")])
        })
      try await eventually("all are settled") { try s.backend.states() == ["attempted": 11] }
      let silent = try s.backend.run("select * from nudge_attempt where device_id = 'phone-2'")
      #expect(silent.map { $0["outcome"] } == ["unanswered", "unanswered"])
      for attempt in silent {
        let took = (attempt["finished_at"].integer ?? 0) - (attempt["started_at"].integer ?? 0)
        #expect((900...3000).contains(took), "\(took) ms")
      }
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 9)
      #expect(try peer.requests().count == 11)
      #expect(try peer.events("reset").map(\.code) == [8, 8])
      #expect(try peer.events("connected").count == 1)
    }
  }

  @Test("an answer after its deadline changes nothing")
  func late() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer(410, reason: "Unregistered")])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--answer-timeout", "1s"])
      let id = try s.backend.nudge()
      try await s.backend.settled(id)
      try s.release("go")
      let next = try s.backend.nudge()
      try await s.backend.settled(next)
      #expect(try s.backend.outcomes(id) == ["unanswered"])
      #expect(try s.backend.outcomes(next) == ["accepted"])
      #expect(try s.backend.tokens().count == 1)
    }
  }

  @Test("one request at a time until the connection is proven, then many", arguments: Stack.allCases)
  func proving(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        stack,
        PeerScript(rules: [
          Rule(request: 1, [.wait(milliseconds: 200), .answer(503, reason: "ServiceUnavailable")]),
          Rule(request: 2, [.wait(milliseconds: 200), .answer(400, reason: "BadPriority")]),
          Rule([.wait(milliseconds: 20), .answer()]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      for _ in 1...20 { try s.backend.nudge() }
      _ = try s.worker(production: peer)
      try await eventually("all are settled") { try s.backend.states() == ["attempted": 20] }
      let requests = try peer.requests()
      let answers = try peer.events("answer")
      try #require(requests.count == 20 && answers.count == 20)
      // A 503 proves nothing, a 400 does.
      #expect(requests[1].atMs >= answers[0].atMs)
      #expect(requests[2].atMs >= answers[1].atMs)
      #expect(requests[19].atMs < answers[3].atMs)
      #expect(try peer.events("connected").count == 1)
    }
  }

  @Test("a lowered stream limit is obeyed at once, none included")
  func loweredLimit() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(rules: [
          Rule(request: 2, [.settings(maxConcurrentStreams: 0), .wait(milliseconds: 30), .answer()])
        ]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--connections", "1"])
      for _ in 1...2 { try await s.backend.settled(try s.backend.nudge()) }
      let waits = try s.backend.nudge()
      let passed = try s.backend.nudge(["title": "T", "recipient": "nobody"])
      try await s.backend.settled(passed, as: "unaddressed")
      #expect(try s.backend.state(waits) == "pending")
      #expect(try s.backend.attempts(waits).isEmpty)
      try peer.perform([.settings(maxConcurrentStreams: 3)])
      try await s.backend.settled(waits)
      for _ in 1...30 { try s.backend.nudge() }
      try await eventually("all are settled") {
        try s.backend.states() == ["attempted": 33, "unaddressed": 1]
      }
      #expect(try peer.events("protocol_error").isEmpty)
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome is not 'accepted'") == 0)
    }
  }

  @Test("nothing is claimed before the peer's first SETTINGS")
  func firstSettings() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(maxConcurrentStreams: 2, sendsSettings: false))
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      _ = try s.worker(production: peer)
      try await eventually("the client has spoken") { try !peer.events("early").isEmpty }
      let passed = try s.backend.nudge(["title": "T", "recipient": "nobody"])
      try await s.backend.settled(passed, as: "unaddressed")
      #expect(try s.backend.attempts(id).isEmpty)
      try peer.perform([.settings(maxConcurrentStreams: 2)])
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
    }
  }

  @Test("the client announces that it takes no server push")
  func settings() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge()
      try await s.drain(production: peer)
      let log = try String(contentsOfFile: s.path("peer-1.log"), encoding: .utf8)
      #expect(log.contains(#""ENABLE_PUSH": 0"#))
    }
  }

  @Test("a connection that the peer gives up while idle costs nothing", arguments: [true, false])
  func idleEnd(_ politely: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      try peer.perform(politely ? [.goaway(last: 1), .close] : [.abort])
      try await eventually("it is closed") { try !peer.events("closed").isEmpty }
      let next = try s.backend.nudge()
      try await s.backend.settled(next)
      #expect(try s.backend.outcomes(next) == ["accepted"])
      #expect(try peer.requests().map(\.connection) == [1, 2])
    }
  }

  @Test("a connection that has gone silent is found out by PING while answers are due, and replaced")
  func halfOpen() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(request: 2, [.stall])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--answer-timeout", "60s"])
      try await s.backend.settled(try s.backend.nudge())
      let swallowed = try s.backend.nudge()
      try await s.backend.settled(swallowed, within: .seconds(30))
      #expect(try s.backend.outcomes(swallowed) == ["unanswered"])
      let next = try s.backend.nudge()
      try await s.backend.settled(next)
      #expect(try s.backend.outcomes(next) == ["accepted"])
      #expect(try peer.requests().map(\.connection) == [1, 1, 2])
    }
  }
}
