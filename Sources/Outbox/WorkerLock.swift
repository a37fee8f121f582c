import CLinux
import Glibc

/// The right to work on one database: an advisory lock on a file beside it, held until it goes out of scope.
///
/// The lock file stands at the database's real path, whatever link it was opened through, with `-nudged.lock`
/// behind its name. It is never the database itself: closing any descriptor of that file would drop the locks
/// of SQLite (https://www.sqlite.org/howtocorrupt.html, 2.2). The kernel frees the lock when the process ends.
package struct WorkerLock: ~Copyable {
  private let descriptor: Int32
  /// The database's real path.
  package let databasePath: String

  /// Why the lock could not be had.
  package enum Fault: Error {
    /// Another worker has it; its pid, 0 when it went away meanwhile.
    case held(by: Int32)
    /// The database's path leads nowhere.
    case noDatabase
    /// The lock file cannot be written: its path, and the error's words.
    case file(path: String, words: String)
  }

  package init(databasePath: String) throws(Fault) {
    guard let resolved = realpath(databasePath, nil) else { throw .noDatabase }
    defer { free(resolved) }
    let realPath = String(cString: resolved)
    let path = realPath + "-nudged.lock"
    let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw .file(path: path, words: String(cString: strerror(errno))) }
    // As SQLite does with the -wal: who may write the database may be its worker, whoever was it before. But a
    // database that is closed to its owner for a while does not close the lock.
    var database = stat()
    if stat(realPath, &database) == 0 { fchmod(descriptor, database.st_mode & 0o666 | 0o600) }
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    range.l_whence = Int16(SEEK_SET)
    if nudged_fcntl_lock(descriptor, F_SETLK, &range) != 0 {
      let code = errno
      var holder = flock()
      holder.l_type = Int16(F_WRLCK)
      holder.l_whence = Int16(SEEK_SET)
      _ = nudged_fcntl_lock(descriptor, F_GETLK, &holder)
      close(descriptor)
      guard code == EACCES || code == EAGAIN else {
        throw .file(path: path, words: String(cString: strerror(code)))
      }
      throw .held(by: holder.l_type == Int16(F_UNLCK) ? 0 : holder.l_pid)
    }
    self.descriptor = descriptor
    self.databasePath = realPath
  }

  deinit { close(descriptor) }
}
