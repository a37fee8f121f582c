import SQLite
import Testing

@testable import Outbox

@Suite("AddressBook")
struct AddressBookTests {
  let world: World

  init() throws { world = try World() }

  /// What the next claims send, one nudge each.
  private func send(_ count: Int = 1) throws -> [String] {
    try (0..<count).flatMap { _ in try world.turn(["production": 1]).map(\.token) }
  }

  @Test("while nobody else commits, a device is read once, however many claims there are")
  func once() throws {
    try world.register("phone", token: "aa", environment: "production")
    try world.nudges(5)
    #expect(try send(5) == ["aa", "aa", "aa", "aa", "aa"])
    #expect(world.network.hashed == 1)
  }

  @Test(
    "what somebody else has changed since the last claim holds in the next one",
    arguments: [
      ("update nudge_token set token = 'bb'", ["bb"]),
      ("update nudge_token set environment = 'sandbox'", []),
      ("delete from nudge_token", []),
      ("delete from nudge_device", []),
      ("update nudge_device set recipient = 'other'", []),
      ("update nudge_device set surface = 'watch'", []),
      ("update nudge_device set topic = null", []),
      ("update nudge_token set rejected_at = 1", []),
      (
        "insert into nudge_registration (device_id, recipient, surface, topic, token, environment) "
          + "values ('a phone', 'owner', 'phone', 'com.example.app', 'cc', 'production')", ["cc"]
      ),
    ])
  func foreign(change: String, tokens: [String]) throws {
    try world.register("phone", token: "aa", environment: "production")
    try world.nudges(3)
    #expect(try send() == ["aa"])
    try world.sql(change)
    #expect(try send() == tokens)
  }

  @Test("a device that was not there is found when it comes")
  func arrival() throws {
    try world.nudges(2)
    #expect(try send() == [])
    try world.register("phone", token: "aa", environment: "production")
    try world.nudges(1)
    #expect(try send() == ["aa"])
  }

  @Test(
    "what an answer has taught about a token holds in the next claim",
    arguments: [(Outcome.deadToken, [String]()), (.wrongHost, []), (.accepted, ["aa"])])
  func own(outcome: Outcome, tokens: [String]) throws {
    let world = try World(environments: ["production"])
    try world.register("phone", token: "aa")
    try world.nudges(3)
    let first = try world.turn(["production": 1])
    #expect(first.map(\.token) == ["aa"])
    try world.settle(world.finish(try #require(first.first), outcome))
    let second = try world.turn(["production": 1])
    #expect(second.map(\.token) == tokens)
    #expect(second.allSatisfy { $0.isProven })
  }

  @Test("what was read in a transaction that came to nothing is read again")
  func rollback() throws {
    try world.register("phone", token: "aa", environment: "production")
    try world.nudges(2)
    let first = try #require(try world.turn(["production": 1]).first)
    let (store, network, now) = (world.store, world.network, world.now)
    let dead = world.finish(first, .deadToken)
    let bounds = World.bounds(["production": 1])
    let mine = SQLiteError(code: 1, message: "mine")
    #expect(throws: mine) {
      try store.turn { transaction throws(SQLiteError) in
        _ = try store.settle([dead], in: &transaction)
        _ = try store.decideClaim(now: now, within: bounds, by: network, in: &transaction)
        throw mine
      }
    }
    #expect(try send() == ["aa"])
  }

  @Test("more addresses than it keeps get their own, again and again")
  func many() throws {
    let count = 5000
    try world.sql(
      """
      with recursive n (i) as (select 1 union all select i + 1 from n where i < \(count))
      insert into nudge_registration (device_id, recipient, topic, token, environment)
      select 'device-' || i, 'user-' || i, 'com.example.app', printf('%08x', i), 'production' from n
      """)
    try world.sql(
      """
      with recursive n (i) as (select 1 union all select i + 1 from n where i < \(2 * count))
      insert into nudge_outbox (created_at, title, recipient)
      select \(world.now), 'Done', 'user-' || (1 + i * 7919 % \(count)) from n
      """)
    let staged = try world.drain(["production": 500])
    #expect(staged.count == 2 * count)
    for entry in staged {
      #expect(entry.device == "device-\(1 + entry.nudge * 7919 % Int64(count))")
    }
  }

  @Test("many addresses without any device do not push out the one that has some, nor fill it up")
  func empty() throws {
    try world.register("phone", token: "aa", environment: "production")
    try world.sql(
      """
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000)
      insert into nudge_outbox (created_at, title, recipient)
      select \(world.now), 'Done', iif(i % 1000 = 0, 'owner', 'nobody-' || i) from n
      """)
    #expect(try world.drain(["production": 500]).map(\.nudge) == [1000, 2000, 3000, 4000, 5000])
    #expect(try world.count("nudge_outbox where state = 'unaddressed'") == 4995)
  }

  @Test(
    "what a claim has written about a Live Activity holds in the next one: no older state follows a newer one"
  )
  func activity() throws {
    let turn = try Turn(in: world)
    try turn.adopt()
    try world.sql("update nudge_token set proven_at = registered_at")
    try world.sql("begin")
    let older = try turn.row("update", ["not_before_at": "\(world.now + 5000)"])
    let newer = try turn.row("update")
    try world.sql("commit")
    let first = try world.turn(["production": 1])
    #expect(first.map(\.nudge) == [newer])
    try world.settle(world.finish(try #require(first.first), .accepted))
    world.now += 10_000
    #expect(try world.turn(["production": 1]) == [])
    #expect(try world.state(older) == "superseded")
  }
}
