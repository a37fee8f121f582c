import CLinux
import Glibc

/// A file that is read again when it changes; a fault keeps what was read before.
struct WatchedFile {
  let path: String
  private var seen: Signature?

  private struct Signature: Equatable {
    var inode: UInt64
    var size: Int
    var seconds: Int
    var nanoseconds: Int
  }

  init(_ path: String) { self.path = path }

  /// The new content when the file has changed since the last call; empty when it is gone.
  mutating func changed() throws(SimulatorFault) -> [UInt8]?? {
    var status = stat()
    let signature: Signature? =
      stat(path, &status) == 0
      ? Signature(
        inode: UInt64(status.st_ino), size: Int(status.st_size), seconds: status.st_mtim.tv_sec,
        nanoseconds: status.st_mtim.tv_nsec) : nil
    guard signature != seen else { return nil }
    seen = signature
    return .some(try Files.read(path))
  }
}

/// Tells when anything in the folders of some files changes (inotify(7)).
final class FolderWatch {
  let descriptor: Int32
  private var buffer = [UInt8](repeating: 0, count: 8_192)

  init(filesAt paths: [String]) throws(SimulatorFault) {
    descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
    guard descriptor >= 0 else { throw Files.fault("inotify") }
    for path in paths {
      let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
      let mask = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE
      guard inotify_add_watch(descriptor, folder.isEmpty ? "/" : folder, UInt32(mask)) >= 0 else {
        throw Files.fault(folder)
      }
    }
  }

  deinit { close(descriptor) }

  /// Whether anything has happened since the last call.
  func take() -> Bool {
    var any = false
    while read(descriptor, &buffer, buffer.count) > 0 { any = true }
    return any
  }
}
