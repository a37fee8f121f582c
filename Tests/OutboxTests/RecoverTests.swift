import Testing

@testable import Outbox

@Suite("Recover")
struct RecoverTests {
  let world: World

  init() throws {
    world = try World()
    try world.register("phone", environment: "production")
  }

  private func lowWater() throws -> Int64? {
    try world.backend.integer("select low_water_attempt_id from nudge_worker")
  }

  @Test("what a crash left in flight becomes interrupted, and nothing else changes")
  func interrupted() throws {
    for _ in 1...5 { try world.nudge() }
    let staged = try world.drain(["production": 5])
    try world.settle(world.finish(staged[0], .rejected), world.finish(staged[3], .unsent))
    try world.restart()
    world.now += 10
    #expect(try world.recover() == 3)
    #expect(
      try world.rows("select nudge_id || outcome from nudge_attempt order by id")
        == ["1rejected", "2interrupted", "3interrupted", "4unsent", "5interrupted"])
    #expect(
      try world.count(
        "nudge_attempt where outcome = 'interrupted' and finished_at = \(world.now) and may_have_buzzed = 1")
        == 3)
    #expect(try world.recover() == 0)
    #expect(try world.drain(["production": 5]).map(\.nudge) == [4])
  }

  @Test("an attempt never ends before it began, also when the clock was set back")
  func clockStep() throws {
    try world.nudge()
    try world.drain(["production": 1])
    world.now -= 100_000
    try world.restart()
    #expect(try world.recover() == 1)
    #expect(try world.count("nudge_attempt where finished_at = started_at") == 1)
  }

  @Test("the look begins at the low-water mark, which follows the oldest attempt in flight")
  func mark() throws {
    for _ in 1...4 { try world.nudge() }
    let staged = try world.drain(["production": 4])
    let store = world.store
    try store.turn { transaction throws(StoreError) in
      try store.keepLowWater(staged[2].attempt, in: &transaction)
    }
    #expect(try lowWater() == staged[2].attempt)
    try world.restart()
    #expect(try world.recover() == 2)
    #expect(try lowWater() == staged[3].attempt + 1)
  }

  @Test("a mark that is ahead of the attempts, after all were removed, is put right at the start")
  func markAhead() throws {
    try world.sql("update nudge_worker set low_water_attempt_id = 1000")
    try world.restart()
    #expect(try world.recover() == 0)
    #expect(try lowWater() == 1)
    try world.nudge()
    try world.drain(["production": 1])
    try world.restart()
    #expect(try world.recover() == 1)
  }

  // MARK: History

  private func removeAll(before cutoff: Int64) throws -> Int {
    var steps = 0
    let store = world.store
    while try store.turn({ transaction throws(StoreError) in
      try store.removeHistory(before: cutoff, in: &transaction)
    }) {
      steps += 1
      if steps > 1000 { break }
    }
    return steps + 1
  }

  @Test("old settled rows go with their attempts, in bounded steps; what is open or young stays")
  func history() throws {
    try world.nudges(700)
    let staged = try world.drain(["production": 400])
    #expect(staged.count == 700)
    let open = try world.nudge(["not_before_at": "\(world.now + 999_999_999)"])
    let waiting = try world.nudge()
    try world.sql("update nudge_outbox set state = 'waiting' where id = \(waiting)")
    let cutoff = world.now + 1
    world.now += 5000
    try world.nudge()
    try world.drain(["production": 10])

    let store = world.store
    let isMore = try store.turn { transaction throws(StoreError) in
      try store.removeHistory(before: cutoff, in: &transaction)
    }
    #expect(isMore)
    #expect(try world.count("nudge_outbox") == 503)
    #expect(try world.count("nudge_attempt") == 501)
    #expect(try removeAll(before: cutoff) == 3)
    #expect(
      try world.rows("select id || state from nudge_outbox order by id")
        == ["\(open)pending", "\(waiting)waiting", "\(waiting + 1)attempted"])
    #expect(try world.rows("select nudge_id from nudge_attempt") == ["\(waiting + 1)"])
  }

  @Test("a step that was rolled back is made again")
  func rolledBack() throws {
    try world.nudges(250)
    try world.drain(["production": 400])
    let store = world.store
    let cutoff = world.now + 1
    #expect(throws: StoreError.self) {
      try store.turn { transaction throws(StoreError) in
        _ = try store.removeHistory(before: cutoff, in: &transaction)
        throw StoreError(code: 13, message: "database or disk is full")
      }
    }
    _ = try removeAll(before: cutoff)
    #expect(try world.count("nudge_outbox") == 0)
    #expect(try world.count("nudge_attempt") == 0)
  }

  @Test("ids of attempts go on after all were removed, and after a restart begin where they may")
  func ids() throws {
    try world.nudge()
    let first = try #require(try world.drain(["production": 1]).first)
    _ = try removeAll(before: world.now + 1)
    try world.nudge()
    let second = try #require(try world.drain(["production": 1]).first)
    #expect(second.attempt == first.attempt + 1)
    #expect(second.nudge == first.nudge + 1)
  }
}
