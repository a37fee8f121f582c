import Foundation
import SQLite

/// A folder with a database for one test, gone with it.
final class Folder {
  let path: String
  var file: String { path + "/test.db" }

  init(journal: String = "wal") throws {
    path = FileManager.default.temporaryDirectory.appending(path: "sqlite-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Data().write(to: URL(filePath: file))
    let database = try Database(path: file)
    _ = try database.text("pragma journal_mode = \(journal)")
    try database.execute("create table t (id integer primary key, a, b)")
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// The error that a body throws.
func error(of body: () throws -> Void) -> SQLiteError? {
  do {
    try body()
    return nil
  } catch {
    return error as? SQLiteError
  }
}
