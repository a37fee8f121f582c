import Foundation
import Testing

@Suite("Live Activities that wait: time, drain, audits")
struct ActivityAuditTests {
  @Test("rows that wait run out at their own time, one after the other, without a commit and without a poll")
  func expires() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for phone in 1...3 { try s.backend.register("phone-\(phone)", token: nil) }
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      let first = now(plus: 2500)
      // The first of the three to run out has long been sent by then.
      let ids = try (1...3).map { phone in
        try s.backend.activity(
          phone == 3 ? "end" : "update",
          [
            "device_id": .text("phone-\(phone)"), "activity_id": .text("\(phone)"),
            "expires_at": .integer(first + Int64(phone - 1) * 400),
          ])
      }
      for id in ids { try await s.backend.waits(id) }
      try s.backend.registerUpdate(1, "1")
      for (id, state) in zip(ids, ["attempted", "expired", "expired"]) {
        try await s.backend.settled(id, as: state, within: .seconds(10))
      }
      for (index, id) in ids.enumerated().dropFirst() {
        let row = try s.backend.row(id)
        let late = try #require(row["settled_at"].integer) - (first + Int64(index) * 400)
        #expect((0..<3000).contains(late), "\(late) ms late")
      }
      #expect(try peer.requests().count == 1)
      // A token that comes too late finds nothing.
      try s.backend.registerUpdate(2, "2")
      try s.backend.registerUpdate(1, "1", token: updateToken(9))
      let last = try s.backend.activity("update", ["device_id": "phone-1", "activity_id": "1"])
      try await s.backend.settled(last)
      #expect(try peer.requests().count == 2)
    }
  }

  @Test("a device that is deleted takes its token along; what waits for it runs out")
  func deletedDevice() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for phone in 1...2 { try s.backend.registerStart(phone) }
      _ = try s.worker(production: peer, ["--poll-interval", "1h"])
      try await s.backend.settled(try s.backend.activity("start"))
      try s.backend.registerUpdate(1)
      let end = try s.backend.activity("end", ["expires_at": .integer(now(plus: 2500))])
      try await s.backend.waits(end)
      try s.backend.run("delete from nudge_device where device_id = 'phone-2'")
      try await s.backend.settled(end, within: .seconds(10))
      #expect(try s.backend.outcomes(end) == ["accepted"])
      #expect(try s.backend.count("select count(*) from nudge_token where device_id = 'phone-2'") == 0)
    }
  }

  @Test("--drain leaves what waits, and is done; the views tell of each row how it ended")
  func views() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for phone in 1...2 { try s.backend.registerStart(phone) }
      let start = try s.backend.activity("start", ["device_id": "phone-1"])
      let first = try s.backend.activity("update", ["device_id": "phone-1"])
      let second = try s.backend.activity("update", ["device_id": "phone-1", "record_id": "m-2"])
      try await s.drain(production: peer)
      #expect(try s.backend.states() == ["attempted": 1, "superseded": 1, "waiting": 1])
      let end = try s.backend.activity("end", ["device_id": "phone-1", "event": "turn_finished"])
      try await s.drain(production: peer)
      #expect(try s.backend.state(end) == "waiting")
      try s.backend.registerUpdate(1)
      try await s.drain(production: peer)
      let over = try s.backend.activity("update", ["device_id": "phone-1"])
      let lonely = try s.backend.activity("update", ["activity_id": "elsewhere"])
      let invalid = try s.backend.activity("update", ["content_state": nil])
      try await s.drain(production: peer)
      #expect(
        try s.backend.states()
          == ["attempted": 2, "superseded": 2, "unaddressed": 1, "waiting": 1, "invalid": 1])
      #expect(try peer.requests().map(\.activityEvent) == ["start", "end"])

      // A line for each attempt and each end without one; what waits has no line yet.
      let audit = try s.backend.run(
        "select nudge_id, kind, activity_id, state, detail, outcome, token_kind from nudge_audit order by nudge_id"
      )
      #expect(
        audit.map { $0["nudge_id"] } == [start, first, second, end, over, invalid].map { .integer($0) })
      #expect(
        audit.map { $0["state"] }
          == ["attempted", "superseded", "superseded", "attempted", "unaddressed", "invalid"])
      #expect(audit.map { $0["outcome"] } == ["accepted", nil, nil, "accepted", nil, nil])
      #expect(audit[1]["detail"] == .text("by nudge \(second)"))
      #expect(audit[2]["detail"] == .text("by nudge \(end)"))
      #expect(audit[4]["detail"] == "activity over")
      #expect(audit.allSatisfy { $0["activity_id"] == "turn" })
      #expect(audit[0]["token_kind"] == "activity_start" && audit[3]["token_kind"] == "activity_update")

      let undelivered = try s.backend.run(
        "select nudge_id, state, attempts from nudge_undelivered order by 1")
      #expect(
        undelivered.map { $0["nudge_id"] } == [first, second, over, invalid].map { .integer($0) })
      let daily = try s.backend.run(
        """
        select sum(nudges) as nudges, sum(pending) as pending, sum(waiting) as waiting,
          sum(attempted) as attempted, sum(suppressed) as suppressed, sum(expired) as expired,
          sum(superseded) as superseded, sum(unaddressed) as unaddressed, sum(invalid) as invalid,
          sum(cancelled) as cancelled, sum(attempts) as attempts, sum(accepted) as accepted
        from nudge_daily
        """)[0]
      #expect(daily.values == [7, 0, 1, 2, 0, 0, 2, 1, 1, 0, 2, 2])
      #expect(try s.backend.state(lonely) == "waiting")
      try s.backend.run("update nudge_outbox set state = 'cancelled' where id = ?", [.integer(lonely)])
      #expect(try s.backend.row(lonely)["settled_at"].integer != nil)
    }
  }

  @Test("five thousand activities wait: one token wakes one row at once, all of them at once go all")
  func thousands() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.script(
        """
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000)
        insert into nudge_outbox (kind, activity_id, content_state, device_id)
          select 'activity_update', 'turn-' || i, '{"step":' || i || '}', 'phone-' || i from n;
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000)
        insert into nudge_registration (device_id, topic) select 'phone-' || i, '\(Backend.topic)' from n;
        """)
      let worker = try s.worker(production: peer, ["--poll-interval", "1h"])
      try await eventually("all wait", within: .seconds(60), state: { "\((try? s.backend.states()) ?? [:])" })
      {
        try s.backend.states() == ["waiting": 5000]
      }
      let insert = """
        insert into nudge_registration (device_id, kind, scope, token, environment)
        select 'phone-' || i, 'activity_update', 'turn-' || i, printf('ee%06x', i), 'production' from n
        """
      let times = try s.backend.transaction([
        .init("with n (i) as (values (2500)) " + insert)
      ])
      try await s.backend.settled(2500, within: .seconds(5))
      #expect(try #require(try peer.requests().first).atMs - times.after < 1000)
      try s.backend.script(
        """
        with recursive n (i) as (select 1 union all select i + 1 from n where i < 5000) \(insert);
        """)
      try await eventually(
        "all have gone", within: .seconds(60), state: { "\((try? s.backend.states()) ?? [:])" }
      ) {
        try s.backend.states() == ["attempted": 5000]
      }
      #expect(try peer.requests().count == 5000)
      #expect(try Set(peer.requests().compactMap(\.step)).count == 5000)
      #expect(try peakMemory(worker.pid) < 100 << 20)
    }
  }
}
