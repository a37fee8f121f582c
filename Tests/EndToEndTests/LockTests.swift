import Foundation
import Testing

@Suite("Locks of other programs")
struct LockTests {
  /// Python that other programs run against the database; `sys.argv[1]` is its path.
  private func outsider(_ s: Scenario, _ name: String, _ script: String) throws -> Child {
    let prelude = """
      import os, sqlite3, sys, time
      db = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
      def say(word): print(word, flush=True)

      """
    return try s.run(name, [Paths.python, "-c", prelude + script, s.database])
  }

  private func says(_ child: Child, _ word: String) async throws {
    try await eventually("\(child.name) says \(word)", within: .seconds(30), state: { child.errors }) {
      child.output.contains(word)
    }
  }

  @Test(
    "beside a writer that holds the lock for 200 ms again and again, each row goes once and no outcome is lost",
    arguments: ["wal", "delete"])
  func shortLocks(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let writer = try outsider(
        s, "writer",
        """
        for number in range(25):
            db.execute("begin immediate")
            db.execute("insert into message (text) values ('outside')")
            if number == 0: say("holds")
            time.sleep(0.2)
            db.execute("commit")
            time.sleep(0.02)
        say("done")
        """)
      try await says(writer, "holds")
      let ids = try (1...30).map { try s.backend.nudge(["title": .text("\($0)")]) }
      for id in ids { try await s.backend.settled(id, within: .seconds(60)) }
      for id in ids { #expect(try s.backend.outcomes(id) == ["accepted"]) }
      try await writer.wait(within: .seconds(60))
      #expect(try peer.titles() == (1...30).map { "\($0)" })
      #expect(worker.isRunning)
    }
  }

  @Test(
    "an answer that came during a long lock is recorded afterwards, and the row is not sent again",
    arguments: ["wal", "delete"])
  func longLock(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--answer-timeout", "4s"])
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      let holder = try outsider(
        s, "holder",
        """
        db.execute("begin exclusive")
        say("holds")
        time.sleep(6)
        db.execute("commit")
        say("done")
        """)
      try await says(holder, "holds")
      try s.release("go")
      try await says(holder, "done")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      try await s.backend.send()
      #expect(try peer.requests().count == 2)
      #expect(try peer.events("connected").count == 1)
      #expect(!worker.errors.contains("level=error"), "\(worker.errors)")
    }
  }

  @Test(
    "wal_checkpoint(truncate) with a second's patience succeeds while idle, draining and waiting for answers")
  func checkpoints() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python,
        PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])], maxConcurrentStreams: 20))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      try s.backend.run("pragma busy_timeout = 1000")
      func checkpoint(_ moment: String) throws {
        let row = try #require(try s.backend.run("pragma wal_checkpoint(truncate)").first)
        #expect(row["busy"] == 0, "\(moment): \(row)")
      }
      let first = try s.backend.nudge()
      try await peer.waitForRequests(1)
      for _ in 1...5 { try checkpoint("waiting for an answer") }
      try s.release("go")
      try await s.backend.settled(first)
      for _ in 1...5 { try checkpoint("idle") }
      let wal = try #require(
        try FileManager.default.attributesOfItem(atPath: s.database + "-wal")[.size] as? Int)
      #expect(wal == 0)
      try s.backend.transaction(
        (1...1500).map { _ in .init("insert into nudge_outbox (title) values ('T')") })
      var count = 0
      try await eventually("all are sent", within: .seconds(60)) {
        try checkpoint("draining")
        count += 1
        return try s.backend.count("select count(*) from nudge_outbox where state = 'pending'") == 0
      }
      #expect(count > 3)
    }
  }

  @Test("the write-ahead log does not grow with what the worker writes")
  func boundedLog() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      // The backend's own connection stays open, as in life, so nothing is removed by the last one closing.
      for _ in 1...3 {
        try s.backend.transaction(
          (1...2500).map { _ in .init("insert into nudge_outbox (title) values ('T')") })
        try await s.drain(production: peer, ["--answer-timeout", "60s"])
      }
      let size = try #require(
        try FileManager.default.attributesOfItem(atPath: s.database + "-wal")[.size] as? Int)
      // SQLite's own checkpoint comes at 1,000 pages; one large transaction of the backend may lie on top.
      #expect(size < 10_000_000, "\(size)")
      #expect(try s.backend.states() == ["attempted": 7500])
    }
  }

  @Test(
    "every journal mode of a backend works and is left as it is",
    arguments: ["delete", "truncate", "persist", "wal"])
  func journalModes(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let before = try s.backend.nudge(["title": "before"])
      _ = try s.worker(production: peer)
      try await s.backend.settled(before)
      for number in 1...20 {
        try await s.backend.send(["title": .text("\(number)")])
      }
      #expect(
        try peer.titles() == ["before"] + (1...20).map { "\($0)" })
      #expect(try s.backend.value("pragma journal_mode") == .text(journal))
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome is not 'accepted'") == 0)
    }
  }

  @Test(
    "a worker that starts under a long lock says so once, stops when told to, and works once the lock is gone",
    arguments: ["wal", "delete"])
  func lockAtStart(_ journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let holder = try outsider(
        s, "holder",
        """
        db.execute("begin exclusive")
        say("holds")
        while not os.path.exists("\(s.path("enough"))"): time.sleep(0.01)
        db.execute("commit")
        say("done")
        """)
      try await says(holder, "holds")
      let stopped = try s.worker(production: peer)
      try await Task.sleep(for: .seconds(1))
      stopped.signal(SIGTERM)
      #expect(try await stopped.wait(within: .seconds(10)) == .code(0), "\(stopped.errors)")
      let worker = try s.worker(production: peer)
      try await Task.sleep(for: .seconds(4))
      #expect(try peer.requests().isEmpty)
      #expect(worker.errors.components(separatedBy: "level=error").count <= 2, "\(worker.errors)")
      try s.release("enough")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 1)
    }
  }

  @Test("a reader that keeps our COMMIT from the file delays the outcome and loses nothing")
  func readerAtCommit() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let worker = try s.worker(production: peer)
      try await peer.waitForRequests(1)
      let reader = try outsider(
        s, "reader",
        """
        db.execute("begin")
        db.execute("select count(*) from message").fetchall()
        say("reads")
        while not os.path.exists("\(s.path("enough"))"): time.sleep(0.01)
        db.execute("commit")
        say("done")
        """)
      try await says(reader, "reads")
      try s.release("go")
      try await Task.sleep(for: .seconds(2))
      #expect(try s.backend.outcomes(id) == ["open"])
      try s.release("enough")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 1)
      #expect(!worker.errors.contains("level=error"), "\(worker.errors)")
    }
  }

  @Test(
    "nothing is sent while a reader keeps the claim from becoming durable; readers in turn do not starve us")
  func readersInTurn() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      // Two readers whose transactions overlap: there is no moment without one.
      let readers = try (0...1).map {
        try outsider(
          s, "reader-\($0)",
          """
          time.sleep(0.15 * \($0))
          while not os.path.exists("\(s.path("enough"))"):
              try:
                  db.execute("begin")
                  db.execute("select count(*) from message").fetchall()
                  say("reads")
                  time.sleep(0.3)
              finally:
                  db.execute("commit")
          """)
      }
      for reader in readers { try await says(reader, "reads") }
      _ = try s.worker(production: peer)
      try await s.backend.settled(id, within: .seconds(30))
      try s.release("enough")
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 1)
    }
  }
}
