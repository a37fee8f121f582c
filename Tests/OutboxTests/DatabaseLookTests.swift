import Foundation
import SQLite
import Testing

@testable import Outbox

@Suite("DatabaseFile.look")
struct DatabaseLookTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }

  /// Rows that a look sees.
  private func rows(_ path: String) throws -> Int64? {
    try DatabaseFile.look(path).integer("select count(*) from message")
  }

  @Test("a rollback journal: no file is made, and commits of others are seen")
  func rollback() throws {
    let path = try folder.database()
    #expect(DatabaseFile.journal(of: path) == .rollback)
    let writer = try Database(path: path)
    try writer.execute("insert into message default values")
    #expect(try rows(path) == 1)
    #expect(try names() == ["app.db"])
  }

  @Test("a write-ahead log that was closed: no file is made")
  func closedLog() throws {
    // What a URI gives a meaning is part of a name here.
    let path = try folder.database("a?b#c%20d.db")
    _ = try Database(path: path).text("pragma journal_mode = wal")
    try Database(path: path).execute("insert into message default values")
    #expect(try names() == ["a?b#c%20d.db"])
    #expect(DatabaseFile.journal(of: path) == .wal)
    #expect(try rows(path) == 1)
    #expect(try names() == ["a?b#c%20d.db"])
  }

  @Test("a write-ahead log in use: its commits are seen, and the files stay as they are")
  func openLog() throws {
    let path = try folder.database()
    let writer = try Database(path: path)
    _ = try writer.text("pragma journal_mode = wal")
    try writer.execute("insert into message default values")
    let before = try (folder.content("app.db"), folder.content("app.db-wal"))
    #expect(try rows(path) == 1)
    #expect(try names() == ["app.db", "app.db-shm", "app.db-wal"])
    #expect(try folder.content("app.db") == before.0)
    #expect(try folder.content("app.db-wal") == before.1)
    try writer.execute("begin immediate; insert into message default values")
    #expect(try rows(path) == 1)
    try writer.execute("commit")
    #expect(try rows(path) == 2)
  }

  @Test("what a crash left is read without recovering it; a log without its index is left to a writer")
  func crashed() throws {
    let path = try folder.database()
    let writer = try Database(path: path)
    _ = try writer.text("pragma journal_mode = wal")
    try writer.execute("insert into message default values")
    let copy = folder.file("copy.db")
    for suffix in ["", "-wal", "-shm"] {
      try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
    }
    let before = try (folder.content("copy.db-wal"), folder.content("copy.db-shm"))
    #expect(try rows(copy) == 1)
    #expect(try (folder.content("copy.db-wal"), folder.content("copy.db-shm")) == before)

    try FileManager.default.removeItem(atPath: copy + "-shm")
    let fault = #expect(throws: DatabaseFault.self) { _ = try rows(copy) }
    #expect(fault?.kind == .inputOutput)
    #expect(fault?.message.contains("copy.db-wal") == true)
    #expect(!FileManager.default.fileExists(atPath: copy + "-shm"))
  }

  @Test("what is no database is refused, and a missing one is not made")
  func none() throws {
    #expect(throws: DatabaseFault.self) { try rows(folder.file("absent.db")) }
    try Data("noise ".utf8).write(to: URL(filePath: folder.file("short.db")))
    try Data(repeating: 7, count: 5000).write(to: URL(filePath: folder.file("noise.db")))
    for name in ["short.db", "noise.db"] {
      let fault = #expect(throws: DatabaseFault.self) { try rows(folder.file(name)) }
      #expect(fault?.kind == .malformed)
    }
    #expect(try names() == ["noise.db", "short.db"])
  }
}
