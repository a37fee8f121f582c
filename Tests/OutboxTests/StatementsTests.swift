import SQLite
import Testing

@testable import Outbox

@Suite("Statements")
struct StatementsTests {
  /// Every compiled statement by its name.
  private func all(_ store: Store) -> [(name: String, statement: Statement)] {
    var found: [(String, Statement)] = []
    for child in Mirror(reflecting: store.statements).children {
      let name = child.label ?? ""
      if let statement = child.value as? Statement { found.append((name, statement)) }
      if let list = child.value as? [Statement] {
        for (index, statement) in list.enumerated() { found.append(("\(name)\(index)", statement)) }
      }
    }
    return found
  }

  /// The index that each part of a statement has to use.
  private static let expected: [String: [String]] = [
    "look0": ["nudge_outbox_dated"], "look1": ["nudge_outbox_undated"], "look2": ["nudge_outbox_dated"],
    "pending0": ["nudge_outbox_dated"], "pending1": ["nudge_outbox_undated"],
    "pending2": ["nudge_outbox_dated"],
    "nextDue": ["nudge_outbox_dated"], "nextExpiry": ["nudge_outbox_expiring"],
    "targetsOfDevice": ["PRIMARY KEY", "nudge_token_place"],
    "targetsOnSurface": ["nudge_device_address", "nudge_token_place"],
    "targetsAnywhere": ["nudge_device_recipient", "nudge_token_place"],
    "activityTargetsOfDevice": ["PRIMARY KEY", "nudge_token_place"],
    "activityTargetsOnSurface": ["nudge_device_address", "nudge_token_place", "PRIMARY KEY"],
    "activityTargetsAnywhere": ["nudge_device_recipient", "nudge_token_place", "PRIMARY KEY"],
    "nudge": ["PRIMARY KEY"], "newerOfActivity": ["nudge_outbox_activity", "nudge_attempt_device"],
    "pendingStart": ["nudge_outbox_activity", "nudge_token_place", "nudge_attempt_device"],
    "waitingOfAddress": ["nudge_outbox_activity", "PRIMARY KEY"],
    "lastTimestamp": ["PRIMARY KEY"], "rememberActivity": [], "awaitToken": ["PRIMARY KEY"],
    "wakeWaiting": ["nudge_outbox_waiting"], "wakeBehindStart": ["nudge_outbox_waiting", "PRIMARY KEY"],
    "firstOfActivity": ["nudge_outbox_activity"],
    "history": ["nudge_attempt_device", "nudge_attempt_token"],
    "highestAttemptedNudge": ["nudge_attempt_"],
    "closeClaimed": ["PRIMARY KEY"], "acceptRun": ["PRIMARY KEY"],
    "finishAttempt": ["PRIMARY KEY"], "closeNudge": ["PRIMARY KEY"], "reopenNudge": ["PRIMARY KEY"],
    "newestVersion": ["nudge_schema"], "lowWater": ["PRIMARY KEY"], "highestAttempt": ["nudge_attempt"],
    "dataVersion": [], "schemaVersion": [], "insertAttempt": [],
    "insertAttempts": [],
  ]

  @Test(
    "each uses the index that it was written for, also after an ANALYZE",
    arguments: ["empty", "few pending", "all pending"])
  func plans(content: String) throws {
    let world = try World()
    if content != "empty" {
      try world.registerMany(300)
      try world.nudges(content == "few pending" ? 4_000 : 300, device: "device-00001")
      try world.drain(["production": 500])
      try world.nudges(content == "few pending" ? 10 : 5_000, device: "device-00002")
      for offset in 1...50 {
        try world.nudge([
          "not_before_at": "\(world.now + Int64(offset))", "expires_at": "\(world.now + 9000)",
        ])
      }
      try world.sql("analyze")
      try world.restart()
    }
    let statements = all(world.store)
    #expect(Set(statements.map(\.name)) == Set(StatementsTests.expected.keys))
    for (name, statement) in statements {
      let plan = try plan(statement.sql, world)
      for index in StatementsTests.expected[name] ?? [] {
        #expect(plan.contains { $0.hasPrefix("SEARCH") && $0.contains(index) }, "\(name): \(plan)")
      }
      for step in plan {
        #expect(!step.hasPrefix("SCAN") || step.contains("CONSTANT ROW"), "\(name): \(plan)")
        for costly in ["TEMP B-TREE", "BLOOM", "AUTOMATIC"] {
          #expect(!step.contains(costly), "\(name): \(plan)")
        }
      }
    }
  }

  private func plan(_ sql: String, _ world: World) throws -> [String] {
    let explain = try world.backend.prepare("explain query plan " + sql)
    var steps: [String] = []
    while try explain.step() { steps.append(explain.string(3) ?? "") }
    return steps
  }

  @Test("no statement is left open after a turn: it would pin a snapshot")
  func nothingOpen() throws {
    let world = try World()
    try world.registerMany(10)
    for _ in 1...5 { try world.nudge() }
    _ = try world.hasWork(["production": 3])
    let staged = try world.turn(["production": 3], piece: 3)
    try world.settle(world.finish(staged[0], .wrongHost), world.finish(staged[1], .unsent))
    _ = try world.store.hasExpired(now: world.now)
    _ = try world.store.nextTime(after: world.now)
    _ = try world.store.hasForeignCommit()
    // A truncating checkpoint needs every reader to be gone.
    #expect(try world.backend.integer("pragma wal_checkpoint(truncate)") == 0)
  }

  @Test("a commit of somebody else is seen once, an own one never")
  func dataVersion() throws {
    let world = try World()
    try world.register("phone")
    _ = try world.store.hasForeignCommit()
    #expect(try !world.store.hasForeignCommit())
    try world.nudge()
    #expect(try world.store.hasForeignCommit())
    #expect(try !world.store.hasForeignCommit())
    try world.turn(["production": 1])
    #expect(try !world.store.hasForeignCommit())
  }

  @Test("every commit of the worker is synced before it returns")
  func synchronous() throws {
    let world = try World()
    let store = try Store(path: world.path, environments: ["production"], expireAfter: 1)
    #expect(try store.database.integer("pragma synchronous") == 3)
    #expect(try store.database.integer("pragma busy_timeout") == 0)
  }
}
