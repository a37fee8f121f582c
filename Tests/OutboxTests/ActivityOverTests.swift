import SQLite
import Testing

@testable import Outbox

@Suite("When a Live Activity is over, and what is left of it")
struct ActivityOverTests {
  @Test("an accepted end is the end: its token goes, later rows are settled without a request")
  func over() throws {
    let turn = try Turn()
    try turn.start()
    try turn.adopt()
    try turn.row("end")
    try turn.play()
    #expect(try turn.world.count("nudge_token where kind = 'activity_update'") == 0)
    let update = try turn.row("update")
    let end = try turn.row("end")
    #expect(try turn.play().isEmpty)
    #expect(try turn.fate(end) == "unaddressed: activity over")
    #expect(["superseded", "unaddressed"].contains(try turn.world.state(update)))
    // A new accepted start opens it again.
    try turn.start()
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
    let end = try turn.request()
    try turn.adopt(token: "aa22")
    try turn.answer(end, .accepted, after: 10)
    #expect(try turn.world.rows("select token from nudge_token where kind = 'activity_update'") == ["aa22"])
    let update = try turn.row("update")
    #expect(try turn.play().isEmpty)
    #expect(try turn.world.detail(update) == "activity over")
  }

  @Test("a start's late answer leaves the token that came meanwhile")
  func lateStart() throws {
    let turn = try Turn()
    try turn.row("start")
    let start = try turn.request()
    try turn.adopt()
    let update = try turn.row("update")
    #expect(try turn.claim().isEmpty)
    try turn.answer(start, .accepted, after: 2000)
    #expect(try turn.world.count("nudge_token where kind = 'activity_update'") == 1)
    #expect(try turn.claim().map(\.nudge) == [update])
  }

  @Test("a 410 ends the activity; one for a token that was renewed does not")
  func dead() throws {
    let turn = try Turn()
    try turn.start()
    try turn.adopt(token: "aa11")
    try turn.row("update")
    let renewed = try turn.request()
    try turn.adopt(token: "aa22")
    try turn.answer(renewed, .deadToken)
    let alive = try turn.row("update")
    let request = try turn.request()
    #expect(request.nudge == alive)
    turn.world.now += 10
    let held = try turn.row("end")
    #expect(try turn.claim().isEmpty)
    try turn.answer(request, .deadToken)
    #expect(try turn.play().isEmpty)
    #expect(try turn.fate(held) == "unaddressed: activity over")
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
    let start = try turn.request()
    turn.world.now += 1000
    try turn.adopt()
    try turn.answer(start, .accepted, after: 1000)
    try turn.row("update")
    try turn.answer(turn.request(), .deadToken, after: 10)
    let end = try turn.row("end")
    #expect(try turn.play().isEmpty)
    #expect(try turn.fate(end) == "unaddressed: activity over")
  }

  @Test("a token from before a start is no reason to end what the start began")
  func deadToken() throws {
    let turn = try Turn()
    try turn.adopt(token: "aa11", at: turn.world.now - 5000)
    try turn.start()
    try turn.row("update")
    try turn.answer(turn.request(), .deadToken, after: 10)
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
    #expect(try turn.fate(update) == "unaddressed: activity over: it began more than 12 hours ago")
    try turn.adopt(token: "aa11", at: turn.world.now - 12 * 3_600_000 + 1)
    let later = try turn.row("update")
    #expect(try turn.play().map(\.nudge) == [later])
  }

  @Test("the memory of an activity goes with the history")
  func retention() throws {
    let turn = try Turn()
    try turn.start()
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
