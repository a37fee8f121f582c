import Foundation
import Testing

@Suite("Live Activities: tokens, waiting, the end")
struct ActivityTests {
  /// What else is going on while an update token is registered.
  enum Meanwhile: CaseIterable {
    case nothing, pausedHost, otherInFlight
  }

  @Test(
    "a registration wakes what waits within milliseconds, whatever else waits", arguments: Meanwhile.allCases)
  func wakes(_ meanwhile: Meanwhile) async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(token: updateToken(9), [])]))
      let closed = try await s.peer()
      closed.end()
      let ids = try (1...12).map { number in
        try s.backend.register("phone-\(number)", token: nil)
        return try s.backend.activity(
          "update", ["device_id": .text("phone-\(number)"), "activity_id": .text("turn-\(number)")])
      }
      let worker = try s.worker(production: peer, sandbox: closed, ["--poll-interval", "1h"])
      for id in ids { try await s.backend.waits(id) }
      switch meanwhile {
      case .nothing: break
      case .pausedHost:
        try s.backend.register("phone-9", token: token(9), environment: "sandbox")
        for _ in 1...20 { try s.backend.nudge(["title": "T", "device_id": "phone-9"]) }
        try await eventually("the host is paused") { worker.errors.contains("pause=") }
      case .otherInFlight:
        // The host is proven, so that one request does not keep others from it.
        try s.backend.registerStart(9)
        try await s.backend.settled(
          try s.backend.activity("start", ["device_id": "phone-9", "activity_id": "9"]))
        try s.backend.registerUpdate(9, "other")
        for _ in 1...2 {
          try s.backend.activity("update", ["device_id": "phone-9", "activity_id": "other"])
        }
        try await peer.waitForRequests(2)
      }
      var latencies: [Double] = []
      for (index, id) in ids.enumerated() where index + 1 != 9 {
        let number = index + 1
        let times = try s.backend.transaction([
          .init(
            """
            insert into nudge_registration (device_id, kind, scope, token, environment)
            values (?, 'activity_update', ?, ?, 'production')
            """,
            [.text("phone-\(number)"), .text("turn-\(number)"), .text(updateToken(number))])
        ])
        try await s.backend.settled(id, within: .seconds(5))
        let request = try #require(try peer.requests().last)
        #expect(request.token == updateToken(number))
        latencies.append(request.atMs - times.after)
      }
      latencies.sort()
      #expect(latencies[latencies.count / 2] < 250, "median of \(latencies) ms")
    }
  }

  @Test(
    "what waits outlives the worker, however it ends and whenever the token comes",
    arguments: [SIGTERM, SIGKILL], [false, true])
  func restart(_ signal: Int32, _ comesMeanwhile: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.registerStart(1)
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.activity("start"))
      let update = try s.backend.activity("update")
      try await s.backend.waits(update)
      let end = try s.backend.activity("end", ["content_state": #"{"step":2}"#])
      try await s.backend.waits(end)
      worker.signal(signal)
      #expect(try await worker.wait() == (signal == SIGKILL ? .signal(SIGKILL) : .code(0)))
      if comesMeanwhile { try s.backend.registerUpdate(1) }
      _ = try s.worker(production: peer)
      if !comesMeanwhile {
        // The new worker works, and leaves what waits.
        try s.backend.registerStart(2)
        try await s.backend.settled(
          try s.backend.activity("start", ["device_id": "phone-2", "activity_id": "2"]))
        #expect(try s.backend.state(end) == "waiting")
        try s.backend.registerUpdate(1)
      }
      try await s.backend.settled(end)
      #expect(try peer.requests().filter { $0.token == updateToken(1) }.map(\.step) == [2])
      #expect(try s.backend.state(update) == "superseded")
      #expect(try s.backend.row(update)["detail"].text == "by nudge \(end)")
      #expect(try s.backend.updateTokens() == [])
    }
  }

  @Test("`nudged register` wakes as the view does")
  func command() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.registerStart(1)
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      let update = try s.backend.activity("update")
      try await s.backend.waits(update)
      let result = try await s.nudged([
        "register", "--database", s.database, "--device", "phone-1", "--kind", "activity_update", "--scope",
        "turn", "--token", updateToken(1), "--environment", "production",
      ])
      #expect(result.exit == .code(0), "\(result.errors)")
      try await s.backend.settled(update, within: .seconds(5))
      #expect(try peer.requests().map(\.token) == [updateToken(1)])
    }
  }

  @Test(
    "a token that comes while the start's answer is held stays, and the update goes",
    arguments: Stack.allCases)
  func heldStart(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        stack, PeerScript(rules: [Rule(token: startToken(1), [.wait(milliseconds: 2000), .answer()])]))
      try s.backend.registerStart(1)
      _ = try s.worker(production: peer)
      let start = try s.backend.activity("start")
      try await peer.waitForRequests(1)
      try s.backend.registerUpdate(1)
      let update = try s.backend.activity("update")
      try await s.backend.settled(update)
      #expect(try s.backend.outcomes(start) == ["accepted"])
      #expect(try s.backend.outcomes(update) == ["accepted"])
      #expect(try s.backend.updateTokens() == [updateToken(1)])
      let requests = try peer.requests()
      #expect(requests.map(\.activityEvent) == ["start", "update"])
      // One at a time: not before the answer.
      #expect(requests[1].atMs - requests[0].atMs > 1900)

      // It is the activity's token all the same: when the user swipes the card away, that is the end.
      try peer.script(PeerScript(tokens: [updateToken(1): .dead]))
      try await s.backend.settled(try s.backend.activity("update"))
      let end = try s.backend.activity("end")
      try await s.backend.settled(end, as: "unaddressed")
      #expect(try s.backend.row(end)["detail"].text == "activity over")
      #expect(try peer.requests().count == 3)
    }
  }

  @Test(
    "a late answer never takes away a token that was renewed meanwhile",
    arguments: [("update", 410), ("end", 410), ("end", 200)])
  func lateAnswer(_ event: String, _ status: Int) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let answer: Step = .answer(status, reason: status == 410 ? "Unregistered" : nil)
      try peer.script(PeerScript(rules: [Rule(token: updateToken(1), [.hold(s.path("go")), answer])]))
      try s.backend.registerUpdate(1)
      _ = try s.worker(production: peer)
      let first = try s.backend.activity(event)
      try await peer.waitForRequests(1)
      try s.backend.registerUpdate(1, token: updateToken(2))
      try s.release("go")
      try await s.backend.settled(first)
      #expect(try s.backend.updateTokens() == [updateToken(2)])
      let next = try s.backend.activity("update")
      // After an accepted end the activity is over; a 410 was about the old token only.
      try await s.backend.settled(next, as: status == 200 ? "unaddressed" : "attempted")
      #expect(
        try peer.requests().map(\.token)
          == (status == 200 ? [updateToken(1)] : [updateToken(1), updateToken(2)]))
    }
  }

  @Test("a card that was swiped away stays away; a new start begins anew", arguments: ["update", "end"])
  func swipedAway(_ event: String) async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(tokens: [updateToken(1): .dead]))
      try s.backend.registerStart(1)
      _ = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.activity("start"))
      try s.backend.registerUpdate(1)
      let swiped = try s.backend.activity(event)
      try await s.backend.settled(swiped)
      #expect(try s.backend.outcomes(swiped) == ["dead_token"])
      #expect(try s.backend.updateTokens() == [])
      for event in ["update", "end"] {
        let late = try s.backend.activity(event)
        try await s.backend.settled(late, as: "unaddressed")
        #expect(try s.backend.row(late)["detail"].text == "activity over")
        #expect(try s.backend.outcomes(late) == [])
      }
      #expect(try peer.requests().count == 2)

      try await s.backend.settled(try s.backend.activity("start"))
      let again = try s.backend.activity("update")
      try await s.backend.waits(again)
      try s.backend.registerUpdate(1, token: updateToken(2))
      try await s.backend.settled(again)
      #expect(try s.backend.outcomes(again) == ["accepted"])
      #expect(try peer.requests().map(\.activityEvent) == ["start", event, "start", "update"])
    }
  }

  @Test(
    "there is no second start, whatever became of the first",
    arguments: [[.answer(500)], [.reset(.internal)], [.answer(410, reason: "Unregistered")], [.answer()]]
      as [[Step]])
  func oneStart(_ steps: [Step]) async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(token: startToken(1), steps)]))
      try s.backend.registerStart(1)
      let worker = try s.worker(production: peer)
      let start = try s.backend.activity("start")
      try await s.backend.settled(start)
      let update = try s.backend.activity("update")
      try await s.backend.waits(update)
      try s.backend.registerStart(1)
      worker.kill()
      _ = try s.worker(production: peer)
      let end = try s.backend.activity("end")
      try await s.backend.waits(end)
      #expect(try peer.requests().count == 1)
      #expect(try s.backend.state(update) == "superseded")
      try s.backend.registerUpdate(1)
      try await s.backend.settled(end)
      #expect(try peer.requests().map(\.activityEvent) == ["start", "end"])
      #expect(try s.backend.attempts(start).count == 1)
    }
  }
}
