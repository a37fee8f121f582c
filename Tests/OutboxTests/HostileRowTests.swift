import Testing

@testable import Outbox

/// A small generator with a seed, so that a failure can be repeated (SplitMix64, public domain).
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}

@Suite("Hostile rows")
struct HostileRowTests {
  private static let columns = [
    "created_at", "kind", "event", "record_id", "recipient", "surface", "device_id", "conversation_id",
    "title",
    "subtitle", "body", "aps", "data", "activity_id", "attributes_type", "attributes", "content_state",
    "stale_at", "dismiss_at", "collapse_id", "priority", "delivered_by", "push_requested", "not_before_at",
    "expires_at", "dedupe_key",
  ]

  private static let values = [
    "null", "''", "x''", "zeroblob(3)", "0", "1", "-1", "0.5", "-0.0", "9e999", "-9e999",
    "9223372036854775807", "-9223372036854775808", "1800000000", "1800000000000", "1799999999999",
    "1800003600001", "100000000000000", "99999999999", "'alert'", "x'616c657274'", "'owner'", "'*'",
    "'phone'",
    "'job_finished'", "cast(x'ff00fe' as text)", "'a' || char(0) || 'b'", "char(55296)", "'{}'", "'['",
    "'pending'", "'2026-01-01'", "hex(zeroblob(3000))", "x'c328'",
  ]

  @Test(
    "no value of any type in any column makes a claim throw or hides the good row behind", arguments: 1...8)
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let world = try World()
    try world.register("phone", environment: "production")
    try world.register("second")
    for round in 1...120 {
      var columns: [String] = []
      var values: [String] = []
      for column in HostileRowTests.columns where Int.random(in: 0..<3, using: &generator) == 0 {
        columns.append(column)
        values.append(HostileRowTests.values.randomElement(using: &generator) ?? "null")
      }
      // Never fails and never blocks the backend, whatever the row says.
      let columnList =
        columns.isEmpty
        ? "default values" : "(\(columns.joined(separator: ", "))) values (\(values.joined(separator: ", ")))"
      try world.sql("insert into nudge_outbox \(columnList)")
      let good = try world.nudge(["device_id": "'phone'"])
      if round % 7 == 0 { try world.drain([:]) }
      let staged = try world.drain(["production": 10, "sandbox": 10])
      #expect(staged.map(\.nudge).contains(good), "seed \(seed) round \(round): \(columnList)")
      try world.turn([:], finishes: staged.map { world.finish($0, .accepted) }, claims: false)
    }
    try expectLegal(world)
    world.now += 40_000_000_000_000
    try world.drain(["production": 10, "sandbox": 10])
    try expectLegal(world)
    #expect(try world.backend.text("pragma integrity_check") == "ok")
  }

  private func expectLegal(_ world: World) throws {
    // What is pending waits for a legal time of its own; everything else has ended with a legal state.
    let illegal = try world.rows(
      """
      select id || ' ' || quote(detail) || ' ' || quote(state) || ' ' || quote(not_before_at) from nudge_outbox
      where case state
        when 'pending' then not (typeof(not_before_at) = 'integer'
          and not_before_at between \(world.now + 1) and 100000000000000)
        else state is null or settled_at is null
          or state not in ('attempted', 'suppressed', 'expired', 'unaddressed', 'invalid') end
      """)
    #expect(illegal == [])
    #expect(
      try world.count(
        """
        nudge_outbox n where (state = 'attempted')
          <> exists (select 1 from nudge_attempt a where a.nudge_id = n.id)
        """) == 0)
    #expect(try world.count("nudge_outbox where state = 'invalid' and detail is null") == 0)
  }

  @Test("rows of the device tables that were written past the view break nothing")
  func devices() throws {
    let world = try World()
    try world.register("z-good", environment: "production")
    try world.sql(
      """
      insert into nudge_device (device_id, topic) values
        ('a', null), (x'00ff', 'com.example.app'), ('', 'com.example.app'), ('b', x'00'), ('c', 'com.example.app');
      insert into nudge_token (device_id, kind, token, environment, registered_at) values
        ('a', 'alert', 'aa', 'production', 1), (x'00ff', 'alert', 'bb', 'nowhere', 'text'),
        ('', 'alert', 'cc', null, 1), ('b', 'alert', x'00', x'ff', 1), ('c', 'alert', '', null, -1);
      """)
    let nudge = try world.nudge()
    let staged = try world.drain(["production": 2, "sandbox": 2])
    #expect(staged.map(\.device).contains("z-good"))
    #expect(Set(staged.map(\.attempt)).count == staged.count)
    for outcome in [Outcome.accepted, .wrongHost, .deadToken] {
      try world.turn([:], finishes: staged.map { world.finish($0, outcome) }, claims: false)
    }
    #expect(try world.drain(["production": 2, "sandbox": 2]).isEmpty)
    #expect(try world.state(nudge) == "attempted")
  }

  @Test(
    "an activity id that is none is said",
    arguments: [
      ("null", "activity_id is NULL: give every nudge of one activity the same id"),
      ("''", "activity_id is not a text, or empty"), ("x'61'", "activity_id is not a text, or empty"),
      ("'a' || char(0) || 'b'", "activity_id has a NUL byte"),
    ])
  func activityID(value: String, words: String) throws {
    let turn = try Turn()
    for kind in ["start", "update", "end"] {
      let id = try turn.row(kind)
      try turn.world.sql("update nudge_outbox set activity_id = \(value) where id = \(id)")
      #expect(try turn.play().isEmpty)
      #expect(try turn.fate(id) == "invalid: " + words)
    }
  }

  @Test("dates in seconds are said", arguments: ["stale_at", "dismiss_at"])
  func seconds(column: String) throws {
    let turn = try Turn()
    try turn.adopt()
    let id = try turn.row("end", [column: "1800000000"])
    #expect(try turn.play().isEmpty)
    #expect(
      try turn.world.detail(id)
        == "\(column) looks like seconds, but times are milliseconds since 1970: multiply by 1000")
  }
}
