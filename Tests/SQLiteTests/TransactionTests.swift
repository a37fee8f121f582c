import SQLite
import Testing

@Suite("Transaction")
struct TransactionTests {
  private func insert(_ database: borrowing Database) throws(SQLiteError) {
    try database.execute("insert into t (a) values (1)")
  }

  private func count(_ folder: Folder) throws -> Int64? {
    try Database(path: folder.file).integer("select count(*) from t")
  }

  @Test("what it returns comes back, and what it wrote is there")
  func commits() throws {
    let folder = try Folder()
    let database = try Database(path: folder.file)
    let result = try database.transaction { _ throws(SQLiteError) in
      try insert(database)
      return 42
    }
    #expect(result == 42)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
    #expect(try count(folder) == 1)
  }

  @Test("an error rolls all of it back and is thrown on; the next transaction works")
  func rollsBack() throws {
    let folder = try Folder()
    let database = try Database(path: folder.file)
    let mine = SQLiteError(code: 1, message: "mine")
    let thrown = error {
      try database.transaction { _ throws(SQLiteError) in
        try insert(database)
        throw mine
      }
    }
    #expect(thrown == mine)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
    #expect(try count(folder) == 0)
    try database.transaction { _ throws(SQLiteError) in try insert(database) }
    #expect(try count(folder) == 1)
  }

  @Test("an error after which SQLite has rolled back by itself is thrown on as it is")
  func rolledBackAlready() throws {
    let folder = try Folder()
    let database = try Database(path: folder.file)
    try database.execute("create unique index u on t (a); insert into t (a) values (1)")
    let thrown = error {
      try database.transaction { _ throws(SQLiteError) in
        try database.execute("insert or rollback into t (a) values (1)")
      }
    }
    #expect(thrown?.primaryCode == 19)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
  }

  @Test(
    "while another connection holds the lock it is busy before the body runs", arguments: ["wal", "delete"])
  func busy(journal: String) throws {
    let folder = try Folder(journal: journal)
    let holder = try Database(path: folder.file)
    try holder.execute("begin immediate")
    let database = try Database(path: folder.file)
    var hasRun = false
    let thrown = error {
      try database.transaction { _ throws(SQLiteError) in hasRun = true }
    }
    #expect(thrown?.kind == .busy)
    #expect(!hasRun)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
    try holder.execute("rollback")
    try database.transaction { _ throws(SQLiteError) in try insert(database) }
    #expect(try count(folder) == 1)
  }

  @Test("the lock is taken at once, before anything is written")
  func immediate() throws {
    let folder = try Folder()
    let database = try Database(path: folder.file)
    let other = try Database(path: folder.file)
    var otherFailed = false
    try database.transaction { _ throws(SQLiteError) in
      otherFailed = error { try other.execute("begin immediate") }?.kind == .busy
    }
    #expect(otherFailed)
  }

  @Test("with a rollback journal, a reader makes the commit busy, and then nothing has happened")
  func commitBusy() throws {
    let folder = try Folder(journal: "delete")
    let reader = try Database(path: folder.file)
    try reader.execute("insert into t (a) values (0)")
    let rows = try reader.prepare("select a from t union all select 9")
    #expect(try rows.step())
    let database = try Database(path: folder.file)
    var hasRun = false
    let thrown = error {
      try database.transaction { _ throws(SQLiteError) in
        try insert(database)
        hasRun = true
      }
    }
    #expect(hasRun)
    #expect(thrown?.kind == .busy)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
    rows.reset()
    #expect(try count(folder) == 1)
    try database.transaction { _ throws(SQLiteError) in try insert(database) }
    #expect(try count(folder) == 2)
  }

  @Test("a full disk ends it and leaves the file whole")
  func full() throws {
    let folder = try Folder()
    let database = try Database(path: folder.file)
    _ = try database.integer("pragma max_page_count = 3")
    let thrown = error {
      try database.transaction { _ throws(SQLiteError) in
        try database.execute("insert into t (a) values (zeroblob(200000))")
      }
    }
    #expect(thrown?.kind == .storage)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
    #expect(try database.text("pragma integrity_check") == "ok")
  }

  @Test("one that reads first holds up nobody until it writes, and fails if what it has read has changed")
  func readingFirst() throws {
    let folder = try Folder()
    let database = try Database(path: folder.file)
    let other = try Database(path: folder.file)
    try database.execute("pragma journal_mode = wal")
    let seen = try database.transaction(readingFirst: true) { _ throws(SQLiteError) in
      let seen = try database.integer("select count(*) from t")
      try insert(database)
      return seen
    }
    #expect(seen == 0)
    let thrown = error {
      try database.transaction(readingFirst: true) { _ throws(SQLiteError) in
        _ = try database.integer("select count(*) from t")
        try insert(other)
        try insert(database)
      }
    }
    #expect(thrown?.kind == .busy)
    let isOpen = database.isInTransaction
    #expect(!isOpen)
    #expect(try count(folder) == 2)
  }
}
