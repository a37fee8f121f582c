import Testing

@testable import Outbox

@Suite("Settle")
struct SettleTests {
  let world: World
  let room = ["production": 10, "sandbox": 10]

  init() throws {
    world = try World()
    try world.register("phone")
  }

  private func token() throws -> String? {
    try world.rows(
      """
      select coalesce(environment, '-') || '|' || coalesce(proven_at, '-') || '|' || coalesce(rejected_at, '-')
      from nudge_token where device_id = 'phone'
      """
    ).first
  }

  private func attempt() throws -> Staged {
    try world.nudge()
    return try #require(try world.drain(room).first)
  }

  // MARK: Each token knows its host

  @Test("an acceptance proves the environment, once")
  func proven() throws {
    try world.settle(world.finish(try attempt(), .accepted))
    #expect(world.lastSettlement.provenTokens == 1)
    #expect(try token() == "production|\(world.now)|-")
    let second = try attempt()
    #expect(second.isProven)
    try world.settle(world.finish(second, .accepted))
    #expect(world.lastSettlement.provenTokens == 0)
  }

  @Test("BadDeviceToken goes to the other host once, and an acceptance there is remembered")
  func otherHost() throws {
    let first = try attempt()
    #expect(first.environment == "production")
    try world.settle(world.finish(first, .wrongHost, reason: "BadDeviceToken"))
    #expect(world.lastSettlement.reopenedNudges == 1)
    #expect(try world.hasWork(room))
    let second = try #require(try world.drain(room).first)
    #expect(second.nudge == first.nudge)
    #expect(second.environment == "sandbox")
    try world.settle(world.finish(second, .accepted))
    #expect(try token() == "sandbox|\(world.now)|-")
    #expect(try attempt().environment == "sandbox")
    #expect(try world.state(first.nudge) == "attempted")
  }

  @Test("a token that both hosts refuse is set aside, and a registration brings it back")
  func setAside() throws {
    let first = try attempt()
    try world.settle(world.finish(first, .wrongHost))
    let second = try #require(try world.drain(room).first)
    try world.settle(world.finish(second, .wrongHost))
    #expect(world.lastSettlement.setAsideTokens == 1)
    #expect(world.lastSettlement.reopenedNudges == 0)
    #expect(try token() == "-|-|\(world.now)")
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(first.nudge) == "attempted")

