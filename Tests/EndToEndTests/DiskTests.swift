import Foundation
import Glibc
import Testing

@Suite("Files that cannot be written, and full disks")
struct DiskTests {
  /// Starts the worker as a user whom permissions bind: root without its privileges, or whoever runs the tests.
  private func boundWorker(_ s: Scenario, _ peer: TestPeer, _ more: [String] = []) throws -> Child {
    let command = [try Paths.nudged(), "run"] + s.settings(production: peer) + more
    guard geteuid() == 0 else { return try s.run("bound", command) }
    return try s.run(
      "bound", [try Paths.program("setpriv"), "--bounding-set=-all", "--inh-caps=-all"] + command)
  }

  private func troubles(_ worker: Child) -> [Substring] {
    worker.errors.split(separator: "\n").filter { $0.contains("level=error") || $0.hasPrefix("nudged") }
  }

  /// What is closed to the worker, relative to the folder of the test.
  enum Closed: String, CaseIterable, CustomTestStringConvertible {
    case database = "app.db"
    case wal = "app.db-wal"
    case shm = "app.db-shm"
    case unreadable = "app.db, not even readable"
    case folder = "the folder"

    var testDescription: String { rawValue }
    var mode: mode_t { self == .folder ? 0o555 : self == .unreadable ? 0o000 : 0o444 }
    var openMode: mode_t { self == .folder ? 0o700 : 0o600 }

    func path(_ s: Scenario) -> String {
      switch self {
      case .database, .unreadable: s.database
      case .wal: s.database + "-wal"
      case .shm: s.database + "-shm"
      case .folder: s.folder
      }
    }
  }

  @Test(
    "a file or folder that the worker may not write: nothing is sent, one message with path, owner and mode, and it goes on by itself",
    arguments: Closed.allCases)
  func closed(_ closed: Closed) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let path = closed.path(s)
      try #require(chmod(path, closed.mode) == 0)
      defer { chmod(s.folder, 0o700) }
      // The log of the worker goes to a file in the folder, which has to be there already.
      if closed == .folder {
        chmod(s.folder, 0o700)
        for name in ["bound.out", "bound.err"] { try s.release(name) }
        chmod(s.folder, 0o555)
      }
      let worker = try boundWorker(s, peer)
      try await eventually("the worker says what is closed", state: { worker.errors }) {
        !troubles(worker).isEmpty
      }
      try await Task.sleep(for: .milliseconds(2500))
      #expect(worker.isRunning)
      #expect(troubles(worker).count == 1, "\(worker.errors)")
      let mode = String(closed.mode, radix: 8)
      let shown = "mode " + String(repeating: "0", count: 4 - mode.count) + mode
      #expect(worker.errors.contains(path) && worker.errors.contains(shown), "\(worker.errors)")
      #expect(worker.errors.contains("owner "))
      #expect(try peer.requests().isEmpty)
      try #require(chmod(path, closed.openMode) == 0)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 1)
      #expect(troubles(worker).count == 1, "\(worker.errors)")
    }
  }

  @Test("--drain does not wait for permissions: exit 74 and the same message")
  func drainFails() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge()
      try #require(chmod(s.database, 0o444) == 0)
      let worker = try boundWorker(s, peer, ["--drain"])
      #expect(try await worker.wait() == .code(74), "\(worker.errors)")
      #expect(worker.errors.contains("mode 0444"), "\(worker.errors)")
      #expect(try peer.requests().isEmpty)
    }
  }

  @Test("a worker that waits for permissions stops when it is told to")
  func stopsWhileWaiting() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try #require(chmod(s.database, 0o444) == 0)
      let worker = try boundWorker(s, peer)
      try await eventually("the worker waits") { !troubles(worker).isEmpty }
      worker.signal(SIGTERM)
      #expect(try await worker.wait(within: .seconds(10)) == .code(0), "\(worker.errors)")
    }
  }

  @Test(
    "a folder that is closed while the worker runs, with a rollback journal: the same, and an answer in hand is kept"
  )
  func closedWhileRunning() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(request: 1, [.hold(s.path("held/go")), .answer()])]))
      try FileManager.default.createDirectory(atPath: s.path("held"), withIntermediateDirectories: false)
      try s.backend.register("phone-1", token: token(1))
      let worker = try boundWorker(s, peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      let waiting = try s.backend.nudge(["title": "behind"])
      try #require(chmod(s.folder, 0o555) == 0)
      defer { chmod(s.folder, 0o700) }
      try s.release("held/go")
      try await eventually("the worker says what is closed", state: { worker.errors }) {
        !troubles(worker).isEmpty
      }
      try await Task.sleep(for: .milliseconds(2500))
      #expect(troubles(worker).count == 1, "\(worker.errors)")
      #expect(worker.errors.contains("\(s.folder), owner"), "\(worker.errors)")
      #expect(worker.errors.contains("mode 0555"))
      #expect(try s.backend.outcomes(id) == ["open"])
      #expect(try peer.requests().count == 1)
      chmod(s.folder, 0o700)
      try await s.backend.settled(id)
      try await s.backend.settled(waiting)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 2)
    }
  }

  @Test(
    "no room on the disk: nothing is sent, one message, answers in hand are settled when there is room again",
    arguments: ["wal", "delete"])
  func full(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(request: 2, [.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      let held = try s.backend.nudge(["title": "held"])
      try await peer.waitForRequests(2)
      // Whatever the worker writes next is longer than 8 KiB or lies behind them, where it may not write.
      try s.backend.run(
        "insert into message (text) values (?)", [.text(String(repeating: "x", count: 300_000))])
      try limit(worker, "8192:")
      let waiting = try (1...50).map { try s.backend.nudge(["title": .text("\($0)")]) }
      try s.release("go")
      try await eventually("the worker says that there is no room", state: { worker.errors }) {
        !troubles(worker).isEmpty
      }
      try await Task.sleep(for: .milliseconds(3500))
      #expect(worker.isRunning)
      #expect(troubles(worker).count == 1, "\(worker.errors)")
      #expect(worker.errors.contains(s.database))
      #expect(try peer.requests().count == 2)
      #expect(try s.backend.outcomes(held) == ["open"])
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 2)
      try limit(worker, "unlimited")
      for id in [held] + waiting {
        try await s.backend.settled(id)
        #expect(try s.backend.outcomes(id) == ["accepted"])
      }
      #expect(try peer.requests().count == 52)
      #expect(troubles(worker).count == 1, "\(worker.errors)")
      #expect(try s.backend.value("pragma integrity_check") == "ok")
    }
  }

  /// Sets how far the worker's files may grow (`RLIMIT_FSIZE`): a disk that is full for it alone.
  private func limit(_ worker: Child, _ bytes: String) throws {
    let result = try runToEnd(
      [try Paths.program("prlimit"), "--pid", "\(worker.pid)", "--fsize=\(bytes)"],
      folder: FileManager.default.temporaryDirectory.path)
    try #require(result.exit == .code(0), "\(result.errors)")
  }
}
