import SQLite

/// What the tables say about how things go, in one look.
package struct Health: Equatable, Sendable {
  /// Nudges that could be sent now.
  package var due: Int64
  /// When the oldest of them became due, milliseconds since 1970 UTC.
  package var oldestDueAt: Int64?
  /// Nudges that wait for a Live Activity's token.
  package var waiting: Int64
  /// When the next nudge is due that is not due yet.
  package var nextAt: Int64?
  /// Requests without an outcome: on their way, or left by a worker that is gone.
  package var inFlight: Int64
  package var devices: Int64
  package var devicesWithoutTopic: Int64
  package var devicesWithoutToken: Int64
  /// Tokens that every host has called bad.
  package var setAside: Int64
  package var answers: [Answers]

  /// How one host answered one way, among the newest attempts.
  package struct Answers: Equatable, Sendable {
    /// `production` or `sandbox`.
    package var environment: String
    package var outcome: String
    package var status: Int64?
    package var reason: String?
    /// The newest of them, and when it ended.
    package var lastID: Int64
    package var lastAt: Int64
    /// How many ended within a day.
    package var lastDay: Int64
  }

}

extension Health {
  /// Attempts further back are not looked at: history may be long, and nothing in it is sorted by host.
  private static let attemptsLookedAt = 100_000

  /// How the tables stand to this program and, if they are as it knows them, what they say.
  ///
  /// Leaves no trace, see `DatabaseFile.look`.
  ///
  /// - Parameter now: milliseconds since 1970 UTC.
  package static func look(
    databaseAt path: String, now: Int64
  ) throws(DatabaseFault) -> (condition: Migration.Condition, health: Health?) {
    let database = try DatabaseFile.look(path)
    do throws(SQLiteError) {
      let condition = try Migration.condition(of: database)
      return (condition, condition == .current ? try Health(of: database, now: now) : nil)
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }

  private init(of database: borrowing Database, now: Int64) throws(SQLiteError) {
    // One transaction, so that the figures are of one moment.
    try database.execute("begin")
    defer { try? database.execute("rollback") }
    // Each is answered by a partial index. Undated rows are due since they are there, the oldest first.
    let queue = try database.prepare(
      """
      select
        (select count(*) from nudge_outbox where state = 'pending' and not_before_at is null)
          + (select count(*) from nudge_outbox
            where state = 'pending' and not_before_at is not null and not_before_at <= ?1),
        (select min(at) from (
          select created_at as at from nudge_outbox where id = (
            select min(id) from nudge_outbox where state = 'pending' and not_before_at is null)
          union all
          select min(not_before_at) from nudge_outbox
          where state = 'pending' and not_before_at is not null and not_before_at <= ?1)
          where typeof(at) = 'integer'),
        (select count(*) from nudge_outbox where state = 'waiting'),
        (select min(not_before_at) from nudge_outbox
          where state = 'pending' and not_before_at is not null and not_before_at > ?1),
        (select count(*) from nudge_attempt
          where id >= (select low_water_attempt_id from nudge_worker) and outcome is null),
        (select count(*) from nudge_device),
        (select count(*) from nudge_device where topic is null),
        (select count(*) from nudge_device d
          where not exists (select 1 from nudge_token t where t.device_id = d.device_id)),
        (select count(*) from nudge_token where rejected_at is not null)
      """)
    queue.bind(1, now)
    _ = try queue.step()
    due = queue.integer(0)
    oldestDueAt = queue.optionalInteger(1)
    waiting = queue.integer(2)
    nextAt = queue.optionalInteger(3)
    inFlight = queue.integer(4)
    devices = queue.integer(5)
    devicesWithoutTopic = queue.integer(6)
    devicesWithoutToken = queue.integer(7)
    setAside = queue.integer(8)
    queue.reset()
    answers = try Health.answers(database, now: now)
  }

  private static func answers(
    _ database: borrowing Database, now: Int64
  ) throws(SQLiteError) -> [Answers] {
    let statement = try database.prepare(
      """
      select environment, outcome, status, reason, max(id), finished_at,
        sum(finished_at > ?1 - 86400000)
      from nudge_attempt
      where id > (select max(id) from nudge_attempt) - \(attemptsLookedAt)
        and outcome is not null and environment is not null
      group by environment, outcome, status, reason
      """)
    statement.bind(1, now)
    var answers: [Answers] = []
    while try statement.step() {
      answers.append(
        Answers(
          environment: statement.string(0) ?? "", outcome: statement.string(1) ?? "",
          status: statement.optionalInteger(2), reason: statement.string(3), lastID: statement.integer(4),
          lastAt: statement.integer(5), lastDay: statement.integer(6)))
    }
    return answers.sorted { $0.lastID > $1.lastID }
  }
}
