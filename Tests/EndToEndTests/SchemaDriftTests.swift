import Foundation
import Testing

@Suite("A schema that changes under the worker")
struct SchemaDriftTests {
  /// What somebody does to the schema, and a word of the message that must follow.
  enum Drift: String, CaseIterable, CustomTestStringConvertible {
    case outboxColumn = "alter table nudge_outbox rename column collapse_id to collapse"
    case attemptColumn = "alter table nudge_attempt drop column apns_unique_id"
    case claimIndex = "drop index nudge_outbox_undated"
    case guarantee = "drop index nudge_attempt_device"
    case weakerGuarantee =
      "drop index nudge_attempt_token; create index nudge_attempt_token on nudge_attempt (nudge_id, token_hash, may_have_buzzed)"
    case trigger = "drop trigger nudge_outbox_insert"
    case deviceTrigger = "drop trigger nudge_device_delete"
    case table = "drop table nudge_worker"
    case view = "drop view nudge_registration"
    case newer = "insert into nudge_schema (version) values (99)"

    var testDescription: String { rawValue }

    /// Statements that are no drift for SQLite versions without DROP COLUMN are still one change.
    var word: String {
      switch self {
      case .outboxColumn: "nudge_outbox.collapse_id"
      case .attemptColumn: "nudge_attempt.apns_unique_id"
      case .claimIndex: "nudge_outbox_undated"
      case .guarantee: "nudge_attempt_device"
      case .weakerGuarantee: "nudge_attempt_token"
      case .trigger: "nudge_outbox_insert"
      case .deviceTrigger: "nudge_device_delete"
      case .table: "nudge_worker"
      case .view: "nudge_registration"
      case .newer: "schema version 99"
      }
    }
  }

  private func apply(_ drift: Drift, _ s: Scenario) throws {
    if drift == .outboxColumn || drift == .attemptColumn {
      // Views and triggers that name the column would refuse the change.
      try s.backend.run("pragma legacy_alter_table = on")
      try s.backend.script(
        "drop view nudge_audit; drop view nudge_story; drop view nudge_undelivered; drop view nudge_daily; drop view nudge_dead_tokens;"
      )
    }
    try s.backend.script(drift.rawValue)
  }

  private func check(_ worker: Child, _ drift: Drift) async throws {
    #expect(try await worker.wait() == .code(65), "\(worker.errors)")
    let errors = worker.errors.split(separator: "\n").filter {
      $0.contains("level=error") || $0.hasPrefix("nudged")
    }
    #expect(errors.count == 1, "\(worker.errors)")
    #expect(worker.errors.contains(drift.word), "\(worker.errors)")
  }

  private func content(_ s: Scenario) throws -> [[Value]] {
    try s.backend.run("select id, state, detail from nudge_outbox").map(\.values)
      + s.backend.run("select id, outcome from nudge_attempt").map(\.values)
  }

  @Test("found at the start: one message, exit 65, no write", arguments: Drift.allCases)
  func atStart(_ drift: Drift) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge()
      try apply(drift, s)
      let before = try content(s)
      try await check(try s.worker(production: peer), drift)
      #expect(try content(s) == before)
      #expect(try peer.requests().isEmpty)
    }
  }

  @Test("happening while the worker runs: one message, exit 65, no write after it", arguments: Drift.allCases)
  func whileRunning(_ drift: Drift) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      // The change and a new row are one commit: whoever sees the row sees the change.
      try s.backend.run("pragma legacy_alter_table = on")
      try s.backend.run("begin immediate")
      if drift == .outboxColumn || drift == .attemptColumn {
        for view in ["nudge_audit", "nudge_story", "nudge_undelivered", "nudge_daily", "nudge_dead_tokens"] {
          try s.backend.run("drop view \(view)")
        }
      }
      for statement in drift.rawValue.split(separator: ";") { try s.backend.run(String(statement)) }
      try s.backend.run("insert into nudge_outbox (title) values ('too late')")
      try s.backend.run("commit")
      let before = try content(s)
      try await check(worker, drift)
      #expect(try content(s) == before)
      #expect(try peer.requests().count == 1)
    }
  }

  @Test("columns, tables and indexes that others add are no concern of ours")
  func additions() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge()
      try await s.backend.settled(first)
      try s.backend.script(
        """
        alter table nudge_outbox add column ours text default 'x';
        alter table nudge_device add column nickname text;
        create table other (id integer primary key);
        create index message_text on message (text);
        create index theirs on nudge_outbox (event);
        analyze;
        """)
      let second = try s.backend.nudge()
      try await s.backend.settled(second)
      try s.backend.run("vacuum")
      let third = try s.backend.nudge()
      try await s.backend.settled(third)
      #expect(try s.backend.outcomes(third) == ["accepted"])
      #expect(worker.isRunning)
    }
  }
}
