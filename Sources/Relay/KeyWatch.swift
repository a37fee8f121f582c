import CLinux
import Glibc

/// Notices that a path may lead to another file, or to a file with another content.
///
/// What is watched are names in folders: of the file itself, and of every symbolic link on the way to it.
/// Deployment tools write a new file and rename it over the old one, or set a link to another folder.
final class KeyWatch {
  /// For the poller; -1 where inotify is not to be had.
  var descriptor: Int32 { inotify.descriptor }
  private let inotify = Inotify()
  private let paths: [String]
  private var names: [Int32: Set<String>] = [:]
  /// When the files are to be read, since something has happened to them; nil while nothing has.
  private(set) var due: ContinuousClock.Instant?

  /// A file is read this long after the last event: one that is deleted and written anew is whole by then.
  private static let quiet = Duration.milliseconds(200)

  init(paths: [String]) {
    self.paths = paths
    watch()
  }

  /// Reads the events at hand.
  func takeEvents(now: ContinuousClock.Instant) {
    inotify.takeEvents { event in
      if event.isOverflow || names[event.watch]?.contains(event.name) ?? false {
        due = now + KeyWatch.quiet
      }
    }
  }

  /// Watches the way to each file as it is now; called before the files are read.
  func watch() {
    due = nil
    names.removeAll()
    let mask = UInt32(
      IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM | IN_ATTRIB | IN_ONLYDIR)
    for path in paths {
      for place in KeyWatch.way(to: path) {
        if let watch = inotify.watch(place.folder, for: mask) {
          names[watch, default: []].insert(place.name)
        }
      }
    }
  }

  /// The links on the way to a file and the file itself, or the part of the way that is missing
  /// (`man 7 path_resolution`).
  static func way(to path: String) -> [(folder: String, name: String)] {
    var places: [(folder: String, name: String)] = []
    var rest = path.split(separator: "/").map(String.init)[...]
    var folder = path.hasPrefix("/") ? "/" : "./"
    // As many links as the kernel follows.
    while let name = rest.popFirst(), places.count < 40 {
      if let target = link(folder + name) {
        places.append((folder, name))
        if target.hasPrefix("/") { folder = "/" }
        rest = target.split(separator: "/").map(String.init) + rest
      } else if rest.isEmpty || access(folder + name, F_OK) != 0 {
        places.append((folder, name))
        return places
      } else {
        folder += name + "/"
      }
    }
    return places
  }

  /// Where a symbolic link leads; nil for whatever is none.
  private static func link(_ path: String) -> String? {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &target, target.count)
    return count > 0 ? String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self) : nil
  }
}
