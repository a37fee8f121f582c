import CLinux
import Glibc

extension WorkerLock {
  /// The pid of the worker that holds the lock on this database; nil when none runs, 0 when its pid is not known here.
  ///
  /// It only asks (`F_GETLK`, fcntl(2)): it takes no lock, so that a worker that starts at this moment is not turned
  /// away, and it makes no lock file. A process that holds the lock itself must not ask: closing the file drops it.
  package static func holder(databasePath: String) -> Int32? {
    guard let resolved = realpath(databasePath, nil) else { return nil }
    defer { free(resolved) }
    let descriptor = open(String(cString: resolved) + "-nudged.lock", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    range.l_whence = Int16(SEEK_SET)
    guard nudged_fcntl_lock(descriptor, F_GETLK, &range) == 0, range.l_type != Int16(F_UNLCK) else {
      return nil
    }
    // A holder in another pid namespace has no number here, or a negative one.
    return max(range.l_pid, 0)
  }
}
