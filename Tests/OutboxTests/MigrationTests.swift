import Foundation
import Outbox
import SQLite
import Testing

@Suite("Migration")
struct MigrationTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Names of everything in the schema, SQLite's own tables left out.
  private func names(_ path: String) throws -> [String] {
    let database = try Database(path: path)
    let statement = try database.prepare(
      "select type || ' ' || name from sqlite_master where name not glob 'sqlite_*' order by 1")
    var names: [String] = []
    while try statement.step() { names.append(statement.string(0) ?? "") }
    return names
  }

  private func fault(_ body: () throws -> Void) -> DatabaseFault? {
    do {
      try body()
      return nil
    } catch {
      return error as? DatabaseFault
    }
  }

  @Test("creates the tables once; a second run applies nothing and changes no byte")
  func twice() throws {
    let path = try folder.database()
    #expect(try Migration.apply(databaseAt: path) == [1])
    #expect(try names(path).contains("table nudge_outbox"))
    let before = try folder.content("app.db")
    #expect(try Migration.apply(databaseAt: path) == [])
    #expect(try folder.content("app.db") == before)
  }

  @Test("an empty file becomes a database")
  func emptyFile() throws {
    try Data().write(to: URL(filePath: folder.file("empty.db")))
    #expect(try Migration.apply(databaseAt: folder.file("empty.db")) == [1])
  }

  @Test("leaves user_version, journal mode and the backend's tables alone", arguments: ["wal", "delete"])
  func guest(mode: String) throws {
    let path = try folder.database(
      sql: """
        pragma journal_mode = \(mode); pragma user_version = 7; pragma application_id = 9;
        create table message (id integer primary key, text); insert into message (text) values ('kept')
        """)
    _ = try Migration.apply(databaseAt: path)
    #expect(try Migration.remove(databaseAt: path))
    let database = try Database(path: path)
    #expect(try database.text("pragma journal_mode") == mode)
    #expect(try database.integer("pragma user_version") == 7)
    #expect(try database.integer("pragma application_id") == 9)
    #expect(try database.text("select text from message") == "kept")
  }

  @Test("remove takes everything out again, also with rows in it, and may run again")
  func remove() throws {
    let path = try folder.database()
    let before = try names(path)
    _ = try Migration.apply(databaseAt: path)
    _ = try Backend.send([.title: .text("a")], databaseAt: path)
    #expect(try Migration.remove(databaseAt: path))
    #expect(try names(path) == before)
    #expect(try Migration.remove(databaseAt: path) == false)
    #expect(try Migration.apply(databaseAt: path) == [1])
  }

  @Test("programs that migrate at the same time do not disturb each other")
  func concurrent() async throws {
    let path = try folder.database()
    let applied = try await withThrowingTaskGroup(of: [Int64].self) { group in
      for _ in 0..<8 { group.addTask { try Migration.apply(databaseAt: path, busyTimeout: .seconds(60)) } }
      return try await group.reduce(into: []) { $0 += $1 }
    }
    #expect(applied == [1], "exactly one of them applies it")
  }

  @Test("waits for a lock no longer than it was told")
  func locked() throws {
    let path = try folder.database()
    let holder = try Database(path: path)
    try holder.execute("begin immediate")
    let fault = fault { _ = try Migration.apply(databaseAt: path, busyTimeout: .milliseconds(20)) }
    #expect(fault?.kind == .busy)
    #expect(fault?.message.contains(path) == true)
    try holder.execute("rollback")
    #expect(try Migration.apply(databaseAt: path) == [1])
  }

  @Test("a schema newer than the program is left alone, by migrate, remove and check")
  func newer() throws {
    let path = try folder.database()
    _ = try Migration.apply(databaseAt: path)
    try Database(path: path).execute("insert into nudge_schema (version, applied_at) values (99, 0)")
    let before = try folder.content("app.db")
    let steps: [() throws -> Void] = [
      { _ = try Migration.apply(databaseAt: path) },
      { _ = try Migration.remove(databaseAt: path) },
      { try Migration.check(try Database(path: path)) },
    ]
    for step in steps {
      let fault = fault(step)
      #expect(fault?.kind == .malformed)
      #expect(
        fault?.message == "schema version 99 is newer than this program knows (1): upgrade nudged")
    }
    #expect(try folder.content("app.db") == before)
  }

  @Test("check asks for `nudged migrate` when there are no tables, naming the file")
  func missing() throws {
    let path = try folder.database()
    let fault = fault { try Migration.check(try Database(path: path)) }
    #expect(fault?.kind == .malformed)
    #expect(
      fault?.message == "no nudge tables in \(path): run `nudged migrate --database \(path)`")
  }

  @Test(
    "what is missing from the schema is named",
    arguments: [
      ("alter table nudge_outbox rename column body to text", "column nudge_outbox.body"),
      (
        "drop index nudge_attempt_device",
        "unique index nudge_attempt_device (nudge_id, device_id, may_have_buzzed)"
      ),
      (
        """
        drop index nudge_attempt_device;
        create index nudge_attempt_device on nudge_attempt (nudge_id, device_id, may_have_buzzed)
        """,
        "unique index nudge_attempt_device (nudge_id, device_id, may_have_buzzed)"
      ),
      ("drop trigger nudge_outbox_insert", "trigger nudge_outbox_insert"),
      ("drop view nudge_registration", "view nudge_registration"),
      ("drop view nudge_dead_tokens; drop table nudge_activity", "table nudge_activity"),
    ])
  func drifted(sql: String, part: String) throws {
    let path = try folder.database()
    _ = try Migration.apply(databaseAt: path)
    try Database(path: path).execute(sql)
    let before = try folder.content("app.db")
    for step in [
      { try Migration.check(try Database(path: path)) },
      { _ = try Migration.apply(databaseAt: path) },
    ] {
      let fault = fault(step)
      #expect(fault?.kind == .malformed)
      #expect(fault?.message.contains("\(part) is missing") == true, "\(fault?.message ?? "no fault")")
    }
    #expect(try folder.content("app.db") == before)
  }

  @Test("a column, index, trigger or table that someone added is fine")
  func extended() throws {
    let path = try folder.database()
    _ = try Migration.apply(databaseAt: path)
    try Database(path: path).execute(
      """
      alter table nudge_outbox add column note text;
      create index mine on nudge_outbox (record_id);
      create table nudge_extra (a);
      """)
    try Migration.check(try Database(path: path))
    #expect(try Migration.apply(databaseAt: path) == [])
  }

  @Test("another program's table of our name is refused and nothing is left behind")
  func foreignTable() throws {
    let path = try folder.database(sql: "create table nudge_outbox (id integer primary key, text)")
    let before = try names(path)
    let fault = fault { _ = try Migration.apply(databaseAt: path) }
    #expect(fault?.kind == .malformed)
    #expect(try names(path) == before)
  }

  @Test("every file of migrations/ is known, and is one transaction with the lines that are taken off")
  func files() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "migrations")
    let files = try FileManager.default.contentsOfDirectory(atPath: root.path).sorted()
    let steps = files.filter { $0 != "remove.sql" }
    #expect(steps.compactMap { Int64($0.prefix(4)) } == Array(1...Migration.newestVersion))
    for file in files {
      let lines = try String(contentsOf: root.appending(path: file), encoding: .utf8).split(separator: "\n")
      #expect(lines.filter { $0 == "begin immediate;" }.count == 1, "\(file)")
      #expect(lines.filter { $0 == "commit;" }.count == 1, "\(file)")
      #expect(lines.last == "commit;", "\(file)")
    }
  }
}
