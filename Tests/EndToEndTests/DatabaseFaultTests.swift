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

  private func zero(page: UInt64, of path: String) throws {
    try overwrite(path, at: (page - 1) * 4096, with: Data(count: 4096))
  }

  private func errorLines(_ child: Child) -> [Substring] {
    child.errors.split(separator: "\n").filter { $0.contains("level=error") || $0.hasPrefix("nudged") }
  }

  /// The worker gives up with `code`, and says why in one line.
  private func expectEnd(
    _ worker: Child, code: Int32, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    #expect(try await worker.wait() == .code(code), "\(worker.errors)", sourceLocation: sourceLocation)
    #expect(errorLines(worker).count == 1, "\(worker.errors)", sourceLocation: sourceLocation)
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
    case .outboxRoot: try zero(page: outbox, of: database)
    case .tokenRoot: try zero(page: tokens, of: database)
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
      try await expectEnd(worker, code: 65)
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
      try zero(page: outbox, of: s.database)
      let before = (try bytes(s.database), try bytes(s.database + "-wal"))
      let worker = try s.worker(production: peer)
      try await expectEnd(worker, code: 65)
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
      try await s.backend.send()
      let index = try rootPage(s, of: "nudge_outbox_undated")
      if journal == "wal" { try s.backend.run("pragma wal_checkpoint(truncate)") }
      try zero(page: index, of: s.database)
      // A commit that has nothing to do with the damage makes the worker read the file again.
      try s.backend.run("insert into message (text) values ('a record')")
      let before = try bytes(s.database)
      try await expectEnd(worker, code: 65)
      #expect(try bytes(s.database) == before)
      #expect(try peer.requests().count == 1)
    }
  }

  /// A copy of the database as it is now, beside it.
  private func makeCopy(_ s: Scenario, _ name: String = "new.db") throws -> String {
    let copy = s.path(name)
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
      try await s.backend.send(["title": "sent"])
      try s.backend.nudge(["title": "old", "not_before_at": .integer(now(plus: 4000))])
      s.backend.end()
      // In WAL mode the worker's own connection leaves -wal and -shm of the old file beside the new one.
      #expect(FileManager.default.fileExists(atPath: s.database + "-wal") == (journal == "wal"))
      try #require(rename(copy, s.database) == 0)
      try await worker.says("worker started", times: 2)
      let new = try Backend(database: s.database, folder: s.folder)
      #expect(try new.states() == [:])
      try await new.send(["title": "new"])
      try await Task.sleep(for: .seconds(4))
      #expect(try peer.titles() == ["sent", "new"])
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
      try await s.backend.send(["title": "sent"])
      try s.backend.nudge(["title": "old", "not_before_at": .integer(now(plus: 3000))])
      try #require(symlink(copy, s.path("next")) == 0)
      try #require(rename(s.path("next"), link) == 0)
      try await worker.says("worker started", times: 2)
      let new = try Backend(database: copy, folder: s.folder)
      try await new.send(["title": "new"])
      try await Task.sleep(for: .seconds(3))
      #expect(try peer.titles() == ["sent", "new"])
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
      try await worker.says("worker started")
      try #require(rename(copy, s.database) == 0)
      try await worker.says("\(s.database)-wal")
      try await Task.sleep(for: .seconds(4))
      #expect(try peer.requests().isEmpty)
      #expect(errorLines(worker).count == 1, "\(worker.errors)")
      s.backend.end()
      try await worker.says("worker started", times: 2)
      let new = try Backend(database: s.database, folder: s.folder)
      try await new.send(["title": "new"])
      #expect(try peer.titles() == ["new"])
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
      try await s.backend.send()
      try #require(unlink(s.database) == 0)
      try await expectEnd(worker, code: 66)
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
      try await worker.says("worker started")
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
      try await expectEnd(worker, code: 74)
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
        try await s.backend.send(["title": .text("old \(number)")])
      }
      try restore(copy, s)
      let id = try await s.backend.send(["title": "new"])
      #expect(id == 1)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.titles() == ["old 1", "old 2", "old 3", "new"])
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
      let full = try makeCopy(s, "full.db")
      try restore(empty, s)
      let worker = try s.worker(production: peer)
      try await worker.says("worker started")
      try await s.backend.send(["title": "first"])
      try restore(full, s)
      let id = try await s.backend.send(["title": "behind"])
      #expect(id == 11)
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
