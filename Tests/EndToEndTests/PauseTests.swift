import Foundation
import Testing

@Suite("Pauses")
struct PauseTests {
  @Test("403 pauses the host: of a backlog of 1,000 few are burned, and the rest goes once it recovers")
  func forbidden() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(403, reason: "InvalidProviderToken")])]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000)
        insert into nudge_outbox (title) select 'row ' || i from n;
        """)
      let worker = try s.worker(production: peer)
      try await eventually("a refusal is recorded") {
        try s.backend.count("select count(*) from nudge_attempt where outcome = 'rejected'") >= 1
      }
      try peer.script(PeerScript())
      try await eventually("everything is settled", within: .seconds(30)) {
        try s.backend.states() == ["attempted": 1000]
      }
      #expect(try s.backend.count("select count(*) from nudge_attempt where status = 403") <= 2)
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 1000)
      #expect(try s.backend.tokens().count == 1)
      #expect(worker.errors.contains("InvalidProviderToken"))
      #expect(worker.errors.split(separator: "\n").count < 200 || !worker.errors.contains("row 1"))
    }
  }

  @Test("a refused host leaves its rows, and --drain says so; the other host's rows go")
  func drainLeaves() async throws {
    try await scenario { s in
      let production = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(403, reason: "Forbidden")])]))
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1), environment: "production")
      try s.backend.register("phone-2", token: token(2), environment: "sandbox")
      for _ in 1...10 { try s.backend.nudge(["title": "T", "device_id": "phone-1"]) }
      for _ in 1...10 { try s.backend.nudge(["title": "T", "device_id": "phone-2"]) }
      try await s.drain(production: production, sandbox: sandbox, exit: 69)
      #expect(try s.backend.states() == ["attempted": 11, "pending": 9])
      #expect(try production.requests().count == 1)
      #expect(try sandbox.requests().count == 10)
    }
  }

  @Test("429 TooManyRequests pauses that device alone")
  func tooManyRequests() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(token: token(1), [.answer(429, reason: "TooManyRequests")])]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      _ = try s.worker(production: peer)
      let first = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      try await s.backend.settled(first)
      #expect(try s.backend.outcomes(first) == ["rejected"])
      let waits = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      for _ in 1...5 {
        let other = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
        try await s.backend.settled(other)
        #expect(try s.backend.outcomes(other) == ["accepted"])
      }
      #expect(try s.backend.state(waits) == "pending")
      #expect(try peer.requests().filter { $0.token == token(1) }.count == 1)
    }
  }

  @Test("429 TooManyProviderTokenUpdates pauses every host of the key and keeps the provider token")
  func tooManyTokenUpdates() async throws {
    try await scenario { s in
      let production = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(429, reason: "TooManyProviderTokenUpdates")])]))
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1), environment: "production")
      try s.backend.register("phone-2", token: token(2), environment: "sandbox")
      _ = try s.worker(production: production, sandbox: sandbox)
      let proof = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await s.backend.settled(proof)
      let refused = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      try await s.backend.settled(refused)
      let ids = try ["phone-1", "phone-2"].map {
        try s.backend.nudge(["title": "T", "device_id": .text($0)])
      }
      // Something that the worker does settle proves that it has passed these two by.
      let passed = try s.backend.nudge(["title": "T", "recipient": "nobody"])
      try await s.backend.settled(passed, as: "unaddressed")
      for id in ids { #expect(try s.backend.state(id) == "pending") }
      #expect(try production.requests().count == 1)
      #expect(try sandbox.requests().count == 1)
      let tokens = try (production.requests() + sandbox.requests()).compactMap { $0.header("authorization") }
      #expect(Set(tokens).count == 1)
      #expect(try s.backend.tokens().count == 2)
    }
  }

  @Test("an expired provider token is minted once more, and not in a loop")
  func expiredProviderToken() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(403, reason: "ExpiredProviderToken")])]))
      try s.backend.register("phone-1", token: token(1))
      for _ in 1...10 { try s.backend.nudge() }
      let worker = try s.worker(production: peer)
      try await peer.waitForRequests(2, within: .seconds(20))
      // A third would come after the doubled pause: what counts is which provider token it carries.
      try await peer.waitForRequests(3, within: .seconds(30))
      #expect(Set(try peer.requests().compactMap { $0.header("authorization") }).count == 2)
      #expect(Set(try peer.requests().compactMap(\.connection)).count >= 2)
      #expect(try s.backend.tokens().count == 1)
      #expect(worker.isRunning)
    }
  }

  @Test("three 5xx in a row pause the host and retire the connection")
  func serverErrors() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(500, reason: "InternalServerError")])]))
      try s.backend.register("phone-1", token: token(1))
      for _ in 1...10 { try s.backend.nudge() }
      _ = try s.worker(production: peer)
      try await eventually("three failures are recorded") {
        try s.backend.count("select count(*) from nudge_attempt where status = 500") >= 3
      }
      try peer.script(PeerScript())
      try await eventually("everything is settled", within: .seconds(30)) {
        try s.backend.states() == ["attempted": 10]
      }
      let requests = try peer.requests()
      #expect(try s.backend.count("select count(*) from nudge_attempt where status = 500") == 3)
      try #require(requests.count == 10)
      #expect(requests[3].atMs - requests[2].atMs > 2500)
      #expect(requests[3].connection != requests[2].connection)
    }
  }

  @Test("a disallowed topic pauses that topic on that host, keeps every token and is said loudly once")
  func topicDisallowed() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [Rule(topic: "app.example.other", [.answer(400, reason: "TopicDisallowed")])]))
      for number in 1...50 {
        try s.backend.register(
          "other-\(number)", token: token(number), recipient: "other", topic: "app.example.other")
      }
      try s.backend.register("phone-1", token: token(100))
      let worker = try s.worker(production: peer)
      // The topic that works first, so that the connection is proven and many would be in flight.
      let proof = try s.backend.nudge()
      try await s.backend.settled(proof)
      let refused = try s.backend.nudge(["title": "T", "recipient": "other", "device_id": "other-1"])
      try await s.backend.settled(refused)
      #expect(try s.backend.outcomes(refused) == ["rejected"])
      let waits = try s.backend.nudge(["title": "T", "recipient": "other"])
      let flows = try s.backend.nudge()
      try await s.backend.settled(flows)
      #expect(try s.backend.state(waits) == "pending")
      #expect(try peer.requests().filter { $0.topic == "app.example.other" }.count == 1)
      #expect(try s.backend.tokens().count == 51)
      #expect(worker.errors.split(separator: "\n").filter { $0.contains("TopicDisallowed") }.count >= 1)
    }
  }

  @Test(
    "a key that is wrong for a host teaches nothing about tokens, and the other host flows",
    arguments: ["BadEnvironmentKeyInToken", "BadEnvironmentKeyIdInToken"])
  func wrongKeyForHost(_ reason: String) async throws {
    try await scenario { s in
      let production = try await s.peer(.python, PeerScript(rules: [Rule([.answer(403, reason: reason)])]))
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      _ = try s.worker(production: production, sandbox: sandbox)
      let first = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      try await s.backend.settled(first)
      #expect(try s.backend.outcomes(first) == ["rejected"])
      #expect(try s.backend.tokens("phone-1").first?["environment"] == .null)
      let second = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await s.backend.settled(second)
      #expect(try s.backend.attempts(second).map { $0["environment"] } == ["sandbox"])
      #expect(try s.backend.outcomes(second) == ["accepted"])
      #expect(try s.backend.tokens("phone-2").first?["environment"] == "sandbox")
    }
  }

  @Test("rows that wait for a paused device or a paused host still expire in time")
  func expiresWhilePaused() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [
          Rule(token: token(1), [.answer(429, reason: "TooManyRequests")]),
          Rule(token: token(2), [.answer(403, reason: "Forbidden")]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2))
      _ = try s.worker(production: peer)
      for device in ["phone-1", "phone-2"] {
        try await s.backend.settled(try s.backend.nudge(["title": "T", "device_id": .text(device)]))
        let expiry = now(plus: 1200)
        let waits = try s.backend.nudge([
          "title": "T", "device_id": .text(device), "expires_at": .integer(expiry),
        ])
        try await s.backend.settled(waits, as: "expired", within: .seconds(6))
        let settled = try #require(try s.backend.row(waits)["settled_at"].integer)
        #expect(settled >= expiry)
      }
      #expect(try peer.requests().count == 2)
    }
  }

  @Test("a host that takes connections and says nothing holds neither the other host nor the end")
  func muteHost() async throws {
    try await scenario { s in
      let production = try await s.peer()
      let sandbox = try await s.peer()
      production.freeze()
      try s.backend.register("phone-1", token: token(1), environment: "production")
      try s.backend.register("phone-2", token: token(2), environment: "sandbox")
      let worker = try s.worker(production: production, sandbox: sandbox, ["--stop-timeout", "10m"])
      let waits = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      for _ in 1...5 {
        try await s.backend.settled(
          try s.backend.nudge(["title": "T", "device_id": "phone-2"]), within: .seconds(5))
      }
      #expect(try s.backend.state(waits) == "pending")
      worker.signal(15)
      #expect(try await worker.wait(within: .seconds(3)) == .code(0))
      production.thaw()
      try await s.drain(production: production, sandbox: sandbox)
      #expect(try s.backend.outcomes(waits) == ["accepted"])
    }
  }
}
