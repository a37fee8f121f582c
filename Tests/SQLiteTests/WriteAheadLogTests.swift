import Foundation
import Testing

@testable import SQLite

@Suite("WriteAheadLog")
struct WriteAheadLogTests {
  let folder: Folder

  init() throws { folder = try Folder() }

  private func size(_ suffix: String = "") throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.file + suffix)
    return try #require(attributes[.size] as? Int)
  }

  /// Commits so many pages, of 4,096 bytes as by default.
  private func commit(_ pages: Int, to database: borrowing Database) throws {
    try database.execute("insert into t (a) values (zeroblob(\(4096 * pages)))")
  }

  @Test(
    "a COMMIT leaves a long log as it is, and what it holds moves into the database when that is asked for")
  func long() throws {
    let database = try Database(path: folder.file)
    let log = WriteAheadLog(of: database)
    let before = try size()
    try commit(1500, to: database)
    #expect(try size() == before)
    log.checkpointIfLong()
    #expect(try size() > 1500 * 4096)
    // The next commit begins the log anew.
    let length = try size("-wal")
    try commit(100, to: database)
    #expect(try size("-wal") == length)
  }

  @Test(
    "a short log stays; a reader of the old state is no reason to fail or to wait, and once it is gone all moves"
  )
  func others() throws {
    let database = try Database(path: folder.file)
    let log = WriteAheadLog(of: database)
    try commit(10, to: database)
    let before = try size()
    log.checkpointIfLong()
    #expect(try size() == before)

    let reader = try Database(path: folder.file)
    try reader.execute("begin")
    #expect(try reader.integer("select count(*) from t") == 1)
    try commit(1500, to: database)
    log.checkpointIfLong()
    #expect(try size() < 1500 * 4096)
    try reader.execute("commit")
    try commit(1, to: database)
    log.checkpointIfLong()
    #expect(try size() > 1500 * 4096)
  }
}
