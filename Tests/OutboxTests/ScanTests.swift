import SQLite
import Testing

@testable import Outbox

@Suite("Scan: what waits is passed, and found again")
struct ScanTests {
  let world: World

  init() throws {
    world = try World()
    try world.register("sand", environment: "sandbox")
    try world.register("prod", environment: "production")
  }

  @Test("ten thousand parked rows are examined once, however many turns pass")
  func parked() throws {
    try world.nudges(10_000, device: "sand")
    try world.drain(["production": 100])
    #expect(world.network.examined == 10_000)
    for _ in 1...300 {
      try world.nudge(["device_id": "'prod'"])
      #expect(try world.drain(["production": 100]).count == 1)
    }
    #expect(world.network.examined <= 10_000 + 300 * 2)
    #expect(try !world.hasWork(["production": 100]))
  }

  @Test("one claim examines a bounded number of rows")
  func bounded() throws {
    try world.nudges(5_000, device: "sand")
    try world.turn(["production": 100])
    #expect(world.network.examined <= Int(ClaimBounds.rows))
  }

  @Test("parked rows go in order once their host has room")
  func roomAgain() throws {
    try world.nudges(3_000, device: "sand")
    try world.drain(["production": 100])
    try world.nudges(10, device: "prod")
    try world.drain(["production": 100])
    #expect(world.store.scan.waitingFor == ["sandbox"])
    let staged = try world.drain(["sandbox": 500, "production": 500])
    #expect(staged.map(\.nudge) == Array(1...3_000))
    #expect(!world.store.scan.hasLeftovers)
  }

  @Test("a dated row with an earlier time is found behind the position", arguments: [false, true])
  func earlierDated(isWaiting: Bool) throws {
    for offset in 1...50 {
      try world.nudge([
        "not_before_at": "\(world.now - 100 + Int64(offset))", "device_id": "'prod'",
      ])
    }
    if isWaiting { try world.nudge(["device_id": "'sand'"]) }
    // The positions stand on the last row when the earlier one comes.
    #expect(try world.turn(["production": 25], piece: 25).count == 25)
    let early = try world.nudge(["not_before_at": "\(world.now - 5000)", "device_id": "'prod'"])
    var staged = try world.turn(["production": 25], piece: 25)
    staged += try world.drain(["production": 25])
    if isWaiting {
      // Rows wait for another host: the wheel restarts the scan because somebody has committed.
      world.store.scan.restart()
      staged += try world.drain(["production": 25])
    }
    #expect(staged.map(\.nudge).contains(early))
    #expect(try world.count("nudge_outbox where state = 'attempted'") == 51)
  }

  @Test("a row with a lower id that returns to pending is found at the end of the scan")
  func lowerID() throws {
    try world.sql("insert into nudge_outbox (created_at, title, state) values (\(world.now), 'x', 'pending')")
    try world.sql("update nudge_outbox set state = 'waiting' where id = 1")
    try world.nudges(20, device: "prod")
    #expect(try world.turn(["production": 20], piece: 20).count == 20)
    try world.sql("update nudge_outbox set state = 'pending', device_id = 'prod' where id = 1")
    #expect(try world.drain(["production": 20]).map(\.nudge) == [1])
  }

  @Test("a nudge that came back unsent is found behind the position, dated or not", arguments: [false, true])
  func reopened(isDated: Bool) throws {
    try world.nudges(2_000, device: "sand")
    let nudge = try world.nudge([
      "device_id": "'prod'", "not_before_at": isDated ? "\(world.now - 10)" : "null",
    ])
    let staged = try world.drain(["production": 10])
    #expect(staged.map(\.nudge) == [nudge])
    try world.nudges(100, device: "prod")
    try world.drain(["production": 10])
    try world.settle(world.finish(staged[0], .unsent))
    #expect(try world.drain(["production": 10]).map(\.nudge) == [nudge])
  }

  @Test("a turn that failed leaves the positions as they were")
  func rollback() throws {
    try world.nudges(100, device: "prod")
    try world.sql("begin immediate")
    #expect(throws: SQLiteError.self) { try world.turn(["production": 10]) }
    try world.sql("rollback")
    #expect(try world.turn(["production": 3]).map(\.nudge) == [1, 2, 3])
  }

  @Test("the first look goes through everything once, and then there is nothing to do")
  func firstLookEnds() throws {
    try world.nudges(2_500, device: "sand")
    try world.nudges(2_500, device: "prod")
    try world.drain([:], most: 10)
    #expect(world.network.examined == 5_000)
    #expect(world.store.scan.waitingFor == ["production", "sandbox"])
    #expect(try !world.hasWork([:]))
    let bad = try world.nudge(["kind": "'nonsense'"])
    try world.drain([:], most: 2)
    #expect(try world.state(bad) == "invalid")
    #expect(world.network.examined == 5_001)
  }

  @Test("a claim that can do nothing says so, so that the wheel does not turn in place")
  func noProgress() throws {
    try world.nudges(10, device: "prod")
    world.network.stuckHosts = ["production"]
    for _ in 1...2 { try world.turn(["production": 5]) }
    #expect(try world.hasWork(["production": 5]))
    #expect(!world.store.hasProgressed)
    world.network.stuckHosts = []
    try world.turn(["production": 5])
    #expect(world.store.hasProgressed)
  }

  @Test("a look for more than one claim's rows is progress until its end")
  func progress() throws {
    try world.nudges(2_500, device: "sand")
    for _ in 1...3 {
      try world.turn(["production": 5])
      #expect(world.store.hasProgressed)
    }
    #expect(try !world.hasWork(["production": 5]))
  }

  @Test("a pause that is over makes no work while nobody has room")
  func overduePause() throws {
    world.network.pausedDevices = ["prod": world.now + 1000]
    try world.nudge(["device_id": "'prod'"])
    try world.drain(["production": 1])
    world.network.pausedDevices = [:]
    world.now += 1000
    let busy = ClaimBounds(environments: [], isFirstLook: false, attempts: 1, piece: 1)
    #expect(try !world.store.hasWork(now: world.now, within: busy))
    #expect(world.store.scan.hasLeftovers)
    #expect(try world.store.nextTime(after: world.now) == nil)
    #expect(try world.drain(["production": 1]).count == 1)
  }

  @Test("no id, however odd, breaks the positions")
  func oddIDs() throws {
    let ids: [(id: String, time: String)] = [
      ("-1", "null"), ("0", "null"), ("9223372036854775806", "null"), ("-5", "\(world.now - 1)"),
      ("-9223372036854775807 - 1", "\(world.now - 2)"), ("4611686018427387904", "\(world.now - 2)"),
    ]
    for (id, time) in ids {
      try world.sql(
        """
        insert into nudge_outbox (id, created_at, title, device_id, not_before_at)
        values (\(id), \(world.now), 't', 'sand', \(time))
        """)
    }
    try world.drain(["production": 1])
    try world.drain([:])
    try world.drain(["sandbox": 1])
    #expect(try world.count("nudge_outbox where state = 'attempted'") == 6)
  }
}
