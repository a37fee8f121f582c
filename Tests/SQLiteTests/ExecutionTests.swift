import SQLite
import Testing

@Suite("Execution")
struct ExecutionTests {
  let folder: Folder
  let database: StatementTests.DatabaseBox

  init() throws {
    folder = try Folder()
    database = try StatementTests.DatabaseBox(folder.file)
  }

  private func prepare(_ sql: String) throws -> Statement { try database.database.prepare(sql) }

  @Test("borrowed text arrives byte for byte, empty text is text, and an integer is an integer")
  func text() throws {
    let select = try prepare("select ?1, typeof(?1), ?2, typeof(?3), ?3")
    for text in [[], [0], Array("a\0b".utf8), [0xff, 0xfe], Array(repeating: 0x61, count: 100_000)]
      as [[UInt8]]
    {
      var run = select.execution()
      run.bind(1, text.span)
      run.bind(2, "part of the program")
      run.bind(3, -7)
      #expect(try run.step())
      let found = run.statement.bytes(0).withUnsafeBufferPointer { Array($0) }
      #expect(found == text)
      #expect(run.statement.string(1) == "text")
      #expect(run.statement.string(2) == "part of the program")
      #expect(run.statement.string(3) == "integer")
      #expect(run.statement.integer(4) == -7)
    }
  }

  @Test("its end resets the statement, before the last row too, and forgets what was borrowed")
  func end() throws {
    try database.database.execute("create table lent (x); insert into lent values (1), (2)")
    let select = try prepare("select x, ?1 from lent")
    let text = Array("borrowed".utf8)
    do {
      var run = select.execution()
      run.bind(1, text.span)
      #expect(try run.step())
      #expect(run.statement.string(1) == "borrowed")
    }
    #expect(try select.step())
    #expect(select.integer(0) == 1)
    #expect(select.isNull(1))
    select.reset()
    // With a statement still open, this would be "database table is locked".
    try database.database.execute("drop table lent")
  }

  @Test("after the last row there is none, and a fault is thrown with SQLite's words")
  func fault() throws {
    try database.database.execute("create table lent (x unique)")
    let insert = try prepare("insert into lent values (?1)")
    let text = Array("once".utf8)
    for isFirst in [true, false] {
      var run = insert.execution()
      run.bind(1, text.span)
      do throws(SQLiteError) {
        #expect(try run.step() == false)
        #expect(isFirst)
      } catch {
        #expect(!isFirst)
        #expect(error.message == "UNIQUE constraint failed: lent.x")
      }
    }
  }
}
