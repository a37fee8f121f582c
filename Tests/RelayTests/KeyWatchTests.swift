import Foundation
import Testing

@testable import Relay

@Suite("KeyWatch")
struct KeyWatchTests {
  let folder: String
  let now = ContinuousClock.now

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "keys-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = url.path
  }

  private func clean() { try? FileManager.default.removeItem(atPath: folder) }

  private func write(_ name: String, _ text: String = "a key") throws {
    try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
  }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: "\(folder)/\(name)", withDestinationPath: target)
  }

  /// Whether the events of what was done come. A file is closed only when no child that is being started holds it.
  private func isDue(_ watch: KeyWatch) -> Bool {
    for _ in 0..<3000 where watch.due == nil {
      watch.takeEvents(now: now)
      usleep(5000)
    }
    return watch.due != nil
  }

  private func way(_ name: String) -> [String] {
    KeyWatch.way(to: "\(folder)/\(name)").map { ($0.folder + $0.name).replacing("\(folder)/", with: "") }
  }

  @Test("the way to a file is its name and each link, relative or absolute, in whatever folder")
  func ways() throws {
    defer { clean() }
    try FileManager.default.createDirectory(atPath: "\(folder)/2024", withIntermediateDirectories: false)
    try write("2024/key")
    try link("..data", to: "2024")
    try link("key", to: "..data/key")
    try link("absolute", to: "\(folder)/key")
    #expect(way("2024/key") == ["2024/key"])
    #expect(way("key") == ["key", "..data", "2024/key"])
    #expect(way("absolute") == ["absolute", "key", "..data", "2024/key"])
    #expect(way("2024/../key") == ["2024/../key", "2024/../..data", "2024/../2024/key"])
  }

  @Test("what is missing ends it, and links in a circle do not go on for ever")
  func ends() throws {
    defer { clean() }
    #expect(way("nowhere/key") == ["nowhere"])
    try link("a", to: "b")
    try link("b", to: "a")
    #expect(way("a").count == 40)
  }

  @Test("events of the names on the way make the file due a moment later, others do not")
  func events() throws {
    defer { clean() }
    try write("key")
    let watch = KeyWatch(paths: ["\(folder)/key"])
    try write("other")
    watch.takeEvents(now: now)
    #expect(watch.due == nil)
    try write("key", "another")
    #expect(isDue(watch))
    let due = try #require(watch.due)
    #expect(due > now && due < now + .seconds(1))
    watch.watch()
    #expect(watch.due == nil)
  }

  @Test("after a link was set, the new target is watched and the old one is not")
  func rearmed() throws {
    defer { clean() }
    try write("1")
    try write("2")
    try link("key", to: "1")
    let watch = KeyWatch(paths: ["\(folder)/key"])
    try FileManager.default.removeItem(atPath: "\(folder)/key")
    try link("key", to: "2")
    #expect(isDue(watch))
    watch.watch()
    try write("1", "late")
    watch.takeEvents(now: now)
    #expect(watch.due == nil)
    try write("2", "new")
    #expect(isDue(watch))
  }
}
