import SQLite
import Testing

@testable import Outbox

@Suite("Change")
struct ChangeTests {
  let world: World

  init() throws {
    world = try World()
    try world.register("phone", environment: "production")
  }

  /// A turn that claims; nil when it was refused.
  private func claim() throws -> Int? {
    do {
      return try world.turn(["production": 5]).count
    } catch let error as SQLiteError {
      #expect(error.code == 17)
      return nil
    }
  }

  private var words: String {
    if case .schema(let fault) = world.store.change { return fault.message }
    return ""
  }

  @Test(
    "a transaction that finds a part of the schema gone writes nothing and names it",
    arguments: ["index nudge_attempt_device", "trigger nudge_outbox_insert", "view nudge_audit"])
  func drift(part: String) throws {
    try world.nudge()
    try world.sql("drop \(part)")
    #expect(try claim() == nil)
    #expect(words.contains(part), "\(words)")
    #expect(try world.count("nudge_attempt") == 0)
    #expect(try world.count("nudge_outbox where state = 'pending'") == 1)
  }

  @Test("a newer version is a row, and is found all the same")
  func newer() throws {
    try world.nudge()
    try world.sql("insert into nudge_schema (version) values (7)")
    #expect(try claim() == nil)
    #expect(words.contains("schema version 7"), "\(words)")
  }

  @Test("a look outside of a transaction finds it too, and leaves no snapshot open")
  func look() throws {
    try world.sql("drop trigger nudge_device_delete")
    try world.store.judgeCommits()
    #expect(words.contains("nudge_device_delete"))
    #expect(try world.backend.integer("pragma wal_checkpoint(truncate)") == 0)
  }

  @Test("what others add, and their commits, are no change")
  func additions() throws {
    for statement in [
      "create table theirs (id integer primary key)", "alter table nudge_outbox add column theirs",
      "create index their_index on nudge_outbox (event)", "analyze", "vacuum",
      "insert into theirs default values",
    ] {
      try world.sql(statement)
      try world.nudge()
      #expect(try claim() == 1, "\(statement)")
      #expect(world.store.change == nil)
    }
  }

  @Test("a trigger that somebody adds to our tables fires, also under a running worker")
  func foreignTrigger() throws {
    try world.sql("create table seen (nudge_id)")
    try world.nudge()
    #expect(try claim() == 1)
    for (name, table) in [("theirs", "Nudge_Outbox"), ("nudge_theirs", "nudge_outbox")] {
      try world.sql(
        "create trigger \(name) after update of state on \(table) begin insert into seen values (new.id); end"
      )
      let id = try world.nudge()
      #expect(try claim() == 1)
      #expect(try world.count("seen where nudge_id = \(id)") == 1, "\(name)")
      try world.sql("drop trigger \(name)")
      try world.nudge()
      #expect(try claim() == 1)
      #expect(try world.count("seen where nudge_id > \(id)") == 0)
    }
  }

  @Test(
    "attempts or a low-water mark that are not ours: another state of the database was put into its place",
    arguments: [
      "insert into nudge_attempt (id, nudge_id, device_id, token_hash) values (900, 900, 'other', '00')",
      "update nudge_worker set low_water_attempt_id = 77",
    ])
  func restored(statement: String) throws {
    try world.nudge()
    #expect(try claim() == 1)
    try world.sql(statement)
    try world.nudge()
    #expect(try claim() == nil)
    guard case .restored = world.store.change else {
      Issue.record("\(String(describing: world.store.change))")
      return
    }
    #expect(try world.count("nudge_outbox where state = 'pending'") == 1)
  }

  @Test("faults that others may repair are told from those that stay")
  func passing() throws {
    let fault = DatabaseFile.explain(SQLiteError(code: 8, message: "words"), path: world.path)
    #expect(fault.mayPass)
    #expect(DatabaseFile.explain(SQLiteError(code: 5, message: ""), path: world.path).mayPass)
    #expect(!DatabaseFile.explain(SQLiteError(code: 11, message: ""), path: world.path).mayPass)
  }
}