    let next = try world.nudge()
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(next) == "unaddressed")
    #expect(try world.detail(next)?.contains("set aside") == true)
    try world.register("phone", at: world.now)
    #expect(try attempt().environment == "production")
  }

  @Test("with one host, its BadDeviceToken is the last word")
  func oneHost() throws {
    let world = try World(environments: ["sandbox"])
    try world.register("phone", environment: "production")
    let nudge = try world.nudge()
    let staged = try #require(try world.drain(["sandbox": 1]).first)
    #expect(staged.environment == "sandbox")
    try world.settle(world.finish(staged, .wrongHost))
    #expect(world.lastSettlement.setAsideTokens == 1)
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.drain(["sandbox": 1]).isEmpty)
  }

  @Test("a token that was registered again meanwhile learns nothing from an old answer")
  func learnsNothing() throws {
    for outcome in [Outcome.accepted, .wrongHost] {
      let staged = try attempt()
      world.now += 5
      try world.register("phone", environment: "sandbox", at: world.now)
      let before = try token()
      try world.settle(world.finish(staged, outcome))
      if outcome == .wrongHost {
        let second = try #require(try world.drain(room).first)
        world.now += 5
        try world.register("phone", environment: "sandbox", at: world.now)
        try world.settle(world.finish(second, outcome))
      }
      #expect(try token() == before)
      #expect(world.lastSettlement.provenTokens + world.lastSettlement.setAsideTokens == 0)
      _ = try world.drain(room)
    }
  }

  @Test("another token in its place learns nothing from the old one's answer")
  func replacedToken() throws {
    for outcome in [Outcome.accepted, .deadToken] {
      let staged = try attempt()
      try world.register("phone", token: outcome == .accepted ? "beef" : "cafe", at: world.now - 500_000)
      try world.settle(world.finish(staged, outcome, timestampAt: world.now))
      #expect(try token() == "-|-|-")
    }
  }

  @Test(
    "other answers teach nothing about the token",
    arguments: [Outcome.rejected, .unanswered, .interrupted, .unsent])
  func teachesNothing(outcome: Outcome) throws {
    try world.settle(world.finish(try attempt(), outcome, status: outcome == .rejected ? 403 : nil))
    #expect(try token() == "-|-|-")
  }

  // MARK: Dead tokens go

  @Test("410 drops every row of the token, in the transaction that records the attempt")
  func dead() throws {
    try world.sql(
      """
      insert into nudge_registration (device_id, kind, token, registered_at)
      values ('phone', 'voip', '\(World.token("phone"))', \(world.now - 1000))
      """)
    let staged = try attempt()
    try world.settle(world.finish(staged, .deadToken, reason: "Unregistered", timestampAt: world.now - 10))
    #expect(world.lastSettlement.droppedTokens == 2)
    #expect(try world.count("nudge_token") == 0)
    #expect(try world.count("nudge_device") == 1)
    #expect(
      try world.rows("select outcome || status || reason || apns_timestamp_at from nudge_attempt")
        == ["dead_token410Unregistered\(world.now - 10)"])
  }

  @Test("410 spares a token that was registered after the time that Apple names, to the millisecond")
  func registeredAgain() throws {
    for (offset, remaining) in [(Int64(-1), Int64(1)), (0, 0)] {
      try world.register("phone", at: world.now)
      let staged = try attempt()
      try world.settle(world.finish(staged, .deadToken, timestampAt: world.now + offset))
      #expect(try world.count("nudge_token") == remaining)
    }
  }

  @Test("without a timestamp the attempt's start stands for it")
  func noTimestamp() throws {
    let staged = try attempt()
    world.now += 1000
    try world.register("phone", at: staged.startedAt + 1)
    try world.settle(world.finish(staged, .deadToken))
    #expect(try world.count("nudge_token") == 1)
    world.now += 1000
    try world.settle(world.finish(try attempt(), .deadToken))
    #expect(try world.count("nudge_token") == 0)
  }

  @Test("a timestamp in the future counts as now: a later registration would be spared")
  func futureTimestamp() throws {
    let staged = try attempt()
    try world.register("phone", at: world.now + 1)
    try world.settle(world.finish(staged, .deadToken, timestampAt: world.now + 86_400_000))
    #expect(try world.count("nudge_token") == 1)
  }

  // MARK: Conditions

  @Test("a late answer or one of another request changes nothing")
  func foreignAnswers() throws {
    let staged = try attempt()
    var foreign = staged
    foreign.apnsID = Array("ffffffff-0000-4000-8000-000000000000".utf8)
    try world.settle(world.finish(foreign, .deadToken))
    #expect(try world.count("nudge_attempt where outcome is null") == 1)
    #expect(try world.count("nudge_token") == 1)

    try world.settle(world.finish(staged, .unanswered))
    try world.settle(
      world.finish(staged, .accepted), world.finish(staged, .deadToken), world.finish(staged, .unsent))
    #expect(try world.rows("select outcome || may_have_buzzed from nudge_attempt") == ["unanswered1"])
    #expect(try world.count("nudge_token where proven_at is null") == 1)
    #expect(try world.state(staged.nudge) == "attempted")
  }

  @Test("plain acceptances are written in runs, and touch only their own attempts")
  func runs() throws {
    try world.settle(world.finish(try attempt(), .accepted))
    for _ in 1...20 { try world.nudge() }
    let staged = try world.drain(["production": 20])
    let answered = staged.filter { ![3, 4, 9].contains($0.nudge) }
    #expect(answered.allSatisfy { world.finish($0, .accepted).isPlain })
    try world.turn([:], finishes: answered.reversed().map { world.finish($0, .accepted) }, claims: false)
    #expect(
      try world.rows("select nudge_id from nudge_attempt where outcome is null order by 1") == [
        "3", "4", "9",
      ])
    #expect(
      try world.count("nudge_attempt where outcome = 'accepted' and status = 200 and finished_at > 0") == 18)
  }

  @Test("what Apple says besides is kept word for word")
  func answerColumns() throws {
    let staged = try attempt()
    try world.settle(
      world.finish(staged, .rejected, status: 400, reason: "Brand\u{1}New \"Reason\"", uniqueID: "u-1"))
    #expect(
      try world.rows(
        "select status || '|' || reason || '|' || apns_unique_id || '|' || may_have_buzzed from nudge_attempt"
      )
        == ["400|Brand\u{1}New \"Reason\"|u-1|1"])
  }

  // MARK: Cancelled

  @Test("cancelled stays cancelled when the attempt in flight comes back unsent")
  func cancelledFanOut() throws {
    try world.register("phone-2")
    let nudge = try world.nudge()
    let staged = try #require(try world.turn(["production": 1]).first)
    try world.sql("update nudge_outbox set state = 'cancelled' where id = \(nudge)")
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.detail(nudge) == "cancelled after 1 attempt")
    try world.settle(world.finish(staged, .unsent))
    #expect(try world.state(nudge) == "attempted")
    #expect(try world.drain(room).isEmpty)
  }

  @Test("a nudge that came back unsent and was cancelled then stays cancelled")
  func cancelledAfterUnsent() throws {
    let staged = try attempt()
    try world.settle(world.finish(staged, .unsent))
    try world.sql("update nudge_outbox set state = 'cancelled' where id = \(staged.nudge)")
    #expect(try world.drain(room).isEmpty)
    #expect(try world.state(staged.nudge) == "attempted")
    #expect(try world.detail(staged.nudge) == "cancelled after 1 attempt")
  }
}
