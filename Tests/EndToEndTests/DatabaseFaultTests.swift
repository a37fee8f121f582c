import Foundation
import Testing

@Suite("Damaged, replaced and altered databases")
struct DatabaseFaultTests {
  /// Ends the backend and leaves one file without `-wal` and `-shm`.
  private func closeCleanly(_ s: Scenario) throws {
    try s.backend.run("pragma wal_checkpoint(truncate)")
    s.backend.end()
    for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: s.database + suffix) }
  }

  private func bytes(_ path: String) throws -> Data { try Data(contentsOf: URL(filePath: path)) }

  private func overwrite(_ path: String, at offset: UInt64, with data: Data) throws {
    let file = try FileHandle(forWritingTo: URL(filePath: path))
    defer { try? file.close() }
    try file.seek(toOffset: offset)
    try file.write(contentsOf: data)
  }

  private func errorLines(_ child: Child) -> [Substring] {
    child.errors.split(separator: "\n").filter { $0.contains("level=error") || $0.hasPrefix("nudged") }
  }

  private func rootPage(_ s: Scenario, of table: String) throws -> UInt64 {
    UInt64(try s.backend.count("select rootpage from sqlite_master where name = '\(table)'"))
  }

  /// Ways to damage a file.
  enum Damage: String, CaseIterable, CustomTestStringConvertible {
    case outboxRoot = "the outbox's root page zeroed"
    case tokenRoot = "the tokens' root page zeroed"
    case noise = "noise"
    case half = "cut in half"
    case empty = "empty"

    var testDescription: String { rawValue }
  }

  private func damage(_ damage: Damage, _ database: String, outbox: UInt64, tokens: UInt64) throws {
    let size = try bytes(database).count
    switch damage {
    case .outboxRoot: try overwrite(database, at: (outbox - 1) * 4096, with: Data(count: 4096))
    case .tokenRoot: try overwrite(database, at: (tokens - 1) * 4096, with: Data(count: 4096))
    case .noise:
      try overwrite(database, at: 0, with: Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) }))
    case .half: truncate(database, size / 2)
    case .empty: truncate(database, 0)
    }
  }

  @Test(
    "a damaged file at the start: one message, exit 65, and not one byte is changed",
    arguments: Damage.allCases)
  func damagedAtStart(_ kind: Damage) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge()
      let (outbox, tokens) = (try rootPage(s, of: "nudge_outbox"), try rootPage(s, of: "nudge_token"))
      try closeCleanly(s)
      try damage(kind, s.database, outbox: outbox, tokens: tokens)
      let before = try bytes(s.database)
      let worker = try s.worker(production: peer)
      #expect(try await worker.wait() == .code(65), "\(worker.errors)")
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      #expect(worker.errors.contains(s.database))
      #expect(try bytes(s.database) == before)
      #expect(try peer.requests().isEmpty)
    }
  }

  @Test("a damaged file with a write-ahead log left over: the log is not written into it")
  func damagedWithLog() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let outbox = try rootPage(s, of: "nudge_outbox")
      try s.backend.run("pragma wal_checkpoint(truncate)")
      try s.backend.run("insert into message (text) values ('only in the log')")
      s.backend.end()
      try overwrite(s.database, at: (outbox - 1) * 4096, with: Data(count: 4096))
      let before = (try bytes(s.database), try bytes(s.database + "-wal"))
      let worker = try s.worker(production: peer)
      #expect(try await worker.wait() == .code(65), "\(worker.errors)")
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      #expect(try bytes(s.database) == before.0)
      #expect(try bytes(s.database + "-wal") == before.1)
    }
  }

  @Test(
    "damage under a running worker: one message, exit 65, the file as it was", arguments: ["wal", "delete"])
  func damagedWhileRunning(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      let index = try rootPage(s, of: "nudge_outbox_undated")
      if journal == "wal" { try s.backend.run("pragma wal_checkpoint(truncate)") }
      try overwrite(s.database, at: (index - 1) * 4096, with: Data(count: 4096))
      // A commit that has nothing to do with the damage makes the worker read the file again.
      try s.backend.run("insert into message (text) values ('a record')")
      let before = try bytes(s.database)
      #expect(try await worker.wait() == .code(65), "\(worker.errors)")
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      #expect(try bytes(s.database) == before)
      #expect(try peer.requests().count == 1)
    }
  }

  /// A second database beside the first: the same tables and device, no rows.
  private func makeCopy(_ s: Scenario) throws -> String {
    let copy = s.path("new.db")
    let result = try runToEnd(
      [try Paths.program("sqlite3"), s.database, ".backup '\(copy)'"], folder: s.folder)
    try #require(result.exit == .code(0), "\(result.errors)")
    return copy
  }

  @Test(
    "another file moved into place is served, and nothing of the old one is sent",
    arguments: ["wal", "delete"])
  func replaced(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let copy = try makeCopy(s)
      let worker = try s.worker(production: peer)
      let sent = try s.backend.nudge(["title": "sent"])
      try await s.backend.settled(sent)
      try s.backend.nudge(["title": "old", "not_before_at": .integer(now(plus: 4000))])
      s.backend.end()
      // In WAL mode the worker's own connection leaves -wal and -shm of the old file beside the new one.
      #expect(FileManager.default.fileExists(atPath: s.database + "-wal") == (journal == "wal"))
      try #require(rename(copy, s.database) == 0)
      try await eventually("the worker serves the new file", state: { worker.errors }) {
        worker.errors.components(separatedBy: "worker started").count == 3
      }
      let new = try Backend(database: s.database, folder: s.folder)
      defer { new.end() }
      #expect(try new.states() == [:])
      let id = try new.nudge(["title": "new"])
      try await new.settled(id)
      try await Task.sleep(for: .seconds(4))
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["sent", "new"])
      #expect(try new.value("pragma integrity_check") == "ok")
      #expect(worker.isRunning)
    }
  }

  @Test("a link that is set to another file is followed, and the old file and its log stay as they are")
  func relinked() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let copy = try makeCopy(s)
      let link = s.path("link.db")
      try #require(symlink(s.database, link) == 0)
      let settings = s.settings(production: peer).map { $0 == s.database ? link : $0 }
      let worker = try s.start(["run"] + settings)
      let sent = try s.backend.nudge(["title": "sent"])
      try await s.backend.settled(sent)
      try s.backend.nudge(["title": "old", "not_before_at": .integer(now(plus: 3000))])
      try #require(symlink(copy, s.path("next")) == 0)
      try #require(rename(s.path("next"), link) == 0)
      try await eventually("the worker serves the new file", state: { worker.errors }) {
        worker.errors.components(separatedBy: "worker started").count == 3
      }
      let new = try Backend(database: copy, folder: s.folder)
      defer { new.end() }
      let id = try new.nudge(["title": "new"])
      try await new.settled(id)
      try await Task.sleep(for: .seconds(3))
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["sent", "new"])
      #expect(try s.backend.states() == ["attempted": 1, "pending": 1])
      #expect(try s.backend.value("pragma integrity_check") == "ok")
    }
  }

  @Test("while another program still uses the old file's log, nothing is sent; then the new file is served")
  func replacedUnderOthers() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let copy = try makeCopy(s)
      try s.backend.nudge(["title": "old", "not_before_at": .integer(now(plus: 3000))])
      let worker = try s.worker(production: peer)
      try await eventually("the worker runs") { worker.errors.contains("worker started") }
      try #require(rename(copy, s.database) == 0)
      try await eventually("the worker says what it waits for", state: { worker.errors }) {
        worker.errors.contains("\(s.database)-wal")
      }
      try await Task.sleep(for: .seconds(4))
      #expect(try peer.requests().isEmpty)
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      s.backend.end()
      try await eventually("the log of the old file is gone", state: { worker.errors }) {
        worker.errors.components(separatedBy: "worker started").count == 3
      }
      let new = try Backend(database: s.database, folder: s.folder)
      defer { new.end() }
      let id = try new.nudge(["title": "new"])
      try await new.settled(id)
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["new"])
    }
  }

  @Test(
    "a deleted database ends the worker with 66; it does not work on without a name",
    arguments: ["wal", "delete"])
  func deleted(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      try #require(unlink(s.database) == 0)
      #expect(try await worker.wait() == .code(66), "\(worker.errors)")
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      #expect(worker.errors.contains("\(s.database) was deleted"))
      #expect(try peer.requests().count == 1)
      #expect(!FileManager.default.fileExists(atPath: s.database))
    }
  }

  @Test("a directory in the database's place ends the worker with a message")
  func becomesDirectory() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer()
      let worker = try s.worker(production: peer)
      try await eventually("the worker runs") { worker.errors.contains("worker started") }
      // Both steps at once: no moment without a file.
      try FileManager.default.createDirectory(atPath: s.path("folder"), withIntermediateDirectories: false)
      let result = try runToEnd(
        [
          Paths.python, "-c",
          "import ctypes, sys; libc = ctypes.CDLL(None); "
            + "sys.exit(-libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2))",
          s.path("folder"), s.database,
        ], folder: s.folder)
      try #require(result.exit == .code(0))
      #expect(try await worker.wait() == .code(74), "\(worker.errors)")
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      #expect(worker.errors.contains("\(s.database) is a directory"))
    }
  }

  @Test(
    "an older copy restored in place: rows go on, ids that come back are new nudges",
    arguments: ["wal", "delete"])
  func restoredOlder(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let copy = try makeCopy(s)
      let worker = try s.worker(production: peer)
      for number in 1...3 {
        let id = try s.backend.nudge(["title": .text("old \(number)")])
        try await s.backend.settled(id)
      }
      try restore(copy, s)
      let id = try s.backend.nudge(["title": "new"])
      #expect(id == 1)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(
        try peer.requests().map { $0.alert["title"] as? String } == ["old 1", "old 2", "old 3", "new"])
      #expect(worker.isRunning)
    }
  }

  @Test("a copy with a longer history restored in place: attempts in it are not confused with ours")
  func restoredNewer() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let empty = try makeCopy(s)
      for number in 1...10 { try s.backend.nudge(["title": .text("\(number)")]) }
      try await s.drain(production: peer)
      // One attempt of the copy was in flight when it was made.
      try s.backend.run("update nudge_attempt set outcome = null, finished_at = null where id = 10")
      try s.backend.run("update nudge_worker set low_water_attempt_id = 10")
      let full = s.path("full.db")
      _ = try runToEnd([try Paths.program("sqlite3"), s.database, ".backup '\(full)'"], folder: s.folder)
      try restore(empty, s)
      let worker = try s.worker(production: peer)
      try await eventually("the worker runs") { worker.errors.contains("worker started") }
      let first = try s.backend.nudge(["title": "first"])
      try await s.backend.settled(first)
      try restore(full, s)
      let id = try s.backend.nudge(["title": "behind"])
      #expect(id == 11)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try s.backend.outcomes(10) == ["interrupted"])
      #expect(try peer.requests().count == 12)
      #expect(worker.isRunning)
    }
  }

  private func restore(_ copy: String, _ s: Scenario) throws {
    let result = try runToEnd(
      [try Paths.program("sqlite3"), s.database, ".timeout 10000", ".restore '\(copy)'"], folder: s.folder)
    try #require(result.exit == .code(0) && result.errors.isEmpty, "\(result.errors)")
  }
}
