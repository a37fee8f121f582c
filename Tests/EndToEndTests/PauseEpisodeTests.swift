import Foundation
import Testing

/// A backlog against hosts that fail in every way that begins a pause: few rows are burned, and the rest goes by itself
/// once the host behaves.
@Suite("Pauses: what a failing host burns")
struct PauseEpisodeTests {
  static let backlog = 2000

  private func fill(_ s: Scenario, device: String = "phone-1", count: Int = backlog) throws {
    try s.backend.script(
      """
      with recursive n(i) as (select 1 union all select i + 1 from n where i < \(count))
      insert into nudge_outbox (title, device_id) select 'row ' || i, '\(device)' from n;
      """)
  }

  /// Waits until the worker has said `words` so often.
  private func said(_ words: String, times: Int = 1, by worker: Child, within limit: Duration = .seconds(20))
    async throws
  {
    try await eventually("\(words), \(times) times", within: limit, state: { worker.errors }) {
      worker.errors.split(separator: "\n").filter { $0.contains(words) }.count >= times
    }
  }

  /// How a host fails: what its script does with every request, and how many rows may be burned before the second pause.
  enum Failing: String, CaseIterable, CustomTestStringConvertible {
    case forbidden, wrongKey, missingToken, serverError, unavailable, shutdown, reset, mixture, goaway,
      swallows

    var testDescription: String { rawValue }

    var rules: [Rule] {
      switch self {
      case .forbidden: [Rule([.answer(403, reason: "Forbidden")])]
      case .wrongKey: [Rule([.answer(403, reason: "InvalidProviderToken")])]
      case .missingToken: [Rule([.answer(403, reason: "SomethingNew")])]
      case .serverError: [Rule([.answer(500, reason: "InternalServerError")])]
      case .unavailable: [Rule([.answer(503, body: "<html>busy</html>")])]
      case .shutdown: [Rule([.answer(503, reason: "Shutdown")])]
      case .reset: [Rule([.reset(.internal)])]
      case .mixture:
        [
          Rule(request: 1, [.answer(500, reason: "InternalServerError")]),
          Rule(request: 2, [.reset(.internal)]),
          Rule([.answer(502)]),
        ]
      case .goaway: [Rule([.goaway(last: 1)])]
      case .swallows: [Rule([.close])]
      }
    }
  }

