import SQLite
import Testing

@testable import Outbox

/// A world with phones that can be started by push, and a backend that writes about one activity, `turn`.
private struct Turn {
  let world: World
  let rooms = ["production": 20, "sandbox": 20]

  init(_ phones: [String] = ["phone"]) throws {
    world = try World()
    for phone in phones {
      try world.register(phone, environment: "production")
      try world.registerActivity(
        phone, kind: "activity_start", scope: "Turn", token: World.token("start " + phone))
    }
  }

  @discardableResult
  func row(_ kind: String, _ columns: KeyValuePairs<String, String> = [:]) throws -> Int64 {
    let all = [("kind", "'activity_\(kind)'"), ("activity_id", "'turn'"), ("attributes_type", "'Turn'")]
    let names = ["created_at", "title"] + all.map(\.0) + columns.map(\.key)
    let values = ["\(world.now)", "'Working'"] + all.map(\.1) + columns.map(\.value)
    try world.sql(
      "insert into nudge_outbox (\(names.joined(separator: ", "))) values (\(values.joined(separator: ", ")))"
    )
    return world.backend.lastInsertedID
  }

  /// The app on a phone has adopted its activity.
  func adopt(_ phone: String = "phone", token: String? = nil, at time: Int64? = nil) throws {
    try world.registerActivity(phone, token: token ?? World.token("turn " + phone), at: time)
  }

  /// Claims until nothing is due.
  func claim() throws -> [Staged] { try world.drain(rooms) }

  /// Claims and accepts until nothing is due or on its way; returns what was sent.
  @discardableResult
  func play() throws -> [Staged] {
    var all: [Staged] = []
    while true {
      let staged = try claim()
      if staged.isEmpty { return all }
      all += staged
      try world.turn(rooms, finishes: staged.map { world.finish($0, .accepted) }, claims: false)
    }
  }

  func states() throws -> [String] { try world.rows("select state from nudge_outbox order by id") }
}

