import Glibc
import SQLite

extension DatabaseFile {
  /// How SQLite keeps a file's changes, as its header says (https://www.sqlite.org/fileformat2.html, 1.3.3).
  package enum Journal: Equatable, Sendable {
    case rollback, wal
  }

  /// Reads it from the header; nil for a file that is too short or cannot be read.
  ///
  /// Only for a process that has no connection to the file: to close it drops SQLite's locks.
  package static func journal(of path: String) -> Journal? {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var version: UInt8 = 0
    guard pread(descriptor, &version, 1, 18) == 1 else { return nil }
    return version == 2 ? .wal : .rollback
  }

  /// Opens an existing database for reading and leaves no trace: no file is made and none is changed.
  ///
  /// In WAL mode a reader makes `-wal` and `-shm` where they are not there. Without a log all there is stands in the
  /// database, so it is read without them; a log without its index is for the next writer to recover.
  package static func look(_ path: String) throws(DatabaseFault) -> Database {
    guard journal(of: path) == .wal else { return try open(path, access: .untouched) }
    if access(path + "-shm", F_OK) == 0, access(path + "-wal", F_OK) == 0 {
      return try open(path, access: .untouched)
    }
    var log = stat()
    guard stat(path + "-wal", &log) != 0 || log.st_size == 0 else {
      throw DatabaseFault(
        .inputOutput,
        "\(path)-wal holds commits, and its index \(path)-shm is gone: the next program that writes recovers them"
      )
    }
    return try open(path, access: .immutable)
  }
}
