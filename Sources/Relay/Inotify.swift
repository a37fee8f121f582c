import CLinux
import Glibc

/// Folders that the kernel watches for us (`man 7 inotify`).
final class Inotify {
  /// For the poller; -1 where inotify is not to be had.
  let descriptor: Int32
  private var buffer = [UInt8](repeating: 0, count: 4096)

  /// One thing that happened in a folder.
  struct Event {
    /// Which folder, as `watch` has returned it.
    let watch: Int32
    let mask: UInt32
    /// The name in the folder; empty for the folder itself.
    let name: String

    /// Events were lost: anything may have happened.
    var isOverflow: Bool { mask & UInt32(IN_Q_OVERFLOW) != 0 }
  }

  init() {
    descriptor = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Watches a folder; watching it again gives the same number. Nil where that cannot be.
  func watch(_ folder: String, for mask: UInt32) -> Int32? {
    let watch = inotify_add_watch(descriptor, folder, mask)
    return watch >= 0 ? watch : nil
  }

  /// Reads the events at hand. What comes faster than it is read waits for the next call: the descriptor stays
  /// readable.
  func takeEvents(_ body: (Event) -> Void) {
    for _ in 0..<64 {
      let count = read(descriptor, &buffer, buffer.count)
      guard count > 0 else { return }
      Inotify.parse(buffer[..<count], body)
    }
  }

  /// Goes through `struct inotify_event`s: 16 bytes, then `len` bytes of name.
  private static func parse(_ events: ArraySlice<UInt8>, _ body: (Event) -> Void) {
    let fixed = MemoryLayout<inotify_event>.size
    var start = events.startIndex
    while start + fixed <= events.endIndex {
      let event = events.withUnsafeBytes {
        $0.loadUnaligned(fromByteOffset: start, as: inotify_event.self)
      }
      let end = min(start + fixed + Int(event.len), events.endIndex)
      let name = String(decoding: events[(start + fixed)..<end].prefix { $0 != 0 }, as: UTF8.self)
      body(Event(watch: event.wd, mask: event.mask, name: name))
      start = end
    }
  }
}
