import Glibc
import SQLite

/// Opening the backend's file, and saying in words why that or any later step failed.
package enum DatabaseFile {
  /// How long a command waits for a lock that another connection holds.
  package static let patience = Duration.seconds(5)

  /// For a program of which only one thread uses SQLite; has to come before everything else.
  package static func useOneThread() { Database.useOneThread() }

  /// Opens an existing database and reads its first page; never creates a file.
  ///
  /// SQLite opens lazily: without the read, noise would be taken for a database until its first use.
  package static func open(
    _ path: String, access: Database.Access = .readWrite, busyTimeout: Duration = patience
  ) throws(DatabaseFault) -> Database {
    try requireFile(path)
    do throws(SQLiteError) {
      let database = try Database(path: path, access: access, busyTimeout: busyTimeout)
      do throws(SQLiteError) {
        _ = try database.integer("select count(*) from sqlite_master")
      } catch {
        database.leaveFilesOnClose()
        throw error
      }
      return database
    } catch {
      throw explain(error, path: path)
    }
  }

  /// What an error of SQLite means for the file at `path`.
  package static func explain(_ error: SQLiteError, path: String) -> DatabaseFault {
    switch error.kind {
    case .busy:
      DatabaseFault(
        .busy, "\(path) stays locked by another connection: try again when it is done", mayPass: true)
    case .access:
      DatabaseFault(.inputOutput, "\(path): \(error.message): \(obstacle(to: path))", mayPass: true)
    case .storage:
      DatabaseFault(.inputOutput, "\(path): \(error.message) (\(file(path)))", mayPass: true)
    case .malformed:
      DatabaseFault(.malformed, "\(path): \(error.message): check the path, or restore a copy")
    case .other where isConstraint(error):
      // The triggers' own words (RAISE), meant for whoever wrote the row.
      DatabaseFault(.refused, error.message)
    case .other:
      DatabaseFault(.malformed, "\(path): \(error.message)")
    }
  }

  private static func isConstraint(_ error: SQLiteError) -> Bool {
    // SQLITE_CONSTRAINT is 19 (https://www.sqlite.org/rescode.html#constraint).
    error.primaryCode == 19
  }

  /// Throws unless `path` leads to something that could be a database file.
  private static func requireFile(_ path: String) throws(DatabaseFault) {
    var status = stat()
    guard stat(path, &status) == 0 else {
      let reason = errno
      switch reason {
      case ENOENT, ENOTDIR:
        throw DatabaseFault(.missing, "there is no database \(path): nudged never creates one")
      default:
        throw DatabaseFault(
          .inputOutput, "\(path): \(words(reason)) (\(file(folder(of: path))))", mayPass: reason == EACCES)
      }
    }
    if status.st_mode & S_IFMT == S_IFDIR {
      throw DatabaseFault(.inputOutput, "\(path) is a directory, not a database (\(ownership(status)))")
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw DatabaseFault(.inputOutput, "\(path) is not a regular file (\(ownership(status)))")
    }
  }

  /// The first of the database, its companions and its folder that this process may not write.
  ///
  /// WAL readers and writers need all of them (https://www.sqlite.org/wal.html#read_only_databases).
  package static func obstacle(to path: String) -> String { obstacles(to: path).first ?? file(path) }

  /// All of them, each with owner, mode and the user that may not; also the lock file of a worker.
  package static func obstacles(to path: String) -> [String] {
    let companions = ["-wal", "-shm", "-journal", "-nudged.lock"].map { path + $0 }
    return ([path] + companions + [folder(of: path)]).compactMap { candidate in
      guard access(candidate, F_OK) == 0, faccessat(AT_FDCWD, candidate, R_OK | W_OK, AT_EACCESS) != 0 else {
        return nil
      }
      let reason = errno
      return "\(file(candidate)): \(words(reason)) for user \(user(geteuid()))"
    }
  }

  /// The folder that a path stands in.
  package static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// A path with owner and mode, e.g. `/srv/app.db, owner backend, mode 0644`.
  package static func file(_ path: String) -> String {
    var status = stat()
    guard stat(path, &status) == 0 else { return "\(path): \(words(errno))" }
    return "\(path), \(ownership(status))"
  }

  private static func ownership(_ status: stat) -> String {
    let digits = String(status.st_mode & 0o7777, radix: 8)
    let mode = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    return "owner \(user(status.st_uid)), mode \(mode)"
  }

  /// The name of a user, or the number of one without a name.
  package static func user(_ id: uid_t) -> String {
    guard let entry = getpwuid(id), let name = entry.pointee.pw_name else { return "\(id)" }
    return String(cString: name)
  }

  private static func words(_ code: Int32) -> String { String(cString: strerror(code)) }
}
