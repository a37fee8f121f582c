import Foundation
import Testing

@testable import Relay

@Suite("DatabaseWatch")
struct DatabaseWatchTests {
  let folder: String
  let path: String
  let watch: DatabaseWatch
  let now = ContinuousClock.now

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "watch-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = url.path
    path = folder + "/app.db"
    try Data("old".utf8).write(to: URL(filePath: path))
    watch = DatabaseWatch(path: path, pollInterval: .seconds(3600))
  }

  private func clean() { try? FileManager.default.removeItem(atPath: folder) }

  private func append(_ name: String) throws {
    let file = folder + "/" + name
    if !FileManager.default.fileExists(atPath: file) {
      _ = FileManager.default.createFile(atPath: file, contents: nil)
    }
    let handle = try #require(FileHandle(forWritingAtPath: file))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data([1]))
    try handle.close()
  }

  @Test(
    "a write to the database, its log or its journal is an event",
    arguments: ["app.db", "app.db-wal", "app.db-journal"])
  func ours(name: String) throws {
    defer { clean() }
    #expect(!watch.takeEvents(now: now))
    try append(name)
    #expect(watch.takeEvents(now: now))
    #expect(!watch.takeEvents(now: now))
  }

  @Test("a journal that is deleted is a commit too")
  func deletedJournal() throws {
    defer { clean() }
    try append("app.db-journal")
    _ = watch.takeEvents(now: now)
    try FileManager.default.removeItem(atPath: path + "-journal")
    #expect(watch.takeEvents(now: now))
  }

  @Test(
    "other files are not",
    arguments: ["app.db-nudged.lock", "app.db-shm", "app.db2", "other.db", "app.d", "app.db-wal2", "xapp.db"])
  func notOurs(name: String) throws {
    defer { clean() }
    try append(name)
    #expect(!watch.takeEvents(now: now))
    #expect(watch.nextLook == nil)
  }

  @Test("one event among thousands of others is found")
  func amongMany() throws {
    defer { clean() }
    for index in 1...500 { try append("a-file-with-a-rather-long-name-\(index)") }
    try append("app.db-wal")
    for index in 1...500 { try append("a-file-with-a-rather-long-name-\(index)") }
    #expect(watch.takeEvents(now: now))
    #expect(!watch.takeEvents(now: now))
  }

  @Test("an event starts a series of looks with growing gaps, which ends; another one starts it anew")
  func looks() throws {
    defer { clean() }
    #expect(watch.nextLook == nil)
    try append("app.db-wal")
    #expect(watch.takeEvents(now: now))
    let gaps = lookThrough(watch)
    #expect(gaps == gaps.sorted())
    // The commit is visible some tenths of a millisecond after the event, on slow disks much later.
    #expect(gaps[0] <= .microseconds(200))
    let length = gaps.reduce(.zero, +)
    #expect(length >= .milliseconds(8))
    #expect(length <= .seconds(5))
    try append("app.db-wal")
    #expect(watch.takeEvents(now: now + length))
    #expect(watch.nextLook == now + length + gaps[0])
  }

  /// Takes each look of the series when it is due, and returns the gaps between them.
  private func lookThrough(_ watch: DatabaseWatch) -> [Duration] {
    var time = now
    var gaps: [Duration] = []
    while let look = watch.nextLook, gaps.count < 100 {
      #expect(look > time)
      gaps.append(look - time)
      time = look
      watch.scheduleNextLook(now: time)
    }
    return gaps
  }

  @Test("the series ends where the poll looks as often")
  func untilThePoll() throws {
    defer { clean() }
    try append("app.db-wal")
    #expect(watch.takeEvents(now: now))
    let all = lookThrough(watch)
    for interval in [.milliseconds(10), .milliseconds(512), .seconds(1)] as [Duration] {
      let polled = DatabaseWatch(path: path, pollInterval: interval)
      polled.beginLooks(now: now)
      #expect(lookThrough(polled) == all.filter { $0 < interval })
    }
    #expect(all.contains { $0 >= .seconds(1) })
  }

  @Test("the file is the same until another one stands there, or none")
  func file() throws {
    defer { clean() }
    #expect(watch.file == .same)
    try append("app.db")
    #expect(watch.file == .same)
    try FileManager.default.moveItem(atPath: path, toPath: path + ".old")
    #expect(watch.file == .missing)
    #expect(watch.takeEvents(now: now))
    try Data("new".utf8).write(to: URL(filePath: path))
    #expect(watch.file == .replaced)
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: path + ".old", toPath: path)
    #expect(watch.file == .same)
  }

  @Test("where the folder cannot be watched there is no descriptor and no event, and the poll goes on")
  func blind() {
    defer { clean() }
    let blind = DatabaseWatch(path: folder + "/none/app.db", pollInterval: .seconds(1))
    #expect(blind.descriptor == -1)
    #expect(!blind.takeEvents(now: now))
    #expect(blind.file == .missing)
  }
}
