import Foundation
import SQLite

/// A folder for one test, gone with it.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "outbox-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  /// A backend's database with a table of its own.
  func database(_ name: String = "app.db", sql: String = "create table message (id integer primary key)")
    throws -> String
  {
    let file = file(name)
    try Data().write(to: URL(filePath: file))
    try Database(path: file).execute(sql)
    return file
  }

  func content(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: file(name))) }
}
