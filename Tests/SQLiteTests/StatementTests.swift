import SQLite
import Testing

@Suite("Statement")
struct StatementTests {
  let folder: Folder
  let database: DatabaseBox

  /// A connection that a test's value can hold.
  final class DatabaseBox {
    let database: Database
    init(_ path: String) throws { database = try Database(path: path) }
  }

  init() throws {
    folder = try Folder()
    database = try DatabaseBox(folder.file)
  }

  private func prepare(_ sql: String) throws -> Statement { try database.database.prepare(sql) }

  private func bytes(_ statement: Statement, _ column: Int32) -> [UInt8] {
    statement.bytes(column).withUnsafeBufferPointer { Array($0) }
  }

  @Test("text comes back byte for byte, NUL and invalid UTF-8 included")
  func text() throws {
    let texts: [[UInt8]] = [
      [], [0], Array("a\0b".utf8), [0xff, 0xfe], [0xc3], Array("👩‍👩‍👧".utf8),
      Array(repeating: 0x61, count: 100_000),
    ]
    let select = try prepare("select ?1, typeof(?1), length(cast(?1 as blob)), quote(?2)")
    for text in texts {
      for way in 0..<2 {
        if way == 0 { select.bind(1, text) } else { select.bind(1, text.span) }
        #expect(try select.step())
        #expect(bytes(select, 0) == text)
        #expect(select.storageClass(0) == .text)
        #expect(select.string(1) == "text")
        #expect(select.integer(2) == Int64(text.count))
        #expect(select.string(3) == "NULL")
        select.reset()
      }
    }
  }

  @Test("empty text is text, nil is NULL")
  func emptyAndNull() throws {
    let select = try prepare("select ?1, typeof(?1)")
    for (value, type) in [("", "text"), (nil, "null"), ("x", "text")] as [(String?, String)] {
      select.bind(1, value)
      #expect(try select.step())
      #expect(select.string(1) == type)
      #expect(select.isNull(0) == (value == nil))
      #expect(select.string(0) == value)
      #expect(bytes(select, 0) == Array((value ?? "").utf8))
      select.reset()
    }
    select.bind(1, [UInt8]())
    #expect(try select.step())
    #expect(select.string(1) == "text")
    select.reset()
    let empty: [UInt8] = []
    select.bind(1, empty.span)
    #expect(try select.step())
    #expect(select.string(1) == "text")
    select.reset()
    select.bind(1, nil as Int64?)
    #expect(try select.step())
    #expect(select.string(1) == "null")
    #expect(select.optionalInteger(0) == nil)
  }

  @Test("integers at their ends", arguments: [Int64.min, -1, 0, 1, .max])
  func integers(value: Int64) throws {
    let select = try prepare("select ?1, typeof(?1)")
    select.bind(1, value)
    #expect(try select.step())
    #expect(select.integer(0) == value)
    #expect(select.optionalInteger(0) == value)
    #expect(select.string(1) == "integer")
    #expect(select.string(0) == String(value))
  }

  @Test("columns say what they hold, and blobs are bytes like text")
  func columns() throws {
    let select = try prepare("select null, 1, 1.5, 'x', x'00ff41', x'', zeroblob(2)")
    #expect(try select.step())
    let classes: [Statement.StorageClass] = [.null, .integer, .real, .text, .blob, .blob, .blob]
    for (column, expected) in classes.enumerated() {
      #expect(select.storageClass(Int32(column)) == expected)
    }
    #expect(bytes(select, 4) == [0, 0xff, 0x41])
    #expect(bytes(select, 5) == [])
    #expect(bytes(select, 6) == [0, 0])
    #expect(bytes(select, 0) == [])
    #expect(bytes(select, 2) == Array("1.5".utf8))
    // What was read as bytes still says what it is.
    #expect(select.storageClass(2) == .real)
    #expect(select.integer(3) == 0)
  }

  @Test("invalid UTF-8 in a string is repaired, not dropped")
  func repaired() throws {
    let select = try prepare("select cast(x'41ff42' as text)")
    #expect(try select.step())
    #expect(select.string(0) == "A\u{fffd}B")
  }

  @Test("after its last row a statement is reset by itself and runs again")
  func again() throws {
    let insert = try prepare("insert into t (a) values (?1)")
    for value in 1...3 {
      insert.bind(1, Int64(value))
      try insert.run()
    }
    let select = try prepare("select a from t order by id")
    for _ in 1...2 {
      var found: [Int64] = []
      while try select.step() { found.append(select.integer(0)) }
      #expect(found == [1, 2, 3])
    }
  }

  @Test("after an error a statement is reset: it can be bound anew and it holds no lock")
  func resetOnError() throws {
    try database.database.execute("create unique index u on t (a); insert into t (a) values ('x')")
    let insert = try prepare("insert into t (a) values (?1)")
    insert.bind(1, "x")
    #expect(error { try insert.run() }?.primaryCode == 19)
    let other = try Database(path: folder.file)
    try other.execute("insert into t (a) values ('other')")
    insert.bind(1, "y")
    try insert.run()
    #expect(try other.integer("select count(*) from t where a = 'y'") == 1)
  }

  @Test("run goes to the end of a statement that returns rows")
  func run() throws {
    try prepare("insert into t (a) values (1), (2) returning id").run()
    #expect(try database.database.integer("select count(*) from t") == 2)
  }

  @Test("a statement outlives the connection that made it")
  func zombie() throws {
    var statement: Statement?
    do {
      let database = try Database(path: folder.file)
      statement = try database.prepare("select 5")
    }
    #expect(try statement?.step() == true)
    #expect(statement?.integer(0) == 5)
    statement = nil
  }

  @Test("its SQL is what it was compiled from")
  func sql() throws {
    #expect(try prepare("select ?1 -- here").sql == "select ?1 -- here")
  }
}
