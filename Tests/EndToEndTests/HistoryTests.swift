import Foundation
import Testing

@Suite("Large tables")
struct HistoryTests {
  /// Inserts `count` rows like a backend's, in one transaction.
  private func rows(_ s: Scenario, _ count: Int, _ columns: String, _ values: String) throws {
    try s.backend.run(
      """
      with recursive number(i) as (select 1 union all select i + 1 from number where i < \(count))
      insert into nudge_outbox (\(columns)) select \(values) from number
      """)
  }

  @Test("behind a million settled rows one pending row is found at once, and idle is idle")
  func history() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.run("pragma synchronous = off")
      // The trigger settles what a backend inserts itself, so the history is put in as the worker leaves it.
      let settled = now(plus: -3_600_000)
      try rows(s, 1_000_000, "title, event", "'T', 'job_finished'")
      try s.backend.run("update nudge_outbox set settled_at = \(settled)")
      try s.backend.run(
        """
        insert into nudge_attempt (id, nudge_id, device_id, token_hash, outcome, status, started_at, finished_at)
        select id, id, 'phone-1', '00', 'accepted', 200, 1, 2 from nudge_outbox
        """)
      try s.backend.run("update nudge_outbox set state = 'attempted', detail = null")
      try s.backend.run("update nudge_worker set low_water_attempt_id = 1000001")
      try s.backend.run("pragma synchronous = full")
      try s.backend.run("pragma wal_checkpoint(truncate)")
      for analyzed in [false, true] {
        if analyzed { try s.backend.run("analyze") }
        let worker = try s.worker(production: peer)
        try await eventually("the worker runs") { worker.errors.contains("worker started") }
        let before = try processorTime(worker.pid)
        let first = try s.backend.nudge(["title": "connects"])
        try await s.backend.settled(first)
        let (_, committed) = try s.backend.transaction([
          .init("insert into nudge_outbox (title) values ('timed')")
        ])
        let count = try peer.requests().count
        let request = try #require(try await peer.waitForRequests(count + 1).last)
        #expect(request.atMs - committed < 1000, "\(request.atMs - committed) ms")
        #expect(try processorTime(worker.pid) - before < .milliseconds(1000))
        try await Task.sleep(for: .milliseconds(500))
        let idle = try processorTime(worker.pid)
        try await Task.sleep(for: .seconds(2))
        #expect(try processorTime(worker.pid) - idle <= .milliseconds(60))
        let peak = try peakMemory(worker.pid)
        #expect(peak < 64_000_000)
        worker.signal(SIGTERM)
        try await worker.wait()
      }
    }
  }

  @Test("100,000 pending rows, scattered through a history: each goes once, in bounded memory")
  func backlog() async throws {
    try await scenario { s in
      let peer = try await s.peer(.node, PeerScript())
      try s.backend.register("phone-1", token: token(1))
      try rows(
        s, 200_000, "title, event, created_at",
        "'T', case when i % 2 then 'job_finished' end, \(now())")
      let worker = try s.worker(production: peer, ["--answer-timeout", "60s"])
      try await eventually("the first thousands are sent", within: .seconds(120), state: { worker.errors }) {
        try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") > 5000
      }
      let peak = try peakMemory(worker.pid)
      #expect(peak < 64_000_000)
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
      let attempts = try s.backend.count("select count(*) from nudge_attempt")
      #expect(try s.backend.count("select count(distinct nudge_id) from nudge_attempt") == attempts)
      #expect(try peer.requests().count == attempts)
      #expect(
        try s.backend.count("select count(*) from nudge_outbox where state in ('pending', 'attempted')")
          == 100_000)
      // In the order of their ids, whatever lies between.
      #expect(try s.backend.value("select max(nudge_id) from nudge_attempt").integer == Int64(2 * attempts))
    }
  }

  @Test(
    "20,000 rows that wait for a paused host cost nothing, rows for the other host flow, and what runs out expires in time"
  )
  func parked() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("there", token: token(1), environment: "production")
      try s.backend.register("here", token: token(2), environment: "sandbox", surface: "tablet")
      // Nobody listens on production's port.
      let gone = try await s.peer()
      gone.end()
      try rows(s, 18_000, "title, created_at", "'parked', \(now())")
      // With an expiry of their own, far ahead and near.
      try rows(s, 2000, "title, expires_at", "'parked', \(now(plus: 3_600_000))")
      let worker = try s.worker(production: gone, sandbox: peer, ["--expire-after", "25s"])
      let first = try s.backend.nudge(["title": "first", "surface": "tablet"])
      try await s.backend.settled(first, within: .seconds(15))
      let own = try s.backend.nudge(["title": "own", "expires_at": .integer(now(plus: 3000))])
      try await Task.sleep(for: .milliseconds(500))
      let used = try processorTime(worker.pid)
      try await Task.sleep(for: .seconds(3))
      #expect(try processorTime(worker.pid) - used < .milliseconds(600))
      try await s.backend.settled(own, as: "expired", within: .seconds(10))
      for _ in 1...5 {
        let id = try s.backend.nudge(["title": "flows", "surface": "tablet"])
        try await s.backend.settled(id)
      }
      try await eventually("those without an expiry of their own run out", within: .seconds(60)) {
        try s.backend.states() == ["attempted": 6, "expired": 18_001, "pending": 2000]
      }
      #expect(try peer.requests().count == 6)
      let peak = try peakMemory(worker.pid)
      #expect(peak < 64_000_000)
    }
  }
}
