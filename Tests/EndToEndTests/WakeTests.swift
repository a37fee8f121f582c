import Foundation
import Testing

@Suite("Waking", .serialized)
struct WakeTests {
  @Test(
    "a row committed while the worker is idle is sent at once, without a poll",
    arguments: ["full", "normal", "extra"])
  func latency(_ synchronous: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.run("pragma synchronous = \(synchronous)")
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      try await s.backend.settled(try s.backend.nudge())
      var latencies: [Double] = []
      for number in 1...20 {
        let times = try s.backend.transaction([
          .init("insert into message (text) values ('Done.')"),
          .init("insert into nudge_outbox (title) values (?)", [.text("\(number)")]),
        ])
        try await s.backend.settled(Int64(number + 1), within: .seconds(5))
        let request = try #require(try peer.requests().last)
        #expect(request.alert["title"] as? String == "\(number)")
        latencies.append(request.atMs - times.after)
      }
      latencies.sort()
      #expect(latencies[10] < 100, "median \(latencies[10]) ms")
      #expect(latencies[19] < 1000, "slowest \(latencies[19]) ms")
    }
  }

  @Test("a rollback journal wakes it as well")
  func rollbackJournal() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      for number in 1...10 {
        try await s.backend.settled(try s.backend.nudge(["title": .text("\(number)")]), within: .seconds(5))
      }
      #expect(try peer.requests().count == 10)
    }
  }

  @Test("rows whose time comes are sent without a poll and without a commit")
  func timer() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      let due = now(plus: 1200)
      let id = try s.backend.nudge(["title": "T", "not_before_at": .integer(due)])
      try await s.backend.settled(id, within: .seconds(5))
      let request = try #require(try peer.requests().first)
      #expect((Double(due)..<Double(due + 1000)).contains(request.atMs))
    }
  }

  @Test("idle means idle: only the poll wakes it, and no bytes go to the peer")
  func idle() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      // What a connection says after an answer is said within a moment, and the looks after the last commit take
      // about a second; then it is quiet.
      try await Task.sleep(for: .seconds(2))
      let before = try switches(worker.pid)
      let events = try peer.events().count
      try await Task.sleep(for: .seconds(3))
      let woken = try switches(worker.pid) - before
      #expect(woken <= 4, "\(woken) wake-ups in 3 s")
      #expect(try peer.events().count == events)
    }
  }

  /// How often a process has gone to sleep by itself.
  private func switches(_ pid: Int32) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") })
    return try #require(line.split(separator: "\t").last.flatMap { Int($0) })
  }

  @Test("a backend that turns to WAL while the worker runs is still heard")
  func journalChanges() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      try await s.backend.settled(try s.backend.nudge())
      try await eventually("the mode changes") { try s.backend.value("pragma journal_mode = wal") == "wal" }
      for _ in 1...5 { try await s.backend.settled(try s.backend.nudge(), within: .seconds(5)) }
      #expect(try peer.requests().count == 6)
    }
  }
}