@Suite("Live Activities in the outbox")
struct ActivityTests {
  @Test("an update waits until the phone has registered its token, then goes at once")
  func waits() throws {
    let turn = try Turn()
    try turn.row("start")
    #expect(try turn.play().map(\.nudge) == [1])
    let update = try turn.row("update")
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.state(update) == "waiting")
    #expect(try turn.world.detail(update) == "for the update token of its activity")
    try turn.adopt()
    #expect(try turn.play().map(\.nudge) == [update])
    #expect(try turn.world.state(update) == "attempted")
    #expect(try turn.world.detail(update) == nil)
  }

  @Test("a row that waits outlives the worker, and a token that comes between two workers wakes it")
  func restart() throws {
    let turn = try Turn()
    try turn.row("start")
    try turn.play()
    let end = try turn.row("end")
    try turn.play()
    try turn.adopt()
    try turn.world.restart()
    _ = try turn.world.recover()
    #expect(try turn.play().map(\.nudge) == [end])
  }

  @Test("without a start too, for the app may have begun the activity by itself")
  func startedByApp() throws {
    let turn = try Turn()
    let update = try turn.row("update")
    try turn.play()
    #expect(try turn.world.state(update) == "waiting")
    try turn.adopt()
    #expect(try turn.play().map(\.nudge) == [update])
  }

  @Test("of what waits only the newest update goes, and an end supersedes them all")
  func superseded() throws {
    let turn = try Turn()
    try turn.row("start")
    try turn.play()
    let first = try turn.row("update")
    try turn.play()
    let second = try turn.row("update")
    let third = try turn.row("update")
    try turn.play()
    #expect(try turn.states() == ["attempted", "superseded", "superseded", "waiting"])
    #expect(
      try turn.world.detail(first) == "by nudge \(third)" || turn.world.detail(first) == "by nudge \(second)")
    #expect(try turn.world.detail(second) == "by nudge \(third)")
    let end = try turn.row("end")
    try turn.play()
    let late = try turn.row("update")
    try turn.play()
    #expect(
      try turn.states() == ["attempted", "superseded", "superseded", "superseded", "waiting", "superseded"])
    #expect(try turn.world.detail(late) == "by nudge \(end)")
    try turn.adopt()
    #expect(try turn.play().map(\.nudge) == [end])
    #expect(try turn.world.count("nudge_outbox where state in ('pending', 'waiting')") == 0)
  }

  @Test("what is not valid or not due supersedes nothing")
  func onlyValid() throws {
    let turn = try Turn()
    try turn.adopt()
    let good = try turn.row("update")
    let poison = try turn.row("update")
    try turn.world.sql("update nudge_outbox set title = null where id = \(poison)")
    let later = try turn.row("update", ["not_before_at": "\(turn.world.now + 5000)"])
    let old = try turn.row("update", ["expires_at": "\(turn.world.now - 1)"])
    #expect(try turn.play().map(\.nudge) == [good])
    #expect(try turn.states() == ["attempted", "invalid", "pending", "expired"])
    turn.world.now += 5000
    #expect(try turn.play().map(\.nudge) == [later])
    #expect(try turn.world.state(old) == "expired")
  }

  @Test("one request at a time: what comes meanwhile goes after the answer, the newest alone")
  func oneInFlight() throws {
    let turn = try Turn()
    try turn.adopt()
    try turn.row("update")
    let staged = try turn.claim()
    #expect(staged.map(\.nudge) == [1])
    try turn.row("update")
    #expect(try turn.claim().isEmpty)
    let third = try turn.row("update")
    #expect(try turn.claim().isEmpty)
    // Alerts pass what is held.
    let alert = try turn.world.nudge()
    #expect(try turn.claim().map(\.nudge) == [alert])
    try turn.world.settle(turn.world.finish(staged[0], .accepted))
    #expect(turn.world.lastSettlement.reopenedNudges == 1)
    #expect(try turn.claim().map(\.nudge) == [third])
    #expect(try turn.world.state(2) == "superseded")
  }

  @Test("an older state never follows a newer one, also when it comes back unsent")
  func unsent() throws {
    let turn = try Turn()
    try turn.adopt()
    let first = try turn.row("update")
    var staged = try turn.claim()
    let second = try turn.row("update")
    try turn.world.settle(turn.world.finish(staged[0], .unsent))
    staged = try turn.claim()
    #expect(staged.map(\.nudge) == [second])
    #expect(try turn.world.state(first) == "attempted")
    try turn.world.settle(turn.world.finish(staged[0], .unsent))
    #expect(try turn.claim().map(\.nudge) == [second])
  }

  @Test("an end that comes back unsent goes again, before any update")
  func unsentEnd() throws {
    let turn = try Turn()
    try turn.adopt()
    let end = try turn.row("end")
    let staged = try turn.claim()
    let update = try turn.row("update")
    try turn.world.settle(turn.world.finish(staged[0], .unsent))
    #expect(try turn.play().map(\.nudge) == [end])
    #expect(["superseded", "unaddressed"].contains(try turn.world.state(update)))
  }

  @Test("the timestamp never falls and never repeats, whatever the clock does and across restarts")
  func timestamps() throws {
    let turn = try Turn()
    try turn.row("start")
    var sent = try turn.play()
    try turn.adopt()
    for step in [0, 0, -3_600_000, 0, 5000, -1, 0] as [Int64] {
      turn.world.now += step
      try turn.row("update")
      sent += try turn.play()
      try turn.world.restart()
      _ = try turn.world.recover()
    }
    let stamps = sent.compactMap(\.timestamp)
    #expect(stamps.count == 8)
    #expect(stamps.first == 1_800_000_000)
    #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $0 < $1 })
  }

  @Test("an accepted end is the end: its token goes, later rows are settled without a request")
  func over() throws {
    let turn = try Turn()
    try turn.row("start")
    try turn.play()
    try turn.adopt()
    try turn.row("end")
    try turn.play()
    #expect(try turn.world.count("nudge_token where kind = 'activity_update'") == 0)
    let update = try turn.row("update")
    let end = try turn.row("end")
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.detail(end) == "activity over")
    #expect(try turn.world.state(end) == "unaddressed")
    #expect(["superseded", "unaddressed"].contains(try turn.world.state(update)))
    // A new accepted start opens it again.
    try turn.row("start")
    try turn.play()
    let again = try turn.row("update")
    try turn.play()
    #expect(try turn.world.state(again) == "waiting")
    try turn.adopt(token: "aa55")
    #expect(try turn.play().map(\.nudge) == [again])
  }

  @Test("a token that was renewed while its end was on the way stays, and the activity is over all the same")
  func renewedMeanwhile() throws {
    let turn = try Turn()
    try turn.adopt(token: "aa11")
    try turn.row("end")
    let staged = try turn.claim()
    try turn.adopt(token: "aa22")
    turn.world.now += 10
    try turn.world.settle(turn.world.finish(staged[0], .accepted))
    #expect(try turn.world.rows("select token from nudge_token where kind = 'activity_update'") == ["aa22"])
    let update = try turn.row("update")
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.detail(update) == "activity over")
  }

  @Test("a start's late answer leaves the token that came meanwhile")
  func lateStart() throws {
    let turn = try Turn()
    try turn.row("start")
    let staged = try turn.claim()
    try turn.adopt()
    let update = try turn.row("update")
    #expect(try turn.claim().isEmpty)
    turn.world.now += 2000
    try turn.world.settle(turn.world.finish(staged[0], .accepted))
    #expect(try turn.world.count("nudge_token where kind = 'activity_update'") == 1)
    #expect(try turn.claim().map(\.nudge) == [update])
  }

  @Test("a 410 ends the activity; one for a token that was renewed does not")
  func dead() throws {
    let turn = try Turn()
    try turn.row("start")
    try turn.play()
    try turn.adopt(token: "aa11")
    try turn.row("update")
    var staged = try turn.claim()
    try turn.adopt(token: "aa22")
    try turn.world.settle(turn.world.finish(staged[0], .deadToken))
    let alive = try turn.row("update")
    staged = try turn.claim()
    #expect(staged.map(\.nudge) == [alive])
    turn.world.now += 10
    let held = try turn.row("end")
    #expect(try turn.claim().isEmpty)
    try turn.world.settle(turn.world.finish(staged[0], .deadToken))
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.state(held) == "unaddressed")
    #expect(try turn.world.detail(held) == "activity over")
    let start = try turn.row("start")
    #expect(try turn.play().map(\.nudge) == [start])
    try turn.adopt(token: "aa33")
    let end = try turn.row("end")
    #expect(try turn.play().map(\.nudge) == [end])
  }

  @Test("a card that is swiped away is over, though its token came before the answer to its start")
  func deadAfterLateStart() throws {
    let turn = try Turn()
    try turn.row("start")
    var staged = try turn.claim()
    turn.world.now += 1000
    try turn.adopt()
    turn.world.now += 1000
    try turn.world.settle(turn.world.finish(staged[0], .accepted))
    try turn.row("update")
    staged = try turn.claim()
    turn.world.now += 10
    try turn.world.settle(turn.world.finish(staged[0], .deadToken))
    let end = try turn.row("end")
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.state(end) == "unaddressed")
    #expect(try turn.world.detail(end) == "activity over")
  }

  @Test("a token from before a start is no reason to end what the start began")
  func deadToken() throws {
    let turn = try Turn()
    try turn.adopt(token: "aa11", at: turn.world.now - 5000)
    try turn.row("start")
    try turn.play()
    try turn.row("update")
    let staged = try turn.claim()
    turn.world.now += 10
    try turn.world.settle(turn.world.finish(staged[0], .deadToken))
    let end = try turn.row("end")
    try turn.play()
    #expect(try turn.world.state(end) == "waiting")
    try turn.adopt(token: "aa22")
    #expect(try turn.play().map(\.nudge) == [end])
  }

  @Test("a token older than 12 hours is not sent to")
  func oldToken() throws {
    let turn = try Turn()
    try turn.adopt(at: turn.world.now - 12 * 3_600_000)
    let update = try turn.row("update")
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.state(update) == "unaddressed")
    #expect(try turn.world.detail(update) == "activity over: it began more than 12 hours ago")
    try turn.adopt(token: "aa11", at: turn.world.now - 12 * 3_600_000 + 1)
    let later = try turn.row("update")
    #expect(try turn.play().map(\.nudge) == [later])
  }

  @Test("an end for two phones reaches both, though one registers its token late")
  func twoPhones() throws {
    let turn = try Turn(["one", "two"])
    try turn.row("start")
    #expect(try turn.play().count == 2)
    try turn.adopt("one")
    let end = try turn.row("end")
    #expect(try turn.play().map(\.device) == ["one"])
    #expect(try turn.world.state(end) == "waiting")
    try turn.adopt("two")
    #expect(try turn.play().map(\.device) == ["two"])
    #expect(try turn.world.state(end) == "attempted")
  }

  @Test(
    "a phone whose start has no answer is waited for, for its card may be there",
    arguments: [nil, .unanswered, .interrupted] as [Outcome?])
  func startWithoutAnswer(outcome: Outcome?) throws {
    let turn = try Turn(["one", "two"])
    try turn.row("start")
    let staged = try turn.claim()
    for start in staged {
      if let outcome = start.device == "one" ? .accepted : outcome {
        try turn.world.settle(turn.world.finish(start, outcome))
      }
    }
    if outcome == nil {
      try turn.world.restart()
      _ = try turn.world.recover()
    }
    try turn.adopt("one")
    let end = try turn.row("end")
    #expect(try turn.play().map(\.device) == ["one"])
    #expect(try turn.world.state(end) == "waiting")
    try turn.adopt("two")
    #expect(try turn.play().map(\.device) == ["two"])
    #expect(try turn.world.state(end) == "attempted")
  }

  @Test("a phone that was never asked to start is not waited for when another is reached")
  func otherPhone() throws {
    let turn = try Turn(["one", "two"])
    try turn.adopt("one")
    let end = try turn.row("end")
    #expect(try turn.play().map(\.device) == ["one"])
    #expect(try turn.world.state(end) == "attempted")
  }

  @Test("rows for one phone and for all: each phone gets the newest that is for it")
  func addresses() throws {
    let turn = try Turn(["one", "two"])
    try turn.adopt("one")
    try turn.adopt("two")
    let all = try turn.row("update")
    let one = try turn.row("update", ["device_id": "'one'"])
    let sent = try turn.play()
    #expect(sent.map { "\($0.device) \($0.nudge)" }.sorted() == ["one \(one)", "two \(all)"])
    #expect(try turn.states() == ["attempted", "attempted"])
  }

  @Test("a scheduled end is not superseded by the updates that were written after it")
  func scheduledEnd() throws {
    let turn = try Turn()
    try turn.adopt()
    let end = try turn.row("end", ["not_before_at": "\(turn.world.now + 60_000)"])
    let update = try turn.row("update")
    #expect(try turn.play().map(\.nudge) == [update])
    turn.world.now += 60_000
    #expect(try turn.play().map(\.nudge) == [end])
  }

  @Test("an end, a start and an update at once: the old activity ends, the new one gets the update")
  func newRound() throws {
    let turn = try Turn()
    try turn.adopt(token: "aa11")
    let end = try turn.row("end")
    let start = try turn.row("start")
    let update = try turn.row("update")
    #expect(try turn.play().map(\.nudge) == [end, start])
    #expect(try turn.world.state(update) == "waiting")
    turn.world.now += 10
    try turn.adopt(token: "aa22")
    #expect(try turn.play().map(\.nudge) == [update])
  }

  @Test("what was written before a start does not follow it")
  func staleEnd() throws {
    let turn = try Turn()
    let end = try turn.row("end")
    try turn.play()
    #expect(try turn.world.state(end) == "waiting")
    let start = try turn.row("start")
    #expect(try turn.play().map(\.nudge) == [start])
    try turn.adopt()
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.state(end) == "superseded")
    #expect(try turn.world.detail(end) == "by nudge \(start)")
  }

  @Test("an update waits for a start that cannot go yet, and is looked at again when it runs out")
  func pendingStart() throws {
    let turn = try Turn(["one", "two"])
    turn.world.network.pausedDevices = ["two": turn.world.now + 5_000_000]
    let start = try turn.row("start")
    #expect(try turn.play().map(\.device) == ["one"])
    try turn.adopt("one")
    let update = try turn.row("update")
    #expect(try turn.play().map(\.device) == ["one"])
    #expect(try turn.world.state(update) == "waiting")
    turn.world.now += 3_600_001
    _ = try turn.world.expire()
    #expect(try turn.world.state(start) == "attempted")
    try turn.play()
    #expect(try turn.world.state(update) == "attempted")
  }

  @Test("rows that wait run out: an update after 8 hours, or when it says")
  func expires() throws {
    let turn = try Turn()
    let update = try turn.row("update")
    try turn.play()
    let dated = try turn.row("end", ["expires_at": "\(turn.world.now + 5000)"])
    try turn.play()
    #expect(try turn.states() == ["superseded", "waiting"])
    #expect(turn.world.store.waitingExpiry == turn.world.now + 5000)
    turn.world.now += 5000
    #expect(turn.world.store.mayHaveExpired(now: turn.world.now))
    #expect(try turn.world.store.hasExpired(now: turn.world.now))
    _ = try turn.world.expire()
    #expect(try turn.world.state(dated) == "expired")
    let other = try turn.row("update")
    try turn.play()
    try turn.world.restart()
    #expect(turn.world.store.waitingExpiry == turn.world.now + 8 * 3_600_000)
    turn.world.now += 8 * 3_600_000
    _ = try turn.world.expire()
    #expect(try turn.world.state(other) == "expired")
    #expect(try turn.world.state(update) == "superseded")
    #expect(!turn.world.store.mayHaveExpired(now: turn.world.now))
  }

  @Test("a start grows old like an alert, an update behind a paused host after 8 hours")
  func defaultExpiry() throws {
    let turn = try Turn()
    try turn.adopt()
    let start = try turn.row("start")
    let update = try turn.row("update")
    _ = try turn.world.turn(["sandbox": 1])
    turn.world.now += World.expireAfter
    _ = try turn.world.expire()
    #expect(try turn.states() == ["expired", "pending"])
    turn.world.now += 7 * 3_600_000
    _ = try turn.world.expire()
    #expect(try turn.world.state(update) == "expired")
    #expect(try turn.world.state(start) == "expired")
  }

  @Test("a start without a start token has nobody to go to, and is never made up for")
  func oneStart() throws {
    let turn = try Turn()
    try turn.world.sql("delete from nudge_token where kind = 'activity_start'")
    let start = try turn.row("start")
    #expect(try turn.play().isEmpty)
    #expect(
      try turn.world.detail(start)
        == "no device of recipient owner on surface phone has a token of kind activity_start (Turn)")
    try turn.world.registerActivity("phone", kind: "activity_start", scope: "Turn", token: "ab")
    try turn.row("update")
    #expect(try turn.play().isEmpty)
  }

  @Test(
    "an activity id that is none is said",
    arguments: [
      ("null", "activity_id is NULL: give every nudge of one activity the same id"),
      ("''", "activity_id is not a text, or empty"), ("x'61'", "activity_id is not a text, or empty"),
      ("'a' || char(0) || 'b'", "activity_id has a NUL byte"),
    ])
  func activityID(value: String, words: String) throws {
    let turn = try Turn()
    for kind in ["start", "update", "end"] {
      let id = try turn.row(kind)
      try turn.world.sql("update nudge_outbox set activity_id = \(value) where id = \(id)")
      #expect(try turn.play().isEmpty)
      #expect(try turn.world.state(id) == "invalid")
      #expect(try turn.world.detail(id) == words)
    }
  }

  @Test("dates in seconds are said", arguments: ["stale_at", "dismiss_at"])
  func seconds(column: String) throws {
    let turn = try Turn()
    try turn.adopt()
    let id = try turn.row("end", [column: "1800000000"])
    #expect(try turn.play().isEmpty)
    #expect(
      try turn.world.detail(id)
        == "\(column) looks like seconds, but times are milliseconds since 1970: multiply by 1000")
  }

  @Test("thousands of updates of one activity: one request, the rest superseded, in bounded turns")
  func many() throws {
    let turn = try Turn()
    try turn.adopt()
    try turn.world.sql(
      """
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 3000)
      insert into nudge_outbox (created_at, title, kind, activity_id)
      select \(turn.world.now), 'Working', 'activity_update', 'turn' from n
      """)
    #expect(try turn.play().map(\.nudge) == [3000])
    #expect(try turn.world.count("nudge_outbox where state = 'superseded'") == 2999)
    #expect(turn.world.lastTurns < 20)
  }

  @Test("the memory of an activity goes with the history")
  func retention() throws {
    let turn = try Turn()
    try turn.row("start")
    try turn.play()
    let (store, now) = (turn.world.store, turn.world.now)
    func remove(before cutoff: Int64) throws {
      _ = try store.turn { transaction throws(SQLiteError) in
        try store.removeHistory(before: cutoff, in: &transaction)
      }
    }
    try remove(before: now)
    #expect(try turn.world.count("nudge_activity") == 1)
    try remove(before: now + 1000)
    #expect(try turn.world.count("nudge_activity") == 0)
  }
}
