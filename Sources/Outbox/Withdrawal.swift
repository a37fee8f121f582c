import SQLite

/// Settles what was written before a point in time and has not ended, batch by batch: after a copy was restored.
///
/// It does what a backend does that cancels its rows: `nudge_outbox_cancel` makes a row with attempts `attempted`.
/// A running worker and the backend are not held up: each batch is a transaction of its own, and the lock is to be
/// left free between two of them.
package struct Withdrawal: ~Copyable {
  /// What was found, and settled unless it was only looked at.
  package struct Counts: Equatable, Sendable {
    package var pending: Int64 = 0
    package var waiting: Int64 = 0
    /// How many of these have attempts already.
    package var withAttempts: Int64 = 0

    package var all: Int64 { pending + waiting }
  }

  private static let detail = "settled by hand: created before "
  private static let batch: Int64 = 500
  /// Both statements mean the same rows. A partial index would serve one state only, and each row is met once.
  private static let isMeant = "state in ('pending', 'waiting') and created_at < ?3"

  private let database: Database
  private let path: String
  private let before: Int64
  private let words: String
  private var position: Int64 = 0
  package private(set) var counts = Counts()

  /// - Parameters:
  ///   - before: milliseconds since 1970 UTC.
  ///   - text: the same for people; it goes into `detail`.
  ///   - dryRun: only look; the file is opened for reading.
  package init(
    databaseAt path: String, before: Int64, text: String, dryRun: Bool
  ) throws(DatabaseFault) {
    let database = try DatabaseFile.open(path, access: dryRun ? .readOnly : .readWrite)
    try Migration.check(database)
    self.path = path
    self.before = before
    self.words = Withdrawal.detail + text
    self.database = database
  }

  /// Counts what would be settled.
  package mutating func look() throws(DatabaseFault) {
    do throws(SQLiteError) { counts = try count(from: 0, to: .max) } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }

  /// Settles one batch; false when there was none left.
  package mutating func step() throws(DatabaseFault) -> Bool {
    do throws(SQLiteError) {
      let first = position + 1
      guard let last = try endOfBatch(from: first) else { return false }
      let settled = try database.transaction { _ throws(SQLiteError) in
        let found = try count(from: first, to: last)
        let update = try database.prepare(
          """
          update nudge_outbox set state = 'cancelled', detail = ?4
          where id between ?1 and ?2 and \(Withdrawal.isMeant)
          """)
        bind(update, first, last)
        update.bind(4, words)
        try update.run()
        return found
      }
      counts.pending += settled.pending
      counts.waiting += settled.waiting
      counts.withAttempts += settled.withAttempts
      position = last
      return true
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }

  /// The id of the last row of the next batch, found without a lock.
  private func endOfBatch(from first: Int64) throws(SQLiteError) -> Int64? {
    let select = try database.prepare(
      """
      select max(id) from (
        select id from nudge_outbox not indexed where id between ?1 and ?2 and \(Withdrawal.isMeant)
        order by id limit \(Withdrawal.batch))
      """)
    bind(select, first, .max)
    return try select.step() ? select.optionalInteger(0) : nil
  }

  private func count(from first: Int64, to last: Int64) throws(SQLiteError) -> Counts {
    let select = try database.prepare(
      """
      select sum(state = 'pending'), sum(state = 'waiting'),
        sum(exists (select 1 from nudge_attempt where nudge_id = nudge_outbox.id))
      from nudge_outbox not indexed where id between ?1 and ?2 and \(Withdrawal.isMeant)
      """)
    bind(select, first, last)
    guard try select.step() else { return Counts() }
    return Counts(
      pending: select.integer(0), waiting: select.integer(1), withAttempts: select.integer(2))
  }

  private func bind(_ statement: Statement, _ first: Int64, _ last: Int64) {
    statement.bind(1, first)
    statement.bind(2, last)
    statement.bind(3, before)
  }
}
