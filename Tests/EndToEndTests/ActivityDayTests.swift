import Foundation
import Testing

@Suite("A whole day of Live Activities")
struct ActivityDayTests {
  @Test("each row of the day is accounted for, nothing was sent twice, and no phone has dropped anything")
  func day() async throws {
    try await scenario { s in
      let bench = try await Bench(s)
      var story: [(nudge: Int64, what: String, outcomes: [String], state: String)] = []
      func tell(_ nudge: Int64, _ what: String, _ outcomes: [String], _ state: String = "attempted")
        async throws
      {
        try await s.backend.settled(nudge, as: state)
        story.append((nudge, what, outcomes, state))
      }
      func row(
        _ event: String, _ activity: String, _ step: Int = 0, _ columns: KeyValuePairs<String, Value> = [:],
        attributes: String? = nil
      ) throws -> Int64 {
        var all = Backend.activityRow(event, columns)
        let own: [(key: String, value: Value)] = [
          ("activity_id", .text(activity)), ("content_state", .text(#"{"step":\#(step)}"#)),
          ("attributes", .text(attributes ?? #"{"activityId":"\#(activity)"}"#)),
        ]
        for column in own {
          all.removeAll { $0.key == column.key }
          all.append(column)
        }
        return try s.backend.insert("nudge_outbox", all)
      }

      // Both phones have the app from TestFlight. A message comes from the watch, the phones are in pockets.
      for number in 1...2 {
        try bench.launch("phone-\(number)", number, on: "production", saying: "production")
      }
      let twice = ["accepted", "accepted"]
      var start = try row("start", "turn-1")
      try await tell(start, "both cards are started by push", twice)
      let working = try row("update", "turn-1", 1)
      _ = try await bench.adopted("turn-1", by: 2)
      try await tell(working, "the update has waited for both tokens", twice)
      try s.backend.run("begin immediate")
      try s.backend.insert("message", ["text": "The report is ready."])
      var end = try row("end", "turn-1", 2, ["title": "Assistant", "body": "The report is ready."])
      var alert = try s.backend.nudge(["title": "Assistant", "event": "turn_finished"])
      try s.backend.run("commit")
      try await tell(end, "the reply's first breath ends both", twice)
      try await tell(alert, "and an alert for both", twice)

      // The second phone sleeps through its turn: no app ever adopts the card.
      let asleep = Value("phone-2")
      start = try row("start", "turn-2", 0, ["device_id": asleep], attributes: "{}")
      try await tell(start, "a card that nobody adopts", ["accepted"])
      let passed = try row("update", "turn-2", 1, ["device_id": asleep])
      try await s.backend.waits(passed)
      end = try row("end", "turn-2", 2, ["device_id": asleep, "expires_at": .integer(now(plus: 2000))])
      try await tell(passed, "the end has taken the update's place", [], "superseded")
      alert = try s.backend.nudge(["title": "Assistant", "device_id": asleep])
      try await tell(alert, "the answer lands on its lock screen all the same", ["accepted"])
      try await tell(end, "the end has run out of time", [], "expired")

      // A card is swiped away.
      let first = Value("phone-1")
      start = try row("start", "turn-3", 0, ["device_id": first])
      try await tell(start, "a third card", ["accepted"])
      let token = try await bench.adopted("turn-3")[0]
      let shown = try row("update", "turn-3", 1, ["device_id": first])
      try await tell(shown, "it works", ["accepted"])
      try bench.token(token, ["state": "unregistered"])
      let swiped = try row("update", "turn-3", 2, ["device_id": first])
      try await tell(swiped, "it is gone", ["dead_token"])
      end = try row("end", "turn-3", 3, ["device_id": first])
      try await tell(end, "so its end is not sent", [], "unaddressed")

      // The app on the first phone is removed and installed again: a new device for us, the old tokens die.
      for digits in [startToken(1), Bench.alertToken(1)] {
        try bench.token(digits, ["state": "unregistered"])
      }
      try bench.launch("phone-1-again", 3, on: "production", saying: "production")
      start = try row("start", "turn-4")
      try await tell(start, "the old start token is dead", ["dead_token", "accepted", "accepted"])
      _ = try await bench.adopted("turn-4", by: 2)
      end = try row("end", "turn-4", 1)
      alert = try s.backend.nudge(["title": "Assistant"])
      try await tell(end, "nobody waits for the old device", twice)
      try await tell(alert, "the old alert token is dead", ["dead_token", "accepted", "accepted"])

      // The second phone gets the app from Xcode. Its alert token has moved to the other host; its start token is
      // new, and the app says nothing about it.
      try bench.token(Bench.alertToken(2), ["environment": "sandbox", "kind": "alert"])
      try bench.token(startToken(4), ["environment": "sandbox", "kind": "activity_start"])
      try s.backend.register(
        "phone-2", token: startToken(4), kind: "activity_start", scope: Backend.attributesType)
      alert = try s.backend.nudge(["title": "Assistant"])
      try await tell(
        alert, "the alert token is found on the other host", ["accepted", "wrong_host", "accepted"])
      start = try row("start", "turn-5")
      try await tell(start, "the start token too", ["accepted", "wrong_host", "accepted"])

      // The worker dies, the phones adopt, the turn ends without it.
      bench.killWorker()
      _ = try await bench.adopted("turn-5", by: 2)
      let late = try row("update", "turn-5", 1)
      end = try row("end", "turn-5", 2)
      try bench.startWorker()
      try await tell(end, "the next worker ends the turn", twice)
      try await tell(late, "and sends no older state", [], "superseded")
      bench.worker?.signal(SIGTERM)
      #expect(try await bench.worker?.wait() == .code(0))

      try audit(s, bench, story)
    }
  }

  private func audit(
    _ s: Scenario, _ bench: Bench,
    _ story: [(nudge: Int64, what: String, outcomes: [String], state: String)]
  ) throws {
    // Every row is in the story, and the story is what the tables say.
    #expect(try s.backend.count("select count(*) from nudge_outbox") == story.count)
    for (nudge, what, outcomes, state) in story {
      let found = try s.backend.run(
        "select outcome, state from nudge_audit where nudge_id = ? order by device_id, attempt_id",
        [.integer(nudge)])
      #expect(found.compactMap { $0["outcome"].text } == outcomes, "\(what): \(s.backend.describe(nudge))")
      #expect(found.allSatisfy { $0["state"] == .text(state) }, "\(what)")
    }
    let undelivered = story.filter { !$0.outcomes.contains("accepted") }.map(\.nudge)
    #expect(
      try s.backend.run("select nudge_id from nudge_undelivered order by 1").compactMap {
        $0["nudge_id"].integer
      }
        == undelivered.sorted())

    // The peer has seen each attempt once, and gave the answer that stands there.
    let requests = try bench.requests()
    let attempts = try s.backend.run(
      "select apns_id, status, environment from nudge_attempt order by apns_id")
    #expect(
      requests.map { "\($0.answer.apnsID) \($0.answer.status ?? 0) \($0.host)" }.sorted()
        == attempts.map { "\($0["apns_id"]) \($0["status"]) \($0["environment"])" })
    #expect(
      try s.backend.count("select count(*) from nudge_attempt where may_have_buzzed = 1")
        == s.backend.count("select count(*) from (select distinct nudge_id, device_id from nudge_attempt)"))

    // No phone has dropped anything, and each card tells its turn in order.
    #expect(requests.compactMap(\.phone?.dropped) == [])
    var cards: [Int: [String]] = [:]
    for phone in requests.filter({ $0.answer.status == 200 }).compactMap(\.phone) {
      cards[phone.card ?? 0, default: []].append(phone.event ?? "none")
    }
    #expect(
      cards.sorted { $0.key < $1.key }.map(\.value) == [
        ["start", "update", "end"], ["start", "update", "end"], ["start"], ["start", "update"],
        ["start", "end"], ["start", "end"], ["start", "end"], ["start", "end"],
      ])

    // Each token that has gone joins a 410 or an accepted end; what is left knows its host.
    #expect(try s.backend.count("select count(*) from nudge_dead_tokens") == 3)
    let left = try s.backend.run(
      """
      select device_id || ' ' || kind || ' ' || environment || iif(proven_at is null, '', ' proven') as token
      from nudge_token order by 1
      """
    ).compactMap { $0["token"].text }
    #expect(
      left == [
        "phone-1-again activity_start production proven", "phone-1-again alert production proven",
        "phone-2 activity_start sandbox proven", "phone-2 alert sandbox proven",
      ])
    #expect(try s.backend.value("pragma integrity_check") == "ok")
  }
}
