import Testing

@testable import Outbox

@Suite("Close: states and their words")
struct CloseTests {
  let world: World
  let room = ["production": 10]

  init() throws {
    world = try World()
    try world.register("phone", environment: "production")
  }

  @Test(
    "a nudge for nobody says why",
    arguments: [
      (["recipient": "'nobody'"], "recipient nobody has no device"),
      (["surface": "'watch'"], "recipient owner has no device on surface watch"),
      (["device_id": "'gone'"], "no such device is registered"),
      (["device_id": "'guest'"], "the device does not belong to recipient owner"),
      (["device_id": "'mute'"], "the device has no alert token"),
      (
        ["surface": "'tablet'"], "no device of recipient owner on surface tablet has a token of kind alert"
      ),
    ] as [(KeyValuePairs<String, String>, String)])
  func unaddressed(columns: KeyValuePairs<String, String>, words: String) throws {
    try world.register("guest", recipient: "guest")
    try world.sql("insert into nudge_registration (device_id, surface) values ('mute', 'tablet')")
    let nudge = try world.nudge(columns)
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(nudge) == "unaddressed")
    #expect(try world.detail(nudge) == words)
    #expect(try world.backend.integer("select settled_at from nudge_outbox") == world.now)
  }

  static let timeColumns = ["created_at", "not_before_at", "expires_at"]

  @Test("a time that is none names its column and the likely mistake", arguments: timeColumns)
  func times(column: String) throws {
    let seconds = "\(column) looks like seconds, but times are milliseconds since 1970: multiply by 1000"
    let range = "\(column) is no time in milliseconds since 1970 (10^11 to 10^14)"
    let storage = "\(column) is not an integer: times are milliseconds since 1970"
    for (value, words) in [
      ("1800000000", seconds), ("99999999999", seconds), ("0", range), ("-5", range),
      ("100000000000001", range), ("9223372036854775807", range), ("-9223372036854775808", range),
      ("'soon'", storage), ("x'31'", storage), ("1799999999999.5", storage), ("1e300", storage),
      ("'2026-01-01T00:00:00Z'", storage), ("9e999", storage),
    ] {
      let nudge = try world.nudge([column: value])
      let good = try world.nudge()
      #expect(try world.drain(room).map(\.nudge) == [good], "\(value)")
      #expect(try world.state(nudge) == "invalid", "\(value)")
      #expect(try world.detail(nudge) == words, "\(value)")
    }
  }

  @Test("text that is a whole number becomes one by the column's affinity")
  func affinity() throws {
    let nudge = try world.nudge(["created_at": "'\(world.now)'", "expires_at": "\(world.now + 1).0"])
    #expect(try world.drain(room).map(\.nudge) == [nudge])
  }

  @Test("a row expires at its own time, else an hour after it was made or due")
  func expiry() throws {
    let hour = World.expireAfter
    let rows: [(columns: KeyValuePairs<String, String>, lifetime: Int64)] = [
      ([:], hour),
      (["expires_at": "\(world.now + 7)"], 7),
      (["not_before_at": "\(world.now - 1000)"], hour),
      (["created_at": "\(world.now - 500)", "not_before_at": "\(world.now - 100)"], hour - 100),
      (["created_at": "\(world.now - 500)"], hour - 500),
    ]
    let start = world.now
    for (columns, lifetime) in rows {
      world.now = start
      let alive = try world.nudge(columns)
      world.now = start + lifetime - 1
      #expect(try world.drain(room).map(\.nudge) == [alive], "\(columns)")
      world.now = start
      let late = try world.nudge(columns)
      world.now = start + lifetime
      #expect(try world.drain(room).isEmpty, "\(columns)")
      #expect(try world.state(late) == "expired")
      #expect(try world.detail(late) == nil)
    }
  }

  @Test("what expires on the way says how many devices were left")
  func expiredFanOut() throws {
    try world.registerMany(9)
    let nudge = try world.nudge()
    #expect(try world.turn(["production": 4], piece: 4).count == 4)
    world.now += World.expireAfter
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.detail(nudge) == "expired before 6 of 10 devices")
  }

  @Test("a device whose attempt came back unsent counts as left")
  func expiredAfterUnsent() throws {
    let nudge = try world.nudge()
    let staged = try #require(try world.drain(room).first)
    try world.settle(world.finish(staged, .unsent))
    world.now += World.expireAfter
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.detail(nudge) == "expired before 1 of 1 devices")
  }

  @Test("a row that turns out invalid after an attempt says both")
  func invalidAfterAttempt() throws {
    let nudge = try world.nudge()
    let staged = try #require(try world.drain(room).first)
    try world.settle(world.finish(staged, .unsent))
    try world.sql("update nudge_outbox set kind = 'nonsense' where id = \(nudge)")
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.detail(nudge) == "invalid: kind is not alert")
  }

  @Test("a malformed token or topic makes a row invalid only if nothing else was tried")
  func impossible() throws {
    world.network.malformedDevices = ["phone"]
    let alone = try world.nudge()
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(alone) == "invalid")
    #expect(try world.detail(alone) == "token is malformed")
    try world.register("other", environment: "production")
    let shared = try world.nudge()
    #expect(try world.drain(room).map(\.device) == ["other"])
    #expect(try world.state(shared) == "attempted")
  }

  @Test("expire ends what waits unseen, a bounded number at a time, and nothing else")
  func expire() throws {
    try world.nudges(30)
    for _ in 1...10 { try world.nudge(["expires_at": "\(world.now + 1000)"]) }
    for _ in 1...10 { try world.nudge(["not_before_at": "\(world.now - 1)"]) }
    let young = try world.nudge(["created_at": "\(world.now + 60_000)"])
    try world.drain([:])
    #expect(try !world.store.hasExpired(now: world.now))
    world.now += 1000
    #expect(try world.store.hasExpired(now: world.now))
    #expect(try world.expire(limit: 4))
    #expect(try world.count("nudge_outbox where state = 'expired'") == 4)
    while try world.expire(limit: 4) {}
    #expect(try world.count("nudge_outbox where state = 'expired'") == 10)
    world.now += World.expireAfter
    while try world.expire(limit: 7) {}
    #expect(try world.count("nudge_outbox where state = 'expired'") == 50)
    #expect(try world.state(young) == "pending")
    #expect(try !world.store.hasExpired(now: world.now))
  }

  @Test("the next time is that of the next row to become due or to run out")
  func nextTime() throws {
    #expect(try world.store.nextTime(after: world.now) == nil)
    try world.nudge(["not_before_at": "\(world.now + 500)"])
    #expect(try world.store.nextTime(after: world.now) == world.now + 500)
    try world.nudge(["expires_at": "\(world.now + 300)"])
    #expect(try world.store.nextTime(after: world.now) == world.now + 300)
    #expect(try world.store.nextTime(after: world.now + 300) == world.now + 500)
    try world.nudge(["not_before_at": "'never'", "expires_at": "9223372036854775807"])
    #expect(try world.store.nextTime(after: world.now + 500) == nil)
  }
}
