import CLinux
import Glibc

/// Notices that the database may have changed, and when to look.
///
/// inotify watches the folder for the database, its `-wal` and its `-journal`. It is a hint: with
/// `synchronous = full` the writer's WAL is written before its fsync, so the event comes some tenths of a
/// millisecond before the commit can be seen. One look and sleep would miss it, therefore an event starts a
/// series of looks with growing gaps. Where inotify is blind (a network file system, a full queue), the slow
/// poll finds the change.
package final class DatabaseWatch {
  /// For the poller; -1 where inotify is not to be had.
  package var descriptor: Int32 { isWatching ? inotify.descriptor : -1 }
  private let inotify = Inotify()
  private let isWatching: Bool
  /// The real path of the database.
  package let path: String
  /// The path that was given, perhaps a link to it.
  private let given: String
  private let name: String
  /// The names in the folder whose events may be a commit.
  private let ours: Set<String>
  private let identity: FileIdentity?
  /// Something was done to the database's own name in its folder.
  private var isSuspicious = false
  /// The `-wal` and `-shm` of the database, as long as it was there.
  private var companions: StaleLog
  private let gaps: [Duration]
  private var remainingLooks: ArraySlice<Duration> = []
  /// When the next look of the series is due.
  package private(set) var nextLook: ContinuousClock.Instant?

  /// The gaps between the looks after an event: four seconds in all, for disks with a very slow fsync.
  private static let gaps: [Duration] = [
    100, 150, 250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000,
    2_048_000,
  ].map { .microseconds($0) }

  /// What became of the database file.
  package enum File: Sendable {
    case same, replaced, missing
  }

  /// - Parameters:
  ///   - path: the real path of the database.
  ///   - given: what the user calls it; a link may be set to another file.
  ///   - pollInterval: of the slow poll, which is a look too: looks as far apart as that would add nothing.
  ///   - isBlind: goes without inotify: to give it back costs the kernel some 15 ms
  ///     (`fsnotify_wait_marks_destroyed`), which a worker that ends at once need not spend.
  package init(path: String, given: String? = nil, pollInterval: Duration, isBlind: Bool = false) {
    self.path = path
    self.given = given ?? path
    let separator = path.lastIndex(of: "/") ?? path.startIndex
    let folder = separator == path.startIndex ? "/" : String(path[..<separator])
    name = String(path[separator...].dropFirst())
    ours = [name, name + "-wal", name + "-journal"]
    identity = FileIdentity(path: path)
    companions = StaleLog(database: path)
    gaps = DatabaseWatch.gaps.filter { $0 < pollInterval }
    let mask = UInt32(IN_MODIFY | IN_CREATE | IN_DELETE | IN_MOVED_TO | IN_MOVED_FROM)
    isWatching = !isBlind && inotify.watch(folder, for: mask) != nil
  }

  /// Reads the events at hand; returns whether one concerns the database, and then starts the series of looks.
  package func takeEvents(now: ContinuousClock.Instant) -> Bool {
    var isOurs = false
    inotify.takeEvents { event in
      if event.name == name && event.mask & UInt32(IN_MODIFY) == 0 { isSuspicious = true }
      if event.isOverflow || ours.contains(event.name) { isOurs = true }
    }
    if isOurs { beginLooks(now: now) }
    return isOurs
  }

  /// Starts the series of looks: after an event, and when the worker begins, since a commit that was being
  /// written while it opened the database gives no event any more.
  package func beginLooks(now: ContinuousClock.Instant) {
    remainingLooks = gaps[...]
    scheduleNextLook(now: now)
  }

  /// Moves on to the next look of the series once one was taken.
  package func scheduleNextLook(now: ContinuousClock.Instant) {
    nextLook = remainingLooks.popFirst().map { now + $0 }
  }

  /// Whether the path still leads to the file that was opened; asked before each claim, by `stat` alone:
  /// opening and closing the file besides SQLite would drop SQLite's locks.
  package var file: File {
    guard let found = FileIdentity(path: given) else { return .missing }
    return found == identity ? .same : .replaced
  }

  /// What the database that was opened has left beside its successor; nil when it is still in its own place,
  /// and only a link leads elsewhere now.
  package var leftovers: StaleLog? {
    FileIdentity(path: path) == identity ? nil : companions.stillThere
  }

  /// Remembers which files are `-wal` and `-shm` now, while the database is the one that was opened.
  package func rememberCompanions() {
    companions = StaleLog(database: path)
  }

  /// Whether something was done to the database's own name since the last call: no reason to wait for the poll.
  package func takeSuspicion() -> Bool {
    defer { isSuspicious = false }
    return isSuspicious
  }
}
