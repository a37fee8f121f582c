import Foundation
import Glibc
import Testing

/// `audit`, `metrics` and `settle` beside a worker and a backend that write.
@Suite("Commands for operators")
struct OperatorTests {
  @Test("beside a worker: what it did, what is open and why, and that it runs; without it, that none does")
  func besideAWorker() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let sent = try s.backend.nudge(["title": "Hello", "record_id": "m-1", "event": "turn_finished"])
      try await s.backend.settled(sent)
      try s.backend.nudge([
        "title": "later", "record_id": "m-2", "not_before_at": .integer(now(plus: 3_600_000)),
      ])
      let told = try await s.nudged(["audit", "--database", s.database])
      #expect(told.exit == .code(0), "\(told.errors)")
      #expect(
        told.output.contains(/turn_finished +m-1 +phone-1 +production +accepted after \d+ ms\n/),
        "\(told.output)")
      #expect(told.output.contains(#/m-2 +\(owner: phone\) +- +pending: not due before 2/#))
      #expect(try await running(s) == "1")

      let settled = try await s.nudged(["settle", "--database", s.database, "--before", "0s"])
      #expect(settled.exit == .code(0), "\(settled.errors)")
      #expect(settled.output.contains("settled 1 nudge "))
      #expect(settled.output.contains("A worker runs (pid \(worker.pid))"), "\(settled.output)")
      #expect(try s.backend.states() == ["attempted": 1, "cancelled": 1])

      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
      #expect(try await running(s) == "0")
      try s.backend.nudge(["title": "T"])
      let alone = try await s.nudged(["audit", "--database", s.database])
      #expect(alone.output.contains("no worker runs: start `nudged run`\n"), "\(alone.output)")
      try await s.drain(production: peer)
      #expect(try peer.requests().count == 2)
    }
  }

  private func running(_ s: Scenario) async throws -> String? {
    let metrics = try await s.nudged(["metrics", "--database", s.database])
    #expect(metrics.exit == .code(0), "\(metrics.errors)")
    return metrics.output.firstMatch(of: /(?m)^nudged_worker_running (\d)$/).map { String($0.1) }
  }

  @Test("a worker starts while others ask again and again whether one runs")
  func askingIsNoLock() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let asker = try s.run(
        "asker",
        [
          "/bin/sh", "-c",
          "while :; do '\(try Paths.nudged())' metrics --database '\(s.database)'; done > /dev/null",
        ])
      for _ in 1...5 { try await s.drain(production: peer) }
      #expect(asker.isRunning)
      asker.kill()
    }
  }

  @Test("a backend goes on committing while thousands are settled, and the new rows stay")
  func backendGoesOn() async throws {
    try await scenario { s in
      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
        insert into nudge_outbox (title, created_at) select 'row ' || i, 1790000000000 from n;
        """)
      let settle = try s.start(["settle", "--database", s.database, "--before", "1h"])
      var written = 0
      while settle.isRunning {
        // Throws when it meets a lock for five seconds.
        try s.backend.nudge(["title": "young"])
        written += 1
        try await Task.sleep(for: .milliseconds(5))
      }
      #expect(settle.exit == .code(0), "\(settle.errors)")
      #expect(settle.output.hasPrefix("settled 5000 nudges "), "\(settle.output)")
      #expect(try s.backend.states() == ["cancelled": 5000, "pending": written])
    }
  }

  @Test("a restored copy sends nothing again once it is settled, and everything that was open if it is not")
  func restoredCopy() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge(["title": "before", "expires_at": .integer(now(plus: 86_400_000))])
      let copy = s.path("copy.db")
      let saved = try runToEnd(
        [try Paths.program("sqlite3"), s.database, ".backup '\(copy)'"], folder: s.folder)
      #expect(saved.exit == .code(0), "\(saved.errors)")
      try await s.drain(production: peer)
      #expect(try peer.requests().count == 1)

      let settings = s.settings(production: peer).map { $0 == s.database ? copy : $0 }
      let untouched = s.path("untouched.db")
      try FileManager.default.copyItem(atPath: copy, toPath: untouched)
      let settled = try await s.nudged(["settle", "--database", copy, "--before", "0s"])
      #expect(settled.output.hasPrefix("settled 1 nudge "), "\(settled.output)\(settled.errors)")
      #expect(try await s.nudged(["run", "--drain"] + settings).exit == .code(0))
      #expect(try peer.requests().count == 1)
      let again = try await s.nudged(["run", "--drain"] + settings.map { $0 == copy ? untouched : $0 })
      #expect(again.exit == .code(0), "\(again.errors)")
      #expect(try peer.requests().count == 2)
    }
  }
}