  @Test("a backlog loses a handful to a host that fails, and goes once it works", arguments: Failing.allCases)
  func handful(_ failing: Failing) async throws {
    try await scenario { s in
      let production = try await s.peer(.python, PeerScript(rules: failing.rules))
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1), environment: "production")
      try s.backend.register("phone-2", token: token(2), environment: "sandbox")
      try fill(s)
      let worker = try s.worker(production: production, sandbox: sandbox, ["--answer-timeout", "5s"])
      // The second pause is longer than the first: by then the first failures have been counted as one.
      try await said("pause=", times: 2, by: worker, within: .seconds(40))
      // The other host flows meanwhile.
      let other = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      try await s.backend.settled(other)
      #expect(try s.backend.outcomes(other) == ["accepted"])
      let burned = try s.backend.count("select count(*) from nudge_attempt where device_id = 'phone-1'")
      #expect((1...9).contains(burned), "\(burned) of \(Self.backlog)")
      #expect(try production.requests().count <= 9)
      try production.script(PeerScript())
      try await eventually("everything is settled", within: .seconds(60), state: { worker.errors }) {
        try s.backend.states() == ["attempted": Self.backlog + 1]
      }
      let accepted = try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'")
      #expect(accepted >= Self.backlog + 1 - 12)
      #expect(try production.requests().count == Self.backlog)
      #expect(try s.backend.tokens().count == 2)
      #expect(worker.errors.split(separator: "\n").filter { $0.contains("pause=") }.count < 12)
    }
  }

  @Test("a host that ends each connection at once is dialled with growing gaps", arguments: [true, false])
  func endsAtOnce(_ politely: Bool) async throws {
    try await scenario { s in
      let steps: [RawStep] = politely ? [.settings([]), .goaway(last: 0), .close] : [.close]
      let peer = try await s.peer(.raw, RawScript(hello: steps))
      try s.backend.register("phone-1", token: token(1))
      for _ in 1...5 { try s.backend.nudge() }
      let worker = try s.worker(production: peer)
      try await eventually("three dials", state: { worker.errors }) {
        try peer.events("connected").count >= 3
      }
      let dials = try peer.events("connected").map(\.atMs)
      #expect(dials[1] - dials[0] > 900)
      #expect(dials[2] - dials[1] > 1900)
      #expect(try s.backend.count("select count(*) from nudge_attempt where may_have_buzzed = 1") == 0)
      try peer.script(RawScript())
      try await eventually("everything is settled", within: .seconds(30)) {
        try s.backend.states() == ["attempted": 5]
      }
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 5)
    }
  }

  @Test("a hundred answers in flight that say the same are one episode")
  func oneEpisode() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(
          rules: [
            Rule(request: 1, [.answer()]),
            Rule(connection: 1, [.hold(s.path("go")), .answer(403, reason: "InvalidProviderToken")]),
            Rule(connection: 2, [.answer(403, reason: "InvalidProviderToken")]),
          ], maxConcurrentStreams: 100))
      try s.backend.register("phone-1", token: token(1))
      try fill(s, count: 300)
      let worker = try s.worker(production: peer, ["--connections", "1"])
      try await peer.waitForRequests(101)
      try s.release("go")
      try await eventually("the second refusal", within: .seconds(20)) { try peer.requests().count == 102 }
      try await said("refuses our credentials", times: 2, by: worker)
      let pauses = worker.errors.split(separator: "\n").filter { $0.contains("refuses our credentials") }
      try #require(pauses.count == 2)
      // 5 s and then 10 s, each with up to a tenth of jitter.
      #expect(pauses[0].contains("pause=5"), "\(pauses[0])")
      #expect(pauses[1].contains("pause=10"), "\(pauses[1])")
      let requests = try peer.requests()
      #expect(requests[101].atMs - requests[100].atMs > 4900)
      #expect(requests[101].connection == 2)
    }
  }

  @Test("a pause ends with one probe, and only its answer lets the others go")
  func probe() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(rules: [
          Rule(request: 1, [.answer(403, reason: "InvalidProviderToken")]),
          Rule(request: 2, [.hold(s.path("go")), .answer(400, reason: "BadPriority")]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      try fill(s, count: 50)
      _ = try s.worker(production: peer)
      try await peer.waitForRequests(2, within: .seconds(20))
      // Settled rows prove that the worker goes on claiming, and that it claims nothing here.
      for _ in 1...3 {
        let passed = try s.backend.nudge(["title": "T", "recipient": "nobody"])
        try await s.backend.settled(passed, as: "unaddressed")
      }
      #expect(try peer.requests().count == 2)
      try s.release("go")
      try await eventually("the rest goes") { try s.backend.states() == ["attempted": 50, "unaddressed": 3] }
      #expect(try peer.requests().count == 50)
    }
  }

  @Test("an expired provider token once: one new one on a new connection, and rows flow without a pause")
  func expiredOnce() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(connection: 1, [.answer(403, reason: "ExpiredProviderToken")])]))
      try s.backend.register("phone-1", token: token(1))
      // `iat` is in whole seconds: a new token in the same second is told apart by its signature.
      try fill(s, count: 200)
      let worker = try s.worker(production: peer)
      try await eventually("everything is settled", state: { worker.errors }) {
        try s.backend.states() == ["attempted": 200]
      }
      #expect(try s.backend.count("select count(*) from nudge_attempt where status = 403") == 1)
      #expect(!worker.errors.contains("pause="))
      let byConnection = Dictionary(grouping: try peer.requests(), by: \.connection)
      #expect(byConnection[1]?.count == 1)
      let old = Set(byConnection[1]?.compactMap { $0.header("authorization") } ?? [])
      let new = Set(
        try peer.requests().filter { $0.connection != 1 }.compactMap { $0.header("authorization") })
      #expect(old.count == 1 && new.count == 1 && old != new)
      #expect(try s.backend.tokens().count == 1)
    }
  }

  @Test("503 Shutdown retires the connection: what is in flight on it is answered, the rest goes on the next")
  func shutdown() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(rules: [
          Rule(request: 2, [.hold(s.path("go")), .answer()]),
          Rule(request: 3, [.answer(503, reason: "Shutdown")]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      let held = try s.backend.nudge()
      try await peer.waitForRequests(2)
      let shut = try s.backend.nudge()
      try await s.backend.settled(shut)
      for _ in 1...3 { try await s.backend.settled(try s.backend.nudge()) }
      try s.release("go")
      try await s.backend.settled(held)
      #expect(try s.backend.outcomes(held) == ["accepted"])
      #expect(try s.backend.outcomes(shut) == ["rejected"])
      #expect(try peer.requests().map(\.connection) == [1, 1, 1, 2, 2, 2])
      #expect(!worker.errors.contains("pause="))
    }
  }

  @Test("topics that a host refuses wait, those that it takes flow", arguments: ["BadTopic", "MissingTopic"])
  func topic(_ reason: String) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(topic: "app.example.other", [.answer(400, reason: reason)])]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2), topic: "app.example.other")
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge(["title": "T", "device_id": "phone-2"]))
      try fill(s, device: "phone-2", count: 200)
      try fill(s, device: "phone-1", count: 200)
      try await eventually("the good topic flows", state: { worker.errors }) {
        try s.backend.states() == ["attempted": 201, "pending": 200]
      }
      #expect(try peer.requests().filter { $0.topic == "app.example.other" }.count == 1)
      let loud = worker.errors.split(separator: "\n").filter { $0.contains("topic refused") }
      #expect(loud.count == 1 && loud[0].contains("app.example.other") && loud[0].contains(reason))
      #expect(try s.backend.tokens().count == 2)
    }
  }

  @Test("the pauses of a device and of a topic end by themselves: after a minute, and after five")
  func longPauses() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [
          Rule(token: token(1), times: 1, [.answer(429, reason: "TooManyRequests")]),
          Rule(topic: "app.example.other", times: 1, [.answer(400, reason: "TopicDisallowed")]),
        ]))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-2", token: token(2), topic: "app.example.other")
      let clock = try ShiftedClock(in: s)
      let worker = try clock.worker(s.settings(production: peer))
      for device in ["phone-1", "phone-2"] {
        try await s.backend.settled(try s.backend.nudge(["title": "T", "device_id": .text(device)]))
      }
      let device = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
      let topic = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
      // What is settled behind them proves that they were looked at and left.
      func passed() async throws {
        let id = try s.backend.nudge(["title": "T", "recipient": "nobody"])
        try await s.backend.settled(id, as: "unaddressed")
      }
      try clock.set(seconds: 40)
      try await passed()
      #expect(try [device, topic].map { try s.backend.state($0) } == ["pending", "pending"])
      try clock.set(seconds: 62)
      try await s.backend.settled(device)
      #expect(try s.backend.outcomes(device) == ["accepted"])
      try clock.set(seconds: 270)
      try await passed()
      #expect(try s.backend.state(topic) == "pending")
      try clock.set(seconds: 302)
      try await s.backend.settled(topic)
      #expect(try s.backend.outcomes(topic) == ["accepted"])
      #expect(try peer.requests().count == 4)
      #expect(worker.isRunning)
    }
  }

  @Test("after an outage what lapsed is expired, unsent, and the rest goes once")
  func outage() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let port = peer.port
      peer.end()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let expiry = now(plus: 2500)
      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 200)
        insert into nudge_outbox (title, expires_at) select 'row ' || i, iif(i % 2, \(expiry), null) from n;
        """)
      try await eventually("what lapsed is expired", state: { worker.errors }) {
        try s.backend.states() == ["expired": 100, "pending": 100]
      }
      let back = try await s.peer(port: port)
      try await eventually("the rest goes", within: .seconds(30), state: { worker.errors }) {
        try s.backend.states() == ["expired": 100, "attempted": 100]
      }
      let titles = try back.requests().compactMap { $0.alert["title"] as? String }
      #expect(titles.count == 100 && Set(titles).count == 100)
      let even = titles.allSatisfy { ($0.split(separator: " ").last.flatMap { Int($0) } ?? 1) % 2 == 0 }
      #expect(even)
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 100)
    }
  }

  @Test("extra connections that fail leave the one that works alone")
  func extraConnections() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.wait(milliseconds: 100), .answer()])], maxConcurrentStreams: 10))
      try s.backend.register("phone-1", token: token(1))
      let path = try await PathBetween(to: peer, in: s)
      let settings = s.settings(production: peer).map { $0 == peer.url ? path.url : $0 }
      let worker = try s.start(["run"] + settings + ["--connections", "4"])
      try await s.backend.settled(try s.backend.nudge())
      try await path.refuse()
      try fill(s, count: 300)
      try await eventually("everything is settled", within: .seconds(30), state: { worker.errors }) {
        try s.backend.states() == ["attempted": 301]
      }
      #expect(path.count("refused") >= 1)
      let requests = try peer.requests()
      #expect(Set(requests.compactMap(\.connection)) == [1])
      // 300 requests by ten at 100 ms take 3 s; a pause of the whole host adds a second and a slow start each time.
      let gaps = zip(requests.dropFirst(2), requests.dropFirst()).map { $0.atMs - $1.atMs }
      #expect((gaps.max() ?? 0) < 900, "\(gaps.max() ?? 0) ms")
    }
  }
}
