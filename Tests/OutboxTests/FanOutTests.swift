import SQLite
import Testing

@testable import Outbox

@Suite("Fan-outs")
struct FanOutTests {
  let world: World

  init() throws { world = try World() }

  @Test("everyone gets it once, at any room", arguments: [1, 2, 10, 499])
  func complete(room: Int) throws {
    try world.registerMany(60)
    let nudge = try world.nudge()
    let staged = try world.drain(["production": room])
    #expect(staged.map(\.device) == staged.map(\.device).sorted())
    #expect(Set(staged.map(\.device)).count == 60)
    #expect(staged.count == 60)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.detail(nudge) == nil)
    #expect(!world.store.scan.hasLeftovers)
  }

  @Test("two large ones take turns with the rows behind them", arguments: [1, 2, 10], [false, true])
  func fairness(room: Int, areDated: Bool) throws {
    try world.registerMany(200)
    try world.register("single", recipient: "guest", environment: "production")
    let due = areDated ? "\(world.now - 5)" : "null"
    for _ in 1...2 { try world.nudge(["not_before_at": due]) }
    for _ in 1...10 { try world.nudge(["recipient": "'guest'", "not_before_at": due]) }
    var turns = 0
    var served: [Int64] = []
    while try world.count("nudge_attempt where device_id = 'single'") < 10, turns < 400 {
      served += try world.turn(["production": room]).map(\.nudge)
      turns += 1
    }
    // Ten single rows and two fan-outs: everyone had a fair share of the turns.
    #expect(turns <= 45)
    #expect(served.contains(1) && served.contains(2))
    _ = try world.drain(["production": room], most: 2000)
    #expect(try world.count("nudge_attempt") == 410)
  }

  @Test("a dated one does not stop the undated rows")
  func acrossLanes() throws {
    try world.registerMany(200)
    try world.register("single", recipient: "guest", environment: "production")
    try world.nudge(["not_before_at": "\(world.now - 5)"])
    for _ in 1...5 { try world.nudge(["recipient": "'guest'"]) }
    for _ in 1...20 { try world.turn(["production": 1]) }
    #expect(try world.count("nudge_attempt where device_id = 'single'") == 5)
  }

  @Test("after a restart one goes on, however many devices have had it already")
  func restart() throws {
    try world.registerMany(2500)
    try world.nudge()
    for _ in 1...10 { try world.turn(["production": 230], piece: 230) }
    #expect(try world.count("nudge_attempt") == 2300)
    try world.restart()
    #expect(try world.drain(["production": 50], most: 50).count == 200)
    #expect(try world.state(1) == "attempted")
  }

  @Test("thousands of tokens that are set aside do not stop those behind them")
  func setAsideInFront() throws {
    try world.registerMany(2500)
    try world.sql("update nudge_token set rejected_at = 1")
    try world.register("z-last", environment: "production")
    try world.nudge()
    #expect(try world.drain(["production": 5], most: 50).map(\.device) == ["z-last"])
    #expect(try world.state(1) == "attempted")
  }

  @Test("a device that waits for a paused host does not stop those behind it, nor is it forgotten")
  func firstDeviceWaits() throws {
    try world.register("a-sandbox", environment: "sandbox")
    try world.registerMany(2500)
    try world.nudge()
    #expect(try world.drain(["production": 400], most: 50).count == 2500)
    #expect(try world.state(1) == "pending")
    #expect(world.store.scan.waitingFor == ["sandbox"])
    #expect(try !world.hasWork(["production": 400]))
    #expect(try world.drain(["sandbox": 1], most: 50).map(\.device) == ["a-sandbox"])
    #expect(try world.state(1) == "attempted")
  }

  @Test("devices of both hosts, mixed, with hosts that come and go")
  func mixedHosts() throws {
    for index in 1...40 {
      try world.register("device-\(index)", environment: index % 3 == 0 ? "sandbox" : "production")
    }
    try world.nudge()
    try world.nudge()
    var count = 0
    let rooms: [[String: Int]] = [
      ["production": 3, "sandbox": 3], ["sandbox": 2], ["production": 5], [:],
      ["production": 1, "sandbox": 9],
    ]
    var turns = 0
    while count < 80, turns < 300 {
      let room = rooms[turns % rooms.count]
      if try world.hasWork(room) { count += try world.turn(room).count }
      turns += 1
    }
    #expect(count == 80)
    #expect(try world.count("nudge_outbox where state = 'attempted'") == 2)
  }

