import Testing

@testable import Outbox

@Suite("Of a Live Activity only the newest state goes out, and nothing older follows it")
struct ActivityNewestTests {
  @Test("of what waits only the newest update goes, and an end supersedes them all")
  func superseded() throws {
    let turn = try Turn()
    try turn.start()
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
    let first = try turn.row("update")
    let request = try turn.request()
    #expect(request.nudge == first)
    let second = try turn.row("update")
    #expect(try turn.claim().isEmpty)
    let third = try turn.row("update")
    #expect(try turn.claim().isEmpty)
    // Alerts pass what is held.
    let alert = try turn.world.nudge()
    #expect(try turn.claim().map(\.nudge) == [alert])
    try turn.answer(request, .accepted)
    #expect(turn.world.lastSettlement.reopenedNudges == 1)
    #expect(try turn.claim().map(\.nudge) == [third])
    #expect(try turn.world.state(second) == "superseded")
  }

  @Test("an older state never follows a newer one, also when it comes back unsent")
  func unsent() throws {
    let turn = try Turn()
    try turn.adopt()
    let first = try turn.row("update")
    let older = try turn.request()
    let second = try turn.row("update")
    try turn.answer(older, .unsent)
    let newer = try turn.request()
    #expect(newer.nudge == second)
    #expect(try turn.world.state(first) == "attempted")
    try turn.answer(newer, .unsent)
    #expect(try turn.claim().map(\.nudge) == [second])
  }

  @Test("an end that comes back unsent goes again, before any update")
  func unsentEnd() throws {
    let turn = try Turn()
    try turn.adopt()
    let end = try turn.row("end")
    let request = try turn.request()
    let update = try turn.row("update")
    try turn.answer(request, .unsent)
    #expect(try turn.play().map(\.nudge) == [end])
    #expect(["superseded", "unaddressed"].contains(try turn.world.state(update)))
  }

  @Test("the timestamp never falls and never repeats, whatever the clock does and across restarts")
  func timestamps() throws {
    let turn = try Turn()
    var sent = try turn.start()
    try turn.adopt()
    for step in [0, 0, -3_600_000, 0, 5000, -1, 0] as [Int64] {
      turn.world.now += step
      try turn.row("update")
      sent += try turn.play()
      try turn.restart()
    }
    let stamps = sent.compactMap(\.timestamp)
    #expect(stamps.count == 8)
    #expect(stamps.first == 1_800_000_000)
    #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $0 < $1 })
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
    #expect(try turn.fate(end) == "superseded: by nudge \(start)")
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
}
