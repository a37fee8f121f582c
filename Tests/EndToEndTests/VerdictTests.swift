import Foundation
import Testing

@Suite("What the answers mean")
struct VerdictTests {
  @Test(
    "410 drops the token, unless it was registered again after the time Apple names",
    arguments: Stack.allCases)
  func deadToken(_ stack: Stack) async throws {
    try await scenario { s in
      let registered = now(plus: -60_000)
      // The timestamp Apple names, and whether the token stays.
      let cases: [(Int64?, Bool)] = [
        (registered + 1000, false), (registered, false), (registered - 1, true), (nil, false),
        (now(plus: 86_400_000), false), (1, true),
      ]
      let rules = cases.enumerated().map { index, entry in
        Rule(token: token(index), [.answer(410, reason: "Unregistered", timestamp: entry.0)])
      }
      let peer = try await s.peer(stack, PeerScript(rules: rules))
      var ids: [Int64] = []
      for index in cases.indices {
        try s.backend.register("phone-\(index)", token: token(index), registeredAt: registered)
        ids.append(try s.backend.nudge(["title": "T", "device_id": .text("phone-\(index)")]))
      }
      try await s.drain(production: peer)
      for (index, (timestamp, stays)) in cases.enumerated() {
        let attempts = try s.backend.attempts(ids[index])
        #expect(attempts.map { $0["outcome"] } == ["dead_token"])
        #expect(attempts.first?["status"] == 410)
        #expect(attempts.first?["reason"] == "Unregistered")
        #expect(attempts.first?["apns_timestamp_at"] == Value(timestamp))
        #expect(attempts.first?["may_have_buzzed"] == 1)
        #expect(
          try s.backend.tokens("phone-\(index)").count == (stays ? 1 : 0), "timestamp \(timestamp ?? -1)")
        #expect(
          try s.backend.count("select count(*) from nudge_device where device_id = 'phone-\(index)'") == 1)
      }
      #expect(try peer.requests().count == cases.count)
    }
  }

  @Test("a token goes in the same transaction that records its 410")
  func sameTransaction() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule([.answer(410, reason: "Unregistered")])]))
      for number in 1...20 { try s.backend.register("phone-\(number)", token: token(number)) }
      _ = try s.worker(production: peer)
      try s.backend.nudge(["title": "T"])
      // Each look is one statement, so one snapshot: there is never a dead token that still stands, nor a token
      // gone without its attempt.
      var looks = 0
      try await eventually("all are gone") {
        let look = try s.backend.run(
          """
          select (select count(*) from nudge_attempt where outcome = 'dead_token') as dead,
            (select count(*) from nudge_token) as tokens
          """)[0]
        looks += 1
        #expect((look["dead"].integer ?? 0) + (look["tokens"].integer ?? 0) == 20)
        return look["dead"] == 20
      }
      #expect(looks > 1)
      #expect(try s.backend.count("select count(*) from nudge_dead_tokens") == 20)
    }
  }

  @Test("410 drops every row that carries the token, of whatever kind, and no other")
  func everyKind() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(tokens: [token(1): .dead]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-1", token: token(1), kind: "voip")
      try s.backend.register("phone-1", token: token(2), kind: "location")
      try s.backend.register("phone-2", token: token(3))
      try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      try await s.drain(production: peer)
      #expect(try s.backend.tokens().map { $0["token"].text } == [token(2), token(3)])
    }
  }

  @Test("a token registered again while its 410 is on the way stays")
  func registeredMeanwhile() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule([.hold(s.path("go")), .answer(410, reason: "Unregistered")])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      try s.backend.register("phone-1", token: token(1), registeredAt: now(plus: 1))
      try s.release("go")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["dead_token"])
      #expect(try s.backend.tokens("phone-1").count == 1)
    }
  }

  @Test(
    "BadDeviceToken is tried once on the other host, and what worked is remembered", arguments: Stack.allCases
  )
  func discovery(_ stack: Stack) async throws {
    try await scenario { s in
      let production = try await s.peer(stack, PeerScript(tokens: [token(1): .wrong]))
      let sandbox = try await s.peer(stack)
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: production, sandbox: sandbox)
      let first = try s.backend.nudge(["title": "first"])
      try await s.backend.settled(first)
      let attempts = try s.backend.attempts(first)
      #expect(attempts.map { $0["outcome"] } == ["wrong_host", "accepted"])
      #expect(attempts.map { $0["environment"] } == ["production", "sandbox"])
      #expect(attempts.map { $0["may_have_buzzed"] } == [nil, 1])
      #expect(Set(attempts.compactMap { $0["apns_id"].text }).count == 2)
      let known = try #require(try s.backend.tokens().first)
      #expect(known["environment"] == "sandbox")
      #expect(known["proven_at"].integer != nil)

      // What the app says at its next launch does not outweigh what was proven.
      try s.backend.register("phone-1", token: token(1), environment: "production")
      let second = try s.backend.nudge(["title": "second"])
      try await s.backend.settled(second)
      #expect(try s.backend.outcomes(second) == ["accepted"])
      #expect(try production.requests().count == 1)
      #expect(try sandbox.requests().map { $0.alert["title"] as? String } == ["first", "second"])
    }
  }

  @Test("a token that both hosts refuse is set aside, kept, and tried again when it is registered again")
  func badOnBoth() async throws {
    try await scenario { s in
      let production = try await s.peer(.python, PeerScript(tokens: [token(1): .wrong]))
      let sandbox = try await s.peer(.python, PeerScript(tokens: [token(1): .wrong]))
      try s.backend.register("phone-1", token: token(1))
      let first = try s.backend.nudge()
      try await s.drain(production: production, sandbox: sandbox)
      #expect(try s.backend.outcomes(first) == ["wrong_host", "wrong_host"])
      #expect(try s.backend.state(first) == "attempted")
      let kept = try #require(try s.backend.tokens().first)
      #expect(kept["rejected_at"].integer != nil)
      #expect(kept["environment"] == .null)

      let second = try s.backend.nudge()
      try await s.drain(production: production, sandbox: sandbox)
      #expect(try s.backend.state(second) == "unaddressed")
      #expect(try production.requests().count == 1)
      #expect(try sandbox.requests().count == 1)

      try s.backend.register("phone-1", token: token(1))
      #expect(try s.backend.tokens().first?["rejected_at"] == .null)
      try sandbox.script(PeerScript())
      let third = try s.backend.nudge()
      try await s.drain(production: production, sandbox: sandbox)
      #expect(try s.backend.outcomes(third) == ["wrong_host", "accepted"])
    }
  }

  @Test("a host without a key is never dialled")
  func hostWithoutKey() async throws {
    try await scenario { s in
      let production = try await s.peer(.python, PeerScript(tokens: [token(1): .wrong]))
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let result = try await s.nudged([
        "run", "--drain", "--database", s.database, "--ca-file", s.credentials.authority,
        "--team-id", Credentials.teamID, "--production-url", production.url, "--sandbox-url", sandbox.url,
        "--production-key-file", s.credentials.providerKey,
      ])
      #expect(result.exit == .code(0), "\(result.errors)")
      #expect(try s.backend.outcomes(id) == ["wrong_host"])
      #expect(try s.backend.tokens().first?["rejected_at"].integer != nil)
      #expect(try sandbox.events("connected").isEmpty)
    }
  }

  @Test(
    "a topic that does not fit keeps every token",
    arguments: [("DeviceTokenNotForTopic", 50), ("BadMessageId", 50)])
  func keepsTokens(_ reason: String, _ expected: Int) async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule([.answer(400, reason: reason)])]))
      for number in 1...50 { try s.backend.register("phone-\(number)", token: token(number)) }
      let id = try s.backend.nudge()
      _ = try s.worker(production: peer)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == Array(repeating: "rejected", count: expected))
      #expect(try s.backend.tokens().count == 50)
      #expect(try s.backend.count("select count(*) from nudge_token where rejected_at is not null") == 0)
    }
  }

  @Test("unknown statuses and reasons are kept as they are and classified by status")
  func unknown() async throws {
    try await scenario { s in
      let cases: [(Int, String?, String)] = [
        (410, "SomethingNew", "dead_token"), (400, "SomethingNew", "rejected"), (299, nil, "rejected"),
        (307, nil, "rejected"), (418, "Teapot", "rejected"), (201, nil, "rejected"),
        (404, "BadPath", "rejected"),
        (413, "PayloadTooLarge", "rejected"), (405, "MethodNotAllowed", "rejected"),
      ]
      let rules = cases.enumerated().map { index, entry in
        Rule(token: token(index), [.answer(entry.0, reason: entry.1)])
      }
      let peer = try await s.peer(.python, PeerScript(rules: rules))
      var ids: [Int64] = []
      for index in cases.indices {
        try s.backend.register("phone-\(index)", token: token(index))
        ids.append(try s.backend.nudge(["title": "T", "device_id": .text("phone-\(index)")]))
      }
      try await s.drain(production: peer)
      for (index, (status, reason, outcome)) in cases.enumerated() {
        let attempt = try #require(try s.backend.attempts(ids[index]).first)
        #expect(attempt["outcome"] == .text(outcome), "\(status)")
        #expect(attempt["status"] == .integer(Int64(status)))
        #expect(attempt["reason"] == Value(reason))
        #expect(try s.backend.tokens("phone-\(index)").count == (status == 410 ? 0 : 1), "\(status)")
        #expect(try s.backend.tokens("phone-\(index)").allSatisfy { $0["proven_at"].isNull })
      }
      #expect(try peer.requests().count == cases.count)
    }
  }

  @Test("empty, foreign, cut and huge bodies keep their status", arguments: Stack.allCases)
  func bodies(_ stack: Stack) async throws {
    try await scenario { s in
      let cases: [(Step, Int64, String?, String)] = [
        (.answer(400, body: ""), 400, nil, "rejected"),
        (.answer(400, body: "<html><body>Bad Gateway</body></html>"), 400, nil, "rejected"),
        (.answer(400, body: #"{"reason":"BadTo"#), 400, nil, "rejected"),
        (.answer(400, body: #"{"reason":17}"#), 400, nil, "rejected"),
        (.answer(400, body: #"["reason"]"#), 400, nil, "rejected"),
        (.answer(400, bodySize: 1 << 20), 400, nil, "rejected"),
        (.answer(410, bodySize: 1 << 20), 410, nil, "dead_token"),
        (.answer(200, body: "thanks", echoesID: false), 200, nil, "accepted"),
        (
          .answer(400, body: #" { "x" : [ {"reason":"no"} ], "reason" : "Bad\u0054hing" } "#), 400,
          "BadThing", "rejected"
        ),
      ]
      let rules = cases.enumerated().map { Rule(token: token($0), [$1.0]) }
      let peer = try await s.peer(stack, PeerScript(rules: rules))
      var ids: [Int64] = []
      for index in cases.indices {
        try s.backend.register("phone-\(index)", token: token(index))
        ids.append(try s.backend.nudge(["title": "T", "device_id": .text("phone-\(index)")]))
      }
      try await s.drain(production: peer)
      for (index, (step, status, reason, outcome)) in cases.enumerated() {
        let attempt = try #require(try s.backend.attempts(ids[index]).first)
        #expect(attempt["outcome"] == .text(outcome), "\(step)")
        #expect(attempt["status"] == .integer(status), "\(step)")
        #expect(attempt["reason"] == Value(reason), "\(step)")
      }
    }
  }

  @Test("a status counts even when its body never ends")
  func bodyWithoutEnd() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [
          Rule(token: token(1), [.answer(200, ends: false), .reset(.internal)]),
          Rule(token: token(2), [.answer(400, body: #"{"reason":"Half"#, ends: false), .abort]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      let first = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      let second = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      _ = try s.worker(production: peer)
      try await s.backend.settled(first)
      try await s.backend.settled(second)
      #expect(try s.backend.outcomes(first) == ["accepted"])
      #expect(try s.backend.outcomes(second) == ["rejected"])
      #expect(try s.backend.attempts(second).first?["status"] == 400)
      #expect(try s.backend.attempts(second).first?["reason"] == .null)
    }
  }

  @Test("a hundred answers with bodies leave the connection able to read the next")
  func credit() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [
          Rule(
            token: token(1),
            [.answer(400, body: #"{"reason":"X","pad":""# + String(repeating: "p", count: 1000) + #""}"#)])
        ]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      for _ in 1...150 { try s.backend.nudge(["title": "T", "device_id": "phone-1"]) }
      let last = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(last) == ["accepted"])
      #expect(try s.backend.count("select count(*) from nudge_attempt where reason = 'X'") == 150)
      #expect(try peer.events("connected").count == 1)
    }
  }
}
