import Foundation
import Glibc
import Testing

@Suite("Crashes")
struct CrashTests {
  /// A place in the life of one nudge at which the worker is killed.
  struct Place: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// The worker dies on entry to the next such system call.
    let call: String
    var number = 1
    /// Counted from the moment at which the request is with the peer, which holds its answer; else from before the
    /// commit of the row.
    var isAnswer = false
    /// What may stand in the database after the next start, for each journal mode.
    let outcomes: [String: [String]]
    /// How often the peer may have been asked then.
    let requests: ClosedRange<Int>

    init(
      _ name: String, _ call: String, _ number: Int = 1, isAnswer: Bool = false, wal: [String] = [],
      delete: [String] = [], requests: ClosedRange<Int>
    ) {
      testDescription = name
      self.call = call
      self.number = number
      self.isAnswer = isAnswer
      outcomes = ["wal": wal, "delete": delete]
      self.requests = requests
    }
  }

  // A commit that was written and not synced yet survives a crash in WAL mode, since only the process died; with a
  // rollback journal the journal still stands and undoes it.
  static let places = [
    Place(
      "before the claim is written", "pwrite64", wal: ["accepted"], delete: ["accepted"], requests: 1...1),
    Place(
      "before the claim is synced", "fdatasync", wal: ["accepted", "interrupted"], delete: ["accepted"],
      requests: 0...1),
    Place("before the claim's journal is removed", "unlink", delete: ["accepted"], requests: 1...1),
    Place(
      "after the claim's commit, before the first byte of HEADERS", "write", wal: ["interrupted"],
      delete: ["interrupted"], requests: 0...0),
    Place(
      "after HEADERS, before the answer is read", "read", isAnswer: true, wal: ["interrupted"],
      delete: ["interrupted"], requests: 1...1),
    Place(
      "after the answer was read, before it is settled", "pwrite64", isAnswer: true, wal: ["interrupted"],
      delete: ["interrupted"], requests: 1...1),
    Place(
      "before the settle is synced", "fdatasync", isAnswer: true, wal: ["accepted", "interrupted"],
      delete: ["interrupted"], requests: 1...1),
    Place(
      "before the settle's journal is removed", "unlink", isAnswer: true, delete: ["interrupted"],
      requests: 1...1),
  ]

  @Test(
    "killed at a named step: asked at most once, and after the next start the attempt says what happened",
    arguments: places, ["wal", "delete"])
  func namedSteps(_ place: Place, journal: String) async throws {
    guard let expected = place.outcomes[journal], !expected.isEmpty else { return }
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      let gate = try temporaryFolder("gate")
      defer { try? FileManager.default.removeItem(atPath: gate) }
      try s.backend.register("phone-1", token: token(1))
      // Without log lines, every write(2) is one to the peer.
      let settings = Ordeal.quiet(s.settings(production: peer))
      let worker = try s.start(["run"] + settings)
      try await s.backend.settled(try s.backend.nudge(["title": "before"]))
      if place.isAnswer {
        try peer.script(PeerScript(rules: [Rule(times: 1, [.hold("\(gate)/go"), .answer()])]))
      } else {
        try await Strace.kill(worker, at: place.call, place.number, in: s)
      }
      let id = try s.backend.nudge(["title": "once"])
      if place.isAnswer {
        try await peer.waitForRequests(2)
        try await Strace.kill(worker, at: place.call, place.number, in: s)
        try "".write(toFile: "\(gate)/go", atomically: true, encoding: .utf8)
      }
      #expect(try await worker.wait() == .signal(SIGKILL))
      #expect(try s.backend.value("pragma integrity_check") == "ok")

      _ = try s.start(["run"] + settings)
      try await s.backend.settled(try s.backend.nudge(["title": "after"]))
      try await s.backend.settled(id)
      let outcomes = try s.backend.outcomes(id)
      #expect(outcomes.count == 1 && expected.contains(outcomes.first ?? "none"), "\(outcomes)")
      let asked = try peer.requests().filter { $0.alert["title"] as? String == "once" }.count
      #expect(place.requests.contains(asked), "asked \(asked) times, \(outcomes)")
      // Accepted is what the peer was asked, and nothing else.
      if outcomes == ["accepted"] { #expect(asked == 1) }
      #expect(try s.backend.value("pragma integrity_check") == "ok")
    }
  }

  @Test(
    "killed when HEADERS are out and the body is still held back by the peer's window: interrupted, not asked again"
  )
  func betweenHeadersAndBody() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      // After its first answer the peer gives streams no window any more.
      let close: [String: Any] = ["settings": ["initial_window_size": 0]]
      let rule: [String: Any] = ["request": 1, "do": [["answer": ["status": 200]], close]]
      try JSONSerialization.data(withJSONObject: ["rules": [rule]])
        .write(to: URL(filePath: s.path("peer-1.json")), options: .atomic)
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge(["title": "before"]))
      let id = try s.backend.nudge(["title": "once"])
      try await eventually("HEADERS have arrived", state: { worker.errors }) {
        try peer.events("headers").count == 2
      }
      #expect(try s.backend.outcomes(id) == ["open"])
      worker.kill()
      try peer.script(PeerScript())
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(id) == ["interrupted"])
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["before"])
      #expect(try peer.events("headers").count == 2)
    }
  }

  @Test(
    "killed during migrate and migrate --remove: all of the schema or none, and the next run completes it",
    arguments: ["wal", "delete"])
  func migration(journal: String) async throws {
    try await scenario(migrated: false, journal: journal) { s in
      try s.backend.run("insert into message (text) values ('mine')")
      let calls = "pwrite64,fdatasync,ftruncate,unlink"
      let stride = Ordeal.Plan.isNightly ? 1 : 5
      for (arguments, complete) in [(["migrate"], true), (["migrate", "--remove"], false)] {
        var kills = 0
        for number in Swift.stride(from: 1, to: 2000, by: stride) {
          let command = try Strace.killing(
            at: calls, number, [try Paths.nudged()] + arguments + ["--database", s.database])
          let child = try s.run("migrate-\(complete)-\(number)", command)
          let exit = try await child.wait()
          #expect(try s.backend.value("pragma integrity_check") == "ok")
          let parts = try s.backend.count("select count(*) from sqlite_master where name glob 'nudge_*'")
          let whole = try s.nudgedParts()
          #expect(parts == 0 || parts == whole, "\(parts) of \(whole) parts after \(kills) kills")
          if exit == .code(0) {
            #expect(parts == (complete ? whole : 0))
            break
          }
          #expect(exit == .signal(SIGKILL), "\(child.errors)")
          kills += 1
        }
        // A schema of this size cannot be written with fewer calls.
        #expect(kills >= 3, "only \(kills) kills")
      }
      #expect(try s.backend.value("select text from message") == "mine")
      #expect(try await s.nudged(["migrate", "--database", s.database]).exit == .code(0))
    }
  }

  @Test(
    "killed again and again under faults: no buzz twice, nothing without a row, all adds up",
    arguments: ["wal", "delete"])
  func ordeal(journal: String) async throws {
    try await scenario(journal: journal) { s in
      let plan = Ordeal.Plan.current(journal: journal)
      let ordeal = try await Ordeal(s, plan)
      try await ordeal.run()
      let ledger = try Ledger(s, ordeal)
      if Ordeal.Plan.isNightly { print(ordeal.summary + ledger.summary) }
      let count = ledger.violations.count
      #expect(count == 0, "seed \(plan.seed): \(ledger.violations.prefix(10).joined(separator: "\n"))")
      #expect(ordeal.ownEnds == [])
      #expect(ordeal.kills.values.reduce(0, +) == plan.kills)
      #expect(ledger.nudges >= plan.nudges)
    }
  }
}

extension Scenario {
  /// How many tables, indexes, triggers and views the whole schema has.
  fileprivate func nudgedParts() throws -> Int {
    let fresh = path("fresh.db")
    if !FileManager.default.fileExists(atPath: fresh) {
      try Data().write(to: URL(filePath: fresh))
      let result = try runToEnd([try Paths.nudged(), "migrate", "--database", fresh], folder: folder)
      guard result.exit == .code(0) else { throw Failure("migrate: \(result.errors)") }
    }
    let other = try Backend(database: fresh, folder: folder)
    defer { other.end() }
    return try other.count("select count(*) from sqlite_master where name glob 'nudge_*'")
  }
}
