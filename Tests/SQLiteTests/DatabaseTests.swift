import Foundation
import SQLite
import Testing

@Suite("Database")
struct DatabaseTests {
  let folder: Folder
  init() throws { folder = try Folder() }

  @Test("a missing file is an error and is not created")
  func missing() throws {
    let path = folder.path + "/none.db"
    #expect(error { _ = try Database(path: path) }?.kind == .access)
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("a read-only connection reads and does not write")
  func readOnly() throws {
    let database = try Database(path: folder.file, access: .readOnly)
    #expect(try database.integer("select count(*) from t") == 0)
    #expect(error { try database.execute("insert into t (a) values (1)") }?.kind == .access)
  }

  @Test("a file that is no database is malformed")
  func noise() throws {
    let path = folder.path + "/noise.db"
    try Data(repeating: 0x41, count: 8192).write(to: URL(filePath: path))
    let database = try Database(path: path)
    #expect(error { _ = try database.integer("select count(*) from sqlite_master") }?.kind == .malformed)
  }

  @Test("the first value of the first row, nil for NULL and for no row")
  func values() throws {
    let database = try Database(path: folder.file)
    #expect(try database.integer("select 7 union all select 8") == 7)
    #expect(try database.integer("select null") == nil)
    #expect(try database.integer("select 1 where 0") == nil)
    #expect(try database.text("select 'x'") == "x")
    #expect(try database.text("select ''") == "")
    #expect(try database.text("select null") == nil)
    #expect(try database.text("select 1 where 0") == nil)
  }

  @Test("changes are those of the statement, not of its triggers, and the row's id is the last inserted one")
  func changes() throws {
    let database = try Database(path: folder.file)
    try database.execute(
      """
      create table log (x);
      create trigger t_insert after insert on t begin
        insert into log values (1); insert into log values (2);
      end;
      insert into t (a) values (1), (2), (3);
      """)
    let (inserted, last) = (database.changes, database.lastInsertedID)
    #expect(inserted == 3 && last == 3)
    try database.execute("update t set a = 0 where id > 1")
    let updated = database.changes
    #expect(updated == 2)
  }

  @Test("an error says what SQLite said, and nothing of what was bound")
  func words() throws {
    let database = try Database(path: folder.file)
    let wrong = error { _ = try database.prepare("select secret from t") }
    #expect(wrong?.message == "no such column: secret")
    #expect(wrong?.kind == .other)
    try database.execute("create unique index u on t (a)")
    let insert = try database.prepare("insert into t (a) values (?1)")
    insert.bind(1, "token")
    try insert.run()
    insert.bind(1, "token")
    let twice = error { try insert.run() }
    // SQLITE_CONSTRAINT_UNIQUE, extended.
    #expect(twice?.code == 2067)
    #expect(twice?.primaryCode == 19)
    #expect(twice?.description.contains("token") == false)
  }

  @Test("codes fall into the kinds that decide what to do")
  func kinds() {
    let cases: [(Int32, SQLiteError.Kind)] = [
      (5, .busy), (517, .busy), (261, .busy), (6, .busy), (13, .storage), (10, .storage),
      (778, .storage),
      (7, .storage), (8, .access), (1032, .access), (14, .access), (3, .access), (23, .access),
      (15, .busy), (11, .malformed),
      (267, .malformed), (26, .malformed), (1, .other), (19, .other), (17, .other), (21, .other),
      (10083, .other),
    ]
    for (code, kind) in cases {
      #expect(SQLiteError(code: code, message: "").kind == kind, "\(code)")
    }
  }

  @Test("a busy timeout waits, without one the lock is an error at once")
  func busyTimeout() throws {
    let holder = try Database(path: folder.file)
    try holder.execute("begin immediate")
    let start = ContinuousClock.now
    #expect(error { try Database(path: folder.file).execute("begin immediate") }?.kind == .busy)
    let patient = try Database(path: folder.file, busyTimeout: .milliseconds(80))
    let between = ContinuousClock.now
    #expect(error { try patient.execute("begin immediate") }?.kind == .busy)
    #expect(ContinuousClock.now - between >= .milliseconds(70))
    #expect(between - start < .seconds(5))
    #expect(try patient.integer("pragma busy_timeout") == 80)
  }
}
