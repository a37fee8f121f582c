import Testing

@testable import Outbox

@Suite("Attempt: at most once to a device")
struct AttemptTests {
  let world: World
  let room = ["production": 10, "sandbox": 10]

  init() throws {
    world = try World()
    try world.register("phone", environment: "production")
  }

  /// Sets a settled nudge back, as an old copy of the database or a careless backend would.
  private func reopen(_ nudge: Int64) throws {
    try world.sql(
      "update nudge_outbox set state = 'pending', detail = null, settled_at = null where id = \(nudge)")
    world.store.scan.restart()
  }

  @Test(
    "an attempt that may have arrived is never repeated, whatever became of it",
    arguments: [Outcome.accepted, .rejected, .deadToken, .unanswered, .interrupted])
  func outcomes(outcome: Outcome) throws {
    let nudge = try world.nudge()
    let staged = try #require(try world.turn(room).first)
    try world.settle(world.finish(staged, outcome))
    try world.register("phone", environment: "production")
    try reopen(nudge)
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.count("nudge_attempt") == 1)
  }

  @Test("a device whose token changed is the same device")
  func changedToken() throws {
    let nudge = try world.nudge()
    try world.turn(room)
    try world.register("phone", token: "beef")
    try reopen(nudge)
    #expect(try world.drain(room).isEmpty)
    try reopen(nudge)
    try world.restart()
    #expect(try world.drain(room).isEmpty)
    #expect(try world.count("nudge_attempt") == 1)
  }

  @Test("a token that moved to another device is the same token")
  func movedToken() throws {
    let nudge = try world.nudge()
    try world.turn(room)
    try world.register("phone-2", token: World.token("phone"))
    try reopen(nudge)
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.count("nudge_attempt") == 1)
  }

  @Test("what a claim has read is out of date once somebody commits, and then nothing of it happens")
  func staleReading() throws {
    let nudge = try world.nudge()
    world.whileReading = {
      world.whileReading = nil
      #expect(throws: Never.self) { try world.register("phone", token: "beef", environment: "production") }
    }
    let staged = try world.turn(room)
    #expect(world.busyTurns == 1)
    #expect(staged.map(\.nudge) == [nudge])
    #expect(staged.map(\.token) == ["beef"])
    #expect(try world.count("nudge_attempt") == 1)
  }

  @Test("two devices that carry one token, written past the view, get one request in one claim")
  func sharedToken() throws {
    try world.sql(
      """
      insert into nudge_device (device_id, topic) values ('twin', 'com.example.app');
      insert into nudge_token (device_id, kind, token, registered_at)
      values ('twin', 'alert', '\(World.token("phone"))', 1);
      """)
    let nudge = try world.nudge()
    #expect(try world.drain(room).map(\.device) == ["phone"])
    #expect(try world.state(nudge) == "attempted")
  }

  @Test("a worker that was killed between claim and answer does not send again")
  func killed() throws {
    let nudge = try world.nudge()
    try world.turn(room)
    try world.restart()
    #expect(try world.recover() == 1)
    try reopen(nudge)
    #expect(try world.drain(room).isEmpty)
    #expect(try world.rows("select outcome || may_have_buzzed from nudge_attempt") == ["interrupted1"])
  }

  @Test("the pieces of a fan-out do not overlap, also across restarts and when devices join meanwhile")
  func pieces() throws {
    try world.registerMany(20)
    let nudge = try world.nudge()
    var devices: [String] = []
    for round in 0..<12 {
      devices += try world.turn(["production": 3]).map(\.device)
      if round % 3 == 1 { try world.restart() }
      if round == 4 { try world.register("a-first-device", environment: "production") }
      if round == 5 { try world.register("device-00002", token: "abcdef", environment: "production") }
    }
    devices += try world.drain(["production": 3]).map(\.device)
    #expect(Set(devices).count == devices.count)
    #expect(Set(devices).isSuperset(of: ["phone", "device-00001", "device-00020"]))
    #expect(devices.count >= 21)
    #expect(try world.state(nudge) == "attempted")
  }

  @Test("what was provably not processed is tried again, three times in all")
  func unsent() throws {
    let nudge = try world.nudge()
    for round in 1...3 {
      let staged = try #require(try world.drain(room).first, "round \(round)")
      #expect(try world.state(nudge) == "attempted")
      try world.settle(world.finish(staged, .unsent))
      #expect(try world.state(nudge) == (round < 3 ? "pending" : "attempted"))
    }
    #expect(try world.drain(room).isEmpty)
    try reopen(nudge)
    #expect(try world.drain(room).isEmpty)
    #expect(
      try world.rows("select coalesce(may_have_buzzed, 'NULL') from nudge_attempt") == [
        "NULL", "NULL", "NULL",
      ])
  }

  @Test("what was unsent goes to the device's present token, and then never again")
  func unsentThenChanged() throws {
    let nudge = try world.nudge()
    let first = try #require(try world.turn(room).first)
    try world.register("phone", token: "beef", environment: "production")
    try world.settle(world.finish(first, .unsent))
    let second = try world.drain(room)
    #expect(second.map(\.token) == ["beef"])
    try world.settle(world.finish(second[0], .unanswered))
    try reopen(nudge)
    #expect(try world.drain(room).isEmpty)
  }

  @Test("an attempt that comes back unsent is looked for again, though the look before had found nothing")
  func unsentIsFound() throws {
    try world.nudge()
    let staged = try #require(try world.drain(room).first)
    #expect(try !world.hasWork(room))
    try world.settle(world.finish(staged, .unsent))
    #expect(world.lastSettlement.reopenedNudges == 1)
    #expect(try world.hasWork(room))
  }

  @Test("the indexes refuse a second attempt even if the code asks for one")
  func indexes() throws {
    let nudge = try world.nudge()
    try world.turn(room)
    let hash = try world.backend.text("select token_hash from nudge_attempt") ?? ""
    for (device, hash) in [("phone", "0000000000000000"), ("other", hash)] {
      #expect(throws: (any Error).self) {
        try world.sql(
          "insert into nudge_attempt (nudge_id, device_id, token_hash) values (\(nudge), '\(device)', '\(hash)')"
        )
      }
    }
  }
}
