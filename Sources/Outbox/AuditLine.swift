import SQLite

/// One line of the view `nudge_story`: an attempt, or a nudge that has none.
package struct AuditLine: Sendable {
  /// A value as SQLite holds it; a BLOB is taken as text.
  package enum Value: Equatable, Sendable {
    case null
    case integer(Int64)
    case real(Double)
    case text(String)
  }

  /// Which lines are wanted; nil asks for any.
  package struct Filter: Equatable, Sendable {
    /// Milliseconds since 1970 UTC. What is still open has no time of its own and is always wanted.
    package var since: Int64
    package var recipient: String?
    package var record: String?
    /// Also wanted are nudges without an attempt that were meant for any device such as this one.
    package var device: String?

    package init(since: Int64, recipient: String? = nil, record: String? = nil, device: String? = nil) {
      self.since = since
      self.recipient = recipient
      self.record = record
      self.device = device
    }
  }

  /// The view's columns in its order, one list for all lines.
  package let columns: [String]
  /// As many as columns.
  package let values: [Value]

  /// The value of a column; `.null` for one that the view does not have.
  package subscript(_ column: String) -> Value {
    columns.firstIndex(of: column).map { values[$0] } ?? .null
  }

  /// The lines that `filter` asks for, the newest last, and behind them what is still open.
  ///
  /// It leaves no trace, see `DatabaseFile.look`.
  package static func read(_ filter: Filter, databaseAt path: String) throws(DatabaseFault) -> [AuditLine] {
    let database = try DatabaseFile.look(path)
    try Migration.check(database)
    do throws(SQLiteError) {
      let columns = try columns(of: database)
      let statement = try database.prepare(sql(filter))
      statement.bind(1, filter.since)
      statement.bind(2, filter.recipient)
      statement.bind(3, filter.record)
      statement.bind(4, filter.device)
      var lines: [AuditLine] = []
      while try statement.step() {
        lines.append(AuditLine(columns: columns, values: columns.indices.map { value(statement, Int32($0)) }))
      }
      return lines
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }

  private static func columns(of database: borrowing Database) throws(SQLiteError) -> [String] {
    let statement = try database.prepare("select name from pragma_table_info('nudge_story') order by cid")
    var names: [String] = []
    while try statement.step() { names.append(statement.string(0) ?? "") }
    return names
  }

  /// Only what is asked for is in the text, so that a record's nudges are looked up and not compared.
  private static func sql(_ filter: Filter) -> String {
    var conditions = ["(at >= ?1 or at is null)"]
    if filter.recipient != nil {
      // Of a nudge that the backend deleted, the device is what is left.
      conditions.append(
        "?2 = case when state is null then device_recipient else coalesce(recipient, 'owner') end")
    }
    if filter.record != nil {
      conditions.append("nudge_id in (select id from nudge_outbox where cast(record_id as text) = ?3)")
    }
    if filter.device != nil {
      conditions.append(
        """
        (device_id = ?4 or (device_id is null and exists (
          select 1 from nudge_device d
          where d.device_id = ?4 and d.recipient = coalesce(nudge_story.recipient, 'owner')
            and coalesce(nudge_story.surface, 'phone') in ('*', d.surface))))
        """)
    }
    return """
      select * from nudge_story where \(conditions.joined(separator: " and "))
      order by at is null, at, nudge_id, attempt_id
      """
  }

  private static func value(_ statement: Statement, _ column: Int32) -> Value {
    switch statement.storageClass(column) {
    case .null: .null
    case .integer: .integer(statement.integer(column))
    case .real: .real(statement.real(column))
    case .text, .blob: .text(statement.string(column) ?? "")
    }
  }
}
