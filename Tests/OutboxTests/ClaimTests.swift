import SQLite
import Testing

@testable import Outbox

@Suite("Claim")
struct ClaimTests {
  let world: World

  init() throws {
    world = try World()
    try world.register("phone", environment: "production")
  }

  @Test("undated rows go in the order of their ids, as far as there is room")
  func order() throws {
    for _ in 1...5 { try world.nudge() }
    #expect(try world.turn(["production": 3]).map(\.nudge) == [1, 2, 3])
    #expect(try world.turn(["production": 3]).map(\.nudge) == [4, 5])
    #expect(try world.turn(["production": 3]).isEmpty)
  }

  @Test("a dated row joins when its time has come, not a millisecond before")
  func dated() throws {
    let dated = try world.nudge(["not_before_at": "\(world.now + 1000)"])
    let undated = try world.nudge()
    #expect(try world.drain(["production": 10]).map(\.nudge) == [undated])
    #expect(try world.store.nextTime(after: world.now) == world.now + 1000)
    world.now += 999
    #expect(try !world.hasWork(["production": 10]))
    world.now += 1
    #expect(try world.hasWork(["production": 10]))
    #expect(try world.drain(["production": 10]).map(\.nudge) == [dated])
  }

  @Test("the last legal time is a time to wait for")
  func lastLegalTime() throws {
    let nudge = try world.nudge(["not_before_at": "100000000000000"])
    #expect(try world.drain(["production": 10]).isEmpty)
    #expect(try world.state(nudge) == "pending")
  }

  @Test("a claim writes its attempt before the request is made ready, and ends the nudge")
  func attempt() throws {
    let nudge = try world.nudge()
    let staged = try #require(try world.turn(["production": 1]).first)
    #expect(
      try world.rows(
        """
        select nudge_id || '|' || device_id || '|' || token_kind || '|' || environment || '|' || push_type
          || '|' || topic || '|' || started_at || '|' || may_have_buzzed || '|' || (outcome is null)
        from nudge_attempt where id = \(staged.attempt)
        """) == ["\(nudge)|phone|alert|production|alert|com.example.app|\(world.now)|1|1"])
    #expect(
      try world.backend.text("select apns_id from nudge_attempt")
        == String(decoding: staged.apnsID, as: UTF8.self))
    #expect(try world.backend.text("select length(token_hash) from nudge_attempt") == "16")
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.backend.integer("select settled_at from nudge_outbox") == world.now)
    #expect(world.lastClaimCount == 1)
  }

  @Test("a turn that fails has claimed nothing, and the next one claims it all")
  func rollback() throws {
    struct Nope: Error {}
    try world.nudge()
    try world.nudge()
    let (store, network, now) = (world.store, world.network, world.now)
    network.rooms = ["production": 10]
    #expect(throws: SQLiteError.self) {
      try store.turn { transaction throws(SQLiteError) in
        _ = try store.decideClaim(
          now: now, within: World.bounds(["production": 10]), by: network, in: &transaction)
        try store.writeClaim(now: now, in: &transaction)
        throw SQLiteError(code: 10, message: "disk I/O error")
      }
    }
    #expect(network.staged.count == 2)
    #expect(try world.count("nudge_attempt") == 0)
    #expect(try world.hasWork(["production": 10]))
    #expect(try world.drain(["production": 10]).map(\.nudge) == [1, 2])
  }

  @Test("the lock of another connection is an error of its own kind, at once, and nothing has happened")
  func busy() throws {
    try world.nudge()
    try world.sql("begin immediate")
    do {
      try world.turn(["production": 1])
      Issue.record("the turn went through")
    } catch {
      #expect((error as? SQLiteError)?.kind == .busy)
    }
    #expect(world.network.history.isEmpty)
    try world.sql("rollback")
    #expect(try world.turn(["production": 1]).count == 1)
  }

  @Test("with a rollback journal, a reader in the way of the commit leaves nothing behind")
  func readerInTheWay() throws {
    let world = try World(journal: "delete")
    try world.register("phone", environment: "production")
    let nudge = try world.nudge()
    let reader = try world.backend.prepare("select id from nudge_outbox union all select 2")
    #expect(try reader.step())
    do {
      try world.turn(["production": 1])
      Issue.record("the commit went through")
    } catch {
      #expect((error as? SQLiteError)?.kind == .busy)
    }
    reader.reset()
    #expect(try world.count("nudge_attempt") == 0)
    #expect(try world.state(nudge) == "pending")
    #expect(try world.turn(["production": 1]).count == 1)
    #expect(try world.state(nudge) == "attempted")
  }

  @Test("an index that is not word for word what a row needs does not hide it: surfaces and recipients")
  func addresses() throws {
    try world.register("tablet", environment: "production", surface: "tablet")
    try world.register("guest", recipient: "guest", environment: "production")
    let cases: [(columns: KeyValuePairs<String, String>, devices: [String])] = [
      ([:], ["phone"]),
      (["surface": "null"], ["phone"]),
      (["surface": "'tablet'"], ["tablet"]),
      (["surface": "'*'"], ["phone", "tablet"]),
      (["surface": "cast('*' as blob)"], ["phone", "tablet"]),
      (["recipient": "null"], ["phone"]),
      (["recipient": "'guest'"], ["guest"]),
      (["device_id": "'tablet'"], ["tablet"]),
      (["device_id": "'tablet'", "surface": "'phone'"], ["tablet"]),
      (["device_id": "'guest'"], []),
      (["device_id": "''"], []),
    ]
    for (columns, devices) in cases {
      try world.nudge(columns)
      #expect(try world.drain(["production": 10]).map(\.device) == devices, "\(columns)")
    }
  }

  @Test("a background row is not held up by what stands before it")
  func badRowsInFront() throws {
    for _ in 1...50 { try world.nudge(["kind": "'nonsense'"]) }
    let good = try world.nudge()
    #expect(try world.turn(["production": 1]).map(\.nudge) == [good])
    #expect(try world.count("nudge_outbox where state = 'invalid'") == 50)
  }

  @Test("what is wrong is settled although no host has room, and what is right waits")
  func firstLook() throws {
    let bad = try world.nudge(["kind": "'nonsense'"])
    let good = try world.nudge()
    let late = try world.nudge(["expires_at": "\(world.now)"])
    let nobody = try world.nudge(["recipient": "'nobody'"])
    #expect(try world.drain([:]).isEmpty)
    #expect(try world.state(bad) == "invalid")
    #expect(try world.state(good) == "pending")
    #expect(try world.state(late) == "expired")
    #expect(try world.state(nobody) == "unaddressed")
    #expect(world.store.scan.waitingFor == ["production"])
    #expect(try world.drain(["production": 1]).map(\.nudge) == [good])
    #expect(!world.store.scan.hasLeftovers)
  }

  @Test("a row that the backend has cancelled or deleted is not claimed")
  func cancelled() throws {
    let cancelled = try world.nudge()
    let deleted = try world.nudge()
    try world.drain([:])
    try world.sql("update nudge_outbox set state = 'cancelled' where id = \(cancelled)")
    try world.sql("delete from nudge_outbox where id = \(deleted)")
    #expect(try world.drain(["production": 10]).isEmpty)
    #expect(try world.state(cancelled) == "cancelled")
  }
}
