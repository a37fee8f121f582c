import CLinux
import Glibc

/// Which file a path leads to.
package struct FileIdentity: Equatable, Sendable {
  private let device: UInt
  private let inode: UInt

  /// Nil when there is no such file.
  package init?(path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = UInt(status.st_dev)
    inode = UInt(status.st_ino)
  }
}

/// The `-wal` and `-shm` of a database that was replaced, lying beside its successor.
///
/// SQLite would take them for the successor's own and mix the old content into it ("mispairing database files
/// and hot journals", https://www.sqlite.org/howtocorrupt.html, 1.4), so no connection may be opened before they
/// are gone.
package struct StaleLog: Sendable {
  private let database: String
  private var wal: FileIdentity?
  private var shm: FileIdentity?

  /// The companions that `database` has now.
  package init(database: String) {
    self.database = database
    wal = FileIdentity(path: database + "-wal")
    shm = FileIdentity(path: database + "-shm")
  }

  /// The path of the log, for messages.
  package var path: String { database + "-wal" }

  /// Without what is gone, or is another file by now.
  package var stillThere: StaleLog {
    var left = self
    if wal == nil || FileIdentity(path: database + "-wal") != wal { left.wal = nil }
    if shm == nil || FileIdentity(path: database + "-shm") != shm { left.shm = nil }
    return left
  }

  /// Whether nothing of it is left.
  package var isGone: Bool {
    let left = stillThere
    return left.wal == nil && left.shm == nil
  }

  /// Moves the log aside unless another process has it open; returns where it is now, nil for nowhere.
  ///
  /// Throws the words for the process that is in the way. Every connection holds a shared lock on byte 128 of
  /// the `-shm` (the "dead man switch" of SQLite's os_unix.c). The log is kept, for it may hold commits of the old file
  /// that are nowhere else; the `-shm` is only an index of it.
  package func putAside() throws(Obstacle) -> String? {
    let left = stillThere
    if left.shm != nil, let holder = holder(of: database + "-shm") {
      throw Obstacle(words: "process \(holder) still has the old file open")
    }
    if left.shm != nil && unlink(database + "-shm") != 0 {
      throw Obstacle(words: "\(database)-shm: \(String(cString: strerror(errno)))")
    }
    guard left.wal != nil else { return nil }
    var status = stat()
    if stat(path, &status) == 0 && status.st_size == 0 {
      unlink(path)
      return nil
    }
    let aside = path + ".replaced"
    guard rename(path, aside) == 0 else {
      throw Obstacle(words: "\(path): \(String(cString: strerror(errno)))")
    }
    return aside
  }

  /// Why the log cannot be put aside.
  package struct Obstacle: Error {
    package let words: String
  }

  /// The pid of a process that has the file open through SQLite.
  private func holder(of shm: String) -> Int32? {
    let descriptor = open(shm, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    range.l_whence = Int16(SEEK_SET)
    range.l_start = 120
    range.l_len = 9
    guard nudged_fcntl_lock(descriptor, F_GETLK, &range) == 0, range.l_type != Int16(F_UNLCK) else {
      return nil
    }
    return range.l_pid
  }
}
