import SQLite

/// What a monitoring system asks of the database, read in one snapshot and at a cost that does not grow with history.
///
/// Rows that are open are counted by their partial indexes. What has ended is counted over a recent time only, for no
/// index leads to it: its rows lie at the end of the table.
package struct Figures: Equatable, Sendable {
  /// How many nudges were ever written: AUTOINCREMENT never gives a number again, and retention does not change it.
  package var written: Int64 = 0
  /// Nudges that were written in the last 24 hours, by state.
  package var lastDay: [String: Int64] = [:]
  package var pending: Int64 = 0
  package var waiting: Int64 = 0
  /// Pending nudges whose time has come.
  package var due: Int64 = 0
  /// Since when the one that is longest due has been; milliseconds since 1970 UTC.
  package var dueSince: Int64?
  /// Attempts without an outcome.
  package var inFlight: Int64 = 0
  /// Attempts that have ended since midnight UTC.
  package var attempts: [Attempts] = []
  /// When Apple last took a nudge; milliseconds since 1970 UTC.
  package var lastAccepted: Int64?
  package var tokens: [Tokens] = []

  /// Ended attempts that are alike.
  package struct Attempts: Equatable, Sendable {
    package var environment: String
    package var outcome: String
    /// Nil where no answer came.
    package var status: Int64?
    package var count: Int64
    /// From request to answer, all together, in milliseconds.
    package var latency: Int64
    /// How many were answered within each of `latencyBounds`.
    package var within: [Int64]
  }

  /// Tokens that are alike.
  package struct Tokens: Equatable, Sendable {
    package var kind: String
    /// Nil while it is not known.
    package var environment: String?
    package var count: Int64
    /// How many of them every host has called bad.
    package var setAside: Int64
  }

  /// Upper bounds of latency in milliseconds.
  package static let latencyBounds: [Int64] = [25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000]

  static let day: Int64 = 24 * 3600 * 1000

  /// Midnight UTC before `now`; both in milliseconds since 1970.
  package static func midnight(before now: Int64) -> Int64 { now - now % day }

  /// Reads the figures at the wall time `now` (milliseconds); it leaves no trace, see `DatabaseFile.look`.
  package static func read(databaseAt path: String, now: Int64) throws(DatabaseFault) -> Figures {
    let database = try DatabaseFile.look(path)
    try Migration.check(database)
    do throws(SQLiteError) {
      // Deferred, so a snapshot that blocks nobody; it ends with the connection.
      try database.execute("begin")
      var figures = Figures()
      try figures.readNudges(database, now: now)
      try figures.readAttempts(database, now: now)
      figures.tokens = try tokens(database)
      return figures
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }
}

extension Figures {
  private mutating func readNudges(_ database: borrowing Database, now: Int64) throws(SQLiteError) {
    func integer(_ sql: String) throws(SQLiteError) -> Int64 { try database.integer(sql) ?? 0 }
    let undated =
      "from nudge_outbox indexed by nudge_outbox_undated where state = 'pending' and not_before_at is null"
    let dated =
      "from nudge_outbox indexed by nudge_outbox_dated where state = 'pending' and not_before_at is not null"
    let due = "\(dated) and not_before_at between \(legalTimes.lowerBound) and \(now)"
    let legal = "typeof(created_at) = 'integer' and created_at between \(legalTimes.lowerBound) and \(now)"

    written = try integer("select seq from sqlite_sequence where name = 'nudge_outbox'")
    let undatedCount = try integer("select count(*) \(undated)")
    pending = try undatedCount + integer("select count(*) \(dated)")
    self.due = try undatedCount + integer("select count(*) \(due)")
    waiting = try integer(
      "select count(*) from nudge_outbox indexed by nudge_outbox_waiting where state = 'waiting'")
    // The first by index is the one that is longest due. A row that was dated ahead and written late is rare.
    let oldest = [
      try database.integer("select created_at \(undated) and \(legal) order by id limit 1"),
      try database.integer("select not_before_at \(due) order by not_before_at, id limit 1"),
    ]
    dueSince = oldest.compactMap(\.self).min()

    let since = now - Figures.day
    let first = try Figures.firstID("nudge_outbox", "created_at", since: since, database)
    let states = try database.prepare(
      """
      select state, count(*) from nudge_outbox not indexed
      where id >= ?1 and typeof(created_at) = 'integer' and created_at >= ?2 group by state
      """)
    states.bind(1, first)
    states.bind(2, since)
    while try states.step() { lastDay[states.string(0) ?? ""] = states.integer(1) }
  }

  private mutating func readAttempts(_ database: borrowing Database, now: Int64) throws(SQLiteError) {
    inFlight =
      try database.integer(
        """
        select count(*) from nudge_attempt
        where outcome is null and id >= (select low_water_attempt_id from nudge_worker where id = 1)
        """) ?? 0
    lastAccepted = try database.integer(
      "select finished_at from nudge_attempt where outcome = 'accepted' order by id desc limit 1")

    let midnight = Figures.midnight(before: now)
    // What was in flight at midnight began before it.
    let first = try Figures.firstID(
      "nudge_attempt", "started_at", since: midnight - 3600 * 1000, database)
    let within = Figures.latencyBounds.map { "sum(finished_at - started_at <= \($0))" }
    let groups = try database.prepare(
      """
      select environment, outcome, status, count(*), sum(max(0, finished_at - started_at)), \(within.joined(separator: ", "))
      from nudge_attempt
      where id >= ?1 and finished_at >= ?2 and outcome is not null
      group by environment, outcome, status order by environment, outcome, status
      """)
    groups.bind(1, first)
    groups.bind(2, midnight)
    while try groups.step() {
      attempts.append(
        Attempts(
          environment: groups.string(0) ?? "unknown", outcome: groups.string(1) ?? "",
          status: groups.optionalInteger(2), count: groups.integer(3), latency: groups.integer(4),
          within: within.indices.map { groups.integer(Int32($0 + 5)) }))
    }
  }

  private static func tokens(_ database: borrowing Database) throws(SQLiteError) -> [Tokens] {
    let groups = try database.prepare(
      """
      select kind, environment, count(*), count(rejected_at) from nudge_token
      group by kind, environment order by kind, environment
      """)
    var tokens: [Tokens] = []
    while try groups.step() {
      tokens.append(
        Tokens(
          kind: groups.string(0) ?? "", environment: groups.string(1), count: groups.integer(2),
          setAside: groups.integer(3)))
    }
    return tokens
  }

  /// An id that no row from `since` on lies below, found by walking back from the newest.
  ///
  /// Ids follow time, but not strictly: a backend may date a row back, and a clock may step. The walk ends once
  /// a thousand rows in a row are older.
  private static func firstID(
    _ table: String, _ column: String, since: Int64, _ database: borrowing Database
  ) throws(SQLiteError) -> Int64 {
    let rows = try database.prepare("select id, \(column) >= ?1 from \(table) not indexed order by id desc")
    rows.bind(1, since)
    var first: Int64 = 0
    var older = 0
    while older < 1000, try rows.step() {
      first = rows.integer(0)
      older = rows.integer(1) == 1 ? 0 : older + 1
    }
    rows.reset()
    return first
  }
}
