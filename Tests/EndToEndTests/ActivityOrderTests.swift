import Foundation
import Testing

@Suite("Live Activities: the newest state, in order")
struct ActivityOrderTests {
  @Test("one request at a time; what comes meanwhile goes as one, the newest, and an end before all updates")
  func oneInFlight() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.registerUpdate(1)
      try s.backend.registerUpdate(1, "other", token: updateToken(9))
      _ = try s.worker(production: peer)
      // A host that is not proven yet is asked one thing at a time anyway.
      try await s.backend.settled(try s.backend.activity("update", ["activity_id": "other"]))
      for (round, ending) in ["update", "end"].enumerated() {
        let gate = "go-\(round)"
        try peer.script(
          PeerScript(rules: [Rule(token: updateToken(1), times: 1, [.hold(s.path(gate)), .answer()])]))
        let previous = try peer.requests().count
        let first = try s.backend.activity("update", ["content_state": #"{"step":1}"#])
        try await peer.waitForRequests(previous + 1)
        let passed = try (2...3).map {
          try s.backend.activity("update", ["content_state": .text(#"{"step":\#($0)}"#)])
        }
        let last = try s.backend.activity(ending, ["content_state": #"{"step":4}"#])
        let late = try s.backend.activity("update", ["content_state": #"{"step":5}"#])
        // Neither alerts nor other activities wait for it.
        let others = try ["a", "b"].map {
          try s.backend.activity("update", ["activity_id": "other", "title": .text($0)])
        }
        try await s.backend.settled(try #require(others.last))
        try s.release(gate)
        let newest = ending == "end" ? last : late
        for id in [first, newest] { try await s.backend.settled(id) }
        for id in passed + (ending == "end" ? [] : [last]) {
          #expect(try s.backend.state(id) == "superseded", "\(s.backend.describe(id))")
          let newer = try s.backend.row(id)["detail"].text?.split(separator: " ").last.flatMap { Int64($0) }
          #expect(newer.map { $0 > id } == true, "\(s.backend.describe(id))")
        }
        if ending == "end" {
          try await eventually("the late update is settled") {
            ["superseded", "unaddressed"].contains(try s.backend.state(late))
          }
        }
        #expect(
          try peer.requests().dropFirst(previous).filter { $0.token == updateToken(1) }.map(\.step)
            == [1, ending == "end" ? 4 : 5])
      }
    }
  }

  /// How a peer says that it never processed a request.
  enum Unprocessed: CaseIterable {
    case refused, goaway

    var steps: [Step] {
      switch self {
      case .refused: [.reset(.refused)]
      case .goaway: [.goaway(last: 1), .close]
      }
    }
  }

  @Test(
    "what comes back unprocessed goes again if it is the newest, and not at all behind a newer one",
    arguments: Unprocessed.allCases, [false, true])
  func unsent(_ way: Unprocessed, _ hasNewer: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.registerStart(1)
      _ = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.activity("start"))
      try s.backend.registerUpdate(1)
      try peer.script(
        PeerScript(rules: [Rule(token: updateToken(1), times: 1, [.hold(s.path("go"))] + way.steps)]))
      let first = try s.backend.activity("update", ["content_state": #"{"step":1}"#])
      try await peer.waitForRequests(2)
      let second = hasNewer ? try s.backend.activity("update", ["content_state": #"{"step":2}"#]) : nil
      try s.release("go")
      try await s.backend.settled(second ?? first)
      try await s.backend.settled(first)
      #expect(try s.backend.outcomes(first) == (hasNewer ? ["unsent"] : ["unsent", "accepted"]))
      let requests = try peer.requests()
      #expect(requests.map(\.step) == [1, 1, hasNewer ? 2 : 1])
      // Nothing is repeated, not even the timestamp of what was never seen.
      let stamps = requests.compactMap(\.timestamp)
      #expect(stamps == stamps.sorted() && Set(stamps).count == 3)
      #expect(Set(requests.compactMap { $0.header("apns-id") }).count == 3)
    }
  }

  /// When the worker is killed between an end for two phones and the token of the second.
  enum Between: CaseIterable {
    case never, afterStart, duringStart, duringEnd, beforeToken, afterToken
  }

  @Test("an end for two phones reaches both, though one registers late", arguments: Between.allCases)
  func twoPhones(_ kill: Between) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for phone in 1...2 { try s.backend.registerStart(phone) }
      var worker = try s.worker(production: peer)
      func restart(_ place: Between) throws {
        guard kill == place else { return }
        worker.kill()
        try peer.script(PeerScript())
        worker = try s.worker(production: peer)
      }
      if kill == .duringStart { try peer.script(PeerScript(rules: [Rule(token: startToken(2), [])])) }
      let start = try s.backend.activity("start")
      try await peer.waitForRequests(2)
      if kill == .duringStart {
        try await eventually("one has answered") { try s.backend.outcomes(start).contains("accepted") }
      }
      try restart(.duringStart)
      try await s.backend.settled(start)
      try restart(.afterStart)
      try s.backend.registerUpdate(1)
      if kill == .duringEnd { try peer.script(PeerScript(rules: [Rule(token: updateToken(1), [])])) }
      let end = try s.backend.activity("end")
      try await peer.waitForRequests(3)
      try restart(.duringEnd)
      try await s.backend.waits(end)
      if kill == .afterToken {
        worker.kill()
        try s.backend.registerUpdate(2)
        worker = try s.worker(production: peer)
      } else {
        try restart(.beforeToken)
        try s.backend.registerUpdate(2)
      }
      try await s.backend.settled(end)
      #expect(
        try s.backend.outcomes(end) == [kill == .duringEnd ? "interrupted" : "accepted", "accepted"])
      #expect(
        try s.backend.outcomes(start).sorted()
          == ["accepted", kill == .duringStart ? "interrupted" : "accepted"])
      let requests = try peer.requests()
      #expect(requests.filter { $0.activityEvent == "end" }.map(\.token) == [updateToken(1), updateToken(2)])
      #expect(requests.filter { $0.activityEvent == "start" }.count == 2)
    }
  }

  @Test("the timestamp rises within an activity, across restarts and whatever the clock does")
  func timestamps() async throws {
    try await scenario { s in
      let clock = try ShiftedClock(in: s)
      try clock.set(seconds: 7200)
      let peer = try await s.peer()
      try s.backend.registerStart(1)
      var worker = try clock.worker(s.settings(production: peer))
      try await s.backend.settled(
        try s.backend.activity("start", ["expires_at": .integer(now(plus: 86_400_000))]))
      try s.backend.registerUpdate(1)
      // Hours back and forth, while it runs and between two runs; by none of these clocks anything is too old.
      for (round, seconds) in [7200, 3600, 0, 10_800, 7200, 0].enumerated() {
        if round % 2 == 1 { worker.kill() }
        try clock.set(seconds: seconds)
        if round % 2 == 1 { worker = try clock.worker(s.settings(production: peer)) }
        for _ in 1...2 { try await s.backend.settled(try s.backend.activity("update")) }
      }
      try await s.backend.settled(try s.backend.activity("end"))
      let stamps = try peer.requests().compactMap(\.timestamp)
      #expect(stamps.count == 14)
      #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $0 < $1 }, "\(stamps)")
      // What one phone has seen does not push another ahead.
      try s.backend.registerStart(2)
      try await s.backend.settled(try s.backend.activity("start", ["device_id": "phone-2"]))
      let other = try #require(try peer.requests().last?.timestamp)
      #expect(other < (stamps.last ?? 0) - 3600)
    }
  }

  @Test("rows that are judged ahead of their turn do not change what goes: each phone gets its own row whole")
  func judgedAhead() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for phone in 1...2 { try s.backend.registerUpdate(phone) }
      try s.backend.run("begin immediate")
      let all = try s.backend.activity("update", ["content_state": #"{"step":1}"#])
      let one = try s.backend.activity(
        "update", ["content_state": #"{"step":2}"#, "device_id": "phone-1", "priority": 10])
      let invalid = try s.backend.activity("update", ["content_state": "[]", "device_id": "phone-2"])
      try s.backend.run("commit")
      try await s.drain(production: peer)
      #expect(try s.backend.state(invalid) == "invalid")
      #expect(try s.backend.outcomes(all) == ["accepted"])
      #expect(try s.backend.outcomes(one) == ["accepted"])
      let requests = try peer.requests().sorted { ($0.token ?? "") < ($1.token ?? "") }
      #expect(requests.map(\.token) == [updateToken(1), updateToken(2)])
      #expect(requests.map(\.step) == [2, 1])
      #expect(requests.map { $0.header("apns-priority") } == ["10", "5"])
    }
  }

  @Test("two people may call their activities alike: neither's rows and tokens are the other's")
  func sharedID() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for (phone, name) in [(1, "anna"), (2, "bert")] { try s.backend.registerStart(phone, recipient: name) }
      _ = try s.worker(production: peer)
      let rows = try ["anna", "bert"].map { name in
        (
          start: try s.backend.activity("start", ["recipient": .text(name)]),
          update: try s.backend.activity("update", ["recipient": .text(name)])
        )
      }
      for row in rows { try await s.backend.waits(row.update) }
      try s.backend.registerUpdate(1, recipient: "anna")
      try await s.backend.settled(rows[0].update)
      // News of the activity lets every row that waits for it be looked at again for a moment.
      try await s.backend.waits(rows[1].update)
      let end = try s.backend.activity("end", ["recipient": "anna"])
      try await s.backend.settled(end)
      try await s.backend.waits(rows[1].update)
      // The phone changes hands: what waits for bert does not go to anna.
      try s.backend.register(
        "phone-2", token: updateToken(2), recipient: "anna", kind: "activity_update", scope: "turn")
      try s.backend.registerStart(3, recipient: "bert")
      try s.backend.registerUpdate(3, recipient: "bert")
      try await s.backend.settled(rows[1].update)
      #expect(
        try peer.requests().filter { $0.activityEvent != "start" }.map(\.token)
          == [updateToken(1), updateToken(1), updateToken(3)])
    }
  }

  @Test("a dated end goes at its time, past newer updates; a cancelled row supersedes nothing")
  func datedAndCancelled() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: nil)
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      let update = try s.backend.activity("update", ["content_state": #"{"step":1}"#])
      try await s.backend.waits(update)
      let cancelled = try s.backend.activity("end", ["device_id": "phone-1"])
      try await s.backend.waits(cancelled)
      try s.backend.run("update nudge_outbox set state = 'cancelled' where id = ?", [.integer(cancelled)])
      let due = now(plus: 2000)
      let end = try s.backend.activity(
        "end", ["not_before_at": .integer(due), "content_state": #"{"step":3}"#])
      try s.backend.registerUpdate(1)
      try await s.backend.settled(update)
      let newer = try s.backend.activity("update", ["content_state": #"{"step":2}"#])
      try await s.backend.settled(newer)
      try await s.backend.settled(end, within: .seconds(8))
      let requests = try peer.requests()
      #expect(requests.map(\.step) == [1, 2, 3])
      #expect(try #require(requests.last).atMs >= Double(due))
      #expect(try s.backend.state(cancelled) == "cancelled")
    }
  }
}
