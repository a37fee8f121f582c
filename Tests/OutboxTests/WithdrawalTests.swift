import SQLite
import Testing

@testable import Outbox

@Suite("Withdrawal")
struct WithdrawalTests {
  @Test("between two batches the lock is free for others, and what they do meanwhile holds")
  func batches() throws {
    let folder = try TemporaryFolder()
    let path = try folder.database()
    _ = try Migration.apply(databaseAt: path)
    // It waits for no lock: an insert or update that meets one fails.
    let backend = try Database(path: path)
    try backend.execute(
      """
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)
      insert into nudge_outbox (title, created_at) select 't', 1790000000000 from n
      """)
    var withdrawal = try Withdrawal(databaseAt: path, before: 1_790_000_000_001, text: "noon", dryRun: false)
    #expect(try withdrawal.step())
    #expect(withdrawal.counts == Withdrawal.Counts(pending: 500, waiting: 0, withAttempts: 0))
    // The worker has sent one of the next, and settled another: both stay what they are.
    try backend.execute(
      """
      insert into nudge_attempt (nudge_id, device_id, token_hash) values (600, 'd', 'h');
      update nudge_outbox set state = 'attempted', settled_at = 1 where id = 600;
      update nudge_outbox set state = 'expired', settled_at = 1 where id = 601;
      update nudge_outbox set state = 'waiting' where id = 602;
      """)
    #expect(try withdrawal.step())
    #expect(withdrawal.counts == Withdrawal.Counts(pending: 999, waiting: 1, withAttempts: 0))
    #expect(try withdrawal.step())
    #expect(try !withdrawal.step())
    #expect(withdrawal.counts.all == 1198)
    #expect(
      try backend.text(
        "select group_concat(state || ' ' || n) from (select state, count(*) n from nudge_outbox group by 1)")
        == "attempted 1,cancelled 1198,expired 1")
    #expect(
      try backend.text("select detail from nudge_outbox where id = 1")
        == "settled by hand: created before noon")
  }

  @Test("a batch that fails counts for nothing and leaves no transaction behind")
  func failed() throws {
    let folder = try TemporaryFolder()
    let path = try folder.database()
    _ = try Migration.apply(databaseAt: path)
    let backend = try Database(path: path)
    try backend.execute(
      """
      insert into nudge_outbox (title, created_at) values ('t', 1790000000000);
      create trigger refusing before update on nudge_outbox begin select raise(abort, 'not now'); end;
      """)
    var withdrawal = try Withdrawal(databaseAt: path, before: 1_790_000_000_001, text: "noon", dryRun: false)
    do throws(DatabaseFault) {
      _ = try withdrawal.step()
      Issue.record("it was carried out")
    } catch {
      #expect(error.message == "not now")
    }
    #expect(withdrawal.counts.all == 0)
    try backend.execute("drop trigger refusing")
    #expect(try withdrawal.step())
    #expect(withdrawal.counts.all == 1)
  }
}
