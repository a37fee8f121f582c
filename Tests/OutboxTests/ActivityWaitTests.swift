import Testing

@testable import Outbox

@Suite("What Live Activities wait for")
struct ActivityWaitTests {
  @Test("an update waits until the phone has registered its token, then goes at once")
  func waits() throws {
    let turn = try Turn()
    #expect(try turn.start().map(\.nudge) == [1])
    let update = try turn.row("update")
    #expect(try turn.play().isEmpty)
    #expect(try turn.fate(update) == "waiting: for the update token of its activity")
    try turn.adopt()
    #expect(try turn.play().map(\.nudge) == [update])
    #expect(try turn.fate(update) == "attempted")
  }

  @Test("a row that waits outlives the worker, and a token that comes between two workers wakes it")
  func restart() throws {
    let turn = try Turn()
    try turn.start()
    let end = try turn.row("end")
    try turn.play()
    try turn.adopt()
    try turn.restart()
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

  /// An end reaches phone `one`, which has its token, and waits for phone `two`, which registers late.
  private func expectBothEnd(_ turn: Turn) throws {
    try turn.adopt("one")
    let end = try turn.row("end")
    #expect(try turn.play().map(\.device) == ["one"])
    #expect(try turn.world.state(end) == "waiting")
    try turn.adopt("two")
    #expect(try turn.play().map(\.device) == ["two"])
    #expect(try turn.world.state(end) == "attempted")
  }

  @Test("an end for two phones reaches both, though one registers its token late")
  func twoPhones() throws {
    let turn = try Turn(["one", "two"])
    #expect(try turn.start().count == 2)
    try expectBothEnd(turn)
  }

  @Test(
    "a phone whose start has no answer is waited for, for its card may be there",
    arguments: [nil, .unanswered, .interrupted] as [Outcome?])
  func startWithoutAnswer(outcome: Outcome?) throws {
    let turn = try Turn(["one", "two"])
    try turn.row("start")
    for start in try turn.claim() {
      if let outcome = start.device == "one" ? .accepted : outcome { try turn.answer(start, outcome) }
    }
    if outcome == nil { try turn.restart() }
    try expectBothEnd(turn)
  }

  @Test("a phone that was never asked to start is not waited for when another is reached")
  func otherPhone() throws {
    let turn = try Turn(["one", "two"])
    try turn.adopt("one")
    let end = try turn.row("end")
    #expect(try turn.play().map(\.device) == ["one"])
    #expect(try turn.world.state(end) == "attempted")
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
    try turn.expire(after: 3_600_001)
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
    try turn.expire(after: 8 * 3_600_000)
    #expect(try turn.world.state(other) == "expired")
    #expect(try turn.world.state(update) == "superseded")
    #expect(!turn.world.store.mayHaveExpired(now: turn.world.now))
  }

  @Test("a start grows old like an alert, an update behind a paused host after 8 hours")
  func defaultExpiry() throws {
    let turn = try Turn()
    try turn.adopt()
    try turn.row("start")
    try turn.row("update")
    _ = try turn.world.turn(["sandbox": 1])
    try turn.expire(after: World.expireAfter)
    #expect(try turn.states() == ["expired", "pending"])
    try turn.expire(after: 7 * 3_600_000)
    #expect(try turn.states() == ["expired", "expired"])
  }
}
