import Foundation
import Outbox
import Relay
import SQLite
import Testing

@testable import nudged

@Suite("Settle")
final class SettleTests {
  private let folder: TemporaryFolder
  private let path: String
  private let database: Database

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    try nudged(["migrate", "--database", path])
    database = try Database(path: path, busyTimeout: .seconds(5))
  }

  private func settle(_ arguments: String...) throws -> String {
    try nudged(["settle", "--database", path] + arguments).text
  }

  private func count(_ condition: String) throws -> Int64? {
    try database.integer("select count(*) from nudge_outbox where \(condition)")
  }

  /// Two pending, one waiting, one with an attempt, one that has ended, and one that is young.
  private func fill() throws {
    try database.execute(
      """
      insert into nudge_outbox (title, created_at) values
        ('a', 1790000000000), ('b', 1790000000001), ('c', 1790000000002), ('d', 1790000000003), ('e', 1790000000004);
      update nudge_outbox set state = 'waiting' where title = 'c';
      update nudge_outbox set state = 'expired', detail = 'kept', settled_at = 7 where title = 'e';
      insert into nudge_attempt (nudge_id, device_id, token_hash, started_at) values (4, 'd', 'h', 1);
      insert into nudge_outbox (title) values ('young');
      """)
  }

  @Test(
    "what was written before ends as cancelled, or as attempted where there are attempts, and nothing else does"
  )
  func settles() throws {
    try fill()
    let time = "2026-09-21T14:13:21Z"
    let words =
      "4 nudges written before \(time) (3 pending, 1 waiting): 3 as cancelled, 1 with attempts as attempted\n"
    #expect(try settle("--before", time, "--dry-run") == "would settle \(words)")
    #expect(try count("state in ('pending', 'waiting')") == 5)
    #expect(try settle("--before", time) == "settled \(words)")
    #expect(
      try database.text("select group_concat(title || ' ' || state, ', ') from nudge_outbox")
        == "a cancelled, b cancelled, c cancelled, d attempted, e expired, young pending")
    #expect(
      try database.text("select detail from nudge_outbox where title = 'a'")
        == "settled by hand: created before \(time)")
    #expect(
      try database.text("select detail from nudge_outbox where title = 'd'") == "cancelled after 1 attempt")
    #expect(try count("title = 'e' and detail = 'kept' and settled_at = 7") == 1)
    #expect(try count("state = 'cancelled' and settled_at > 1790000000004") == 3)
    #expect(
      try settle("--before", time)
        == "nothing to settle: no nudge written before \(time) is pending or waiting\n")
    #expect(try settle("--before", "0s", "--dry-run").hasPrefix("would settle 1 nudge written before "))
  }

  @Test("thousands go in batches, among settled rows, in the order of their ids")
  func batches() throws {
    try database.execute(
      """
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 2503)
      insert into nudge_outbox (title, created_at) select 't', 1790000000000 + i from n;
      update nudge_outbox set state = 'expired', settled_at = 1 where id % 2 = 0;
      """)
    #expect(try settle("--before", "1790000003000").hasPrefix("settled 1252 nudges "))
    #expect(try count("state = 'cancelled'") == 1252)
    #expect(try count("state = 'expired'") == 1251)
  }

  @Test("a lock that stays is an error that says what is done and what to do")
  func locked() throws {
    try fill()
    try database.execute("begin immediate")
    expectFailure(
      ["settle", "--database", path, "--before", "0s"], .inputOutput, "stays locked", "try again")
    try database.execute("rollback")
    #expect(try count("state in ('pending', 'waiting')") == 5)
  }

  @Test("it does nothing without a time that can be meant")
  func faults() throws {
    try fill()
    expectFailure(["settle", "--database", path], .usage, "--before 2h", "nudged help settle")
    expectFailure(["settle"], .configuration, "--database (or NUDGED_DATABASE)")
    for (text, words) in [
      ("soon", "is no time"), ("1790000000", "are these seconds?"), ("2099-01-01", "is still to come"),
    ] {
      expectFailure(["settle", "--database", path, "--before", text], .usage, "--before: ", words)
    }
    expectFailure(
      ["settle", "--database", path, "--before", "1h", "--dry-rnu"], .usage, "did you mean --dry-run?")
    #expect(try count("state in ('pending', 'waiting')") == 5)
  }
}