  @Test("a device that is found to need another host late in the walk is not lost")
  func lateOtherHost() throws {
    try world.registerMany(10)
    try world.register("z-sandbox", environment: "sandbox")
    try world.nudge()
    let both = ["production": 2, "sandbox": 2]
    try world.turn(both, piece: 2)
    // Production finishes the walk alone; a row stands behind, so that nothing is forgotten meanwhile.
    try world.nudge(["device_id": "'z-sandbox'"])
    while try world.hasWork(["production": 20]) { try world.turn(["production": 20]) }
    #expect(try world.hasWork(["sandbox": 5]))
    #expect(try world.drain(["sandbox": 5]).map(\.nudge) == [1, 2])
  }

  @Test("a paused device gets its nudge after the pause, the others at once")
  func pausedDevice() throws {
    try world.registerMany(30)
    let until = world.now + 60_000
    world.network.pausedDevices = ["device-00002": until]
    try world.nudge()
    let staged = try world.drain(["production": 4], most: 40)
    #expect(staged.count == 29)
    #expect(try world.state(1) == "pending")
    #expect(try world.store.nextTime(after: world.now) == until)
    #expect(try !world.hasWork(["production": 4]))
    world.network.pausedDevices = [:]
    world.now = until
    #expect(try world.hasWork(["production": 4]))
    #expect(try world.drain(["production": 4]).map(\.device) == ["device-00002"])
    #expect(try world.state(1) == "attempted")
    #expect(!world.store.scan.hasLeftovers)
  }

  @Test("a pause that ends in the middle of a walk is not forgotten")
  func pauseEndsMidway() throws {
    try world.registerMany(30)
    world.network.pausedDevices = ["device-00002": world.now + 1000]
    try world.nudge()
    #expect(try world.turn(["production": 4]).count >= 1)
    world.network.pausedDevices = [:]
    world.now += 1000
    #expect(try world.drain(["production": 4]).count >= 25)
    #expect(try world.count("nudge_attempt") == 30)
    #expect(try world.state(1) == "attempted")
  }

  @Test("answers that reopen it in the middle of a walk do not send the walk back to its start")
  func reopenedMidway() throws {
    try world.registerMany(3000)
    try world.nudge()
    var pending: [Finish] = []
    var turns = 0
    while try world.hasWork(["production": 100]) || !pending.isEmpty {
      let staged = try world.turn(["production": 100], finishes: pending)
      // One of each piece comes back unsent.
      pending = staged.enumerated().map { world.finish($1, $0 == 0 ? .unsent : .accepted) }
      turns += 1
      if turns > 400 { break }
    }
    #expect(turns <= 400)
    #expect(try world.count("nudge_attempt where outcome = 'accepted'") >= 2990)
    #expect(try world.state(1) == "attempted")
    let left = try world.count(
      """
      nudge_device d where not exists (select 1 from nudge_attempt a where a.device_id = d.device_id
        and (a.may_have_buzzed = 1
          or (select count(*) from nudge_attempt b where b.device_id = a.device_id) = 3))
      """)
    #expect(left == 0)
  }

  @Test("one claim looks at a bounded number of devices, however many rows and devices wait")
  func boundedDevices() throws {
    try world.registerMany(1500, environment: "sandbox")
    try world.nudges(20)
    try world.turn(["production": 10])
    #expect(world.network.routed <= 3 * ClaimBounds.devices)
    #expect(try world.drain([:], most: 100).isEmpty)
    #expect(world.store.scan.waitingFor == ["sandbox"])
  }

  @Test("a nudge that ended otherwise leaves nothing in memory")
  func noLeak() throws {
    try world.registerMany(10)
    for _ in 1...3 { try world.nudge() }
    for _ in 1...4 { try world.turn(["production": 2]) }
    #expect(!world.store.fanOuts.isEmpty)
    try world.sql("update nudge_outbox set state = 'cancelled' where state = 'pending'")
    #expect(try world.drain(["production": 2]).isEmpty)
    #expect(try !world.hasWork(["production": 2]))
    #expect(world.store.fanOuts.isEmpty)
  }
}
