import SQLite

/// What a backend does, in the same plain SQL: insert a nudge, register a token, look at the devices.
///
/// Nothing here is known to the worker; `nudged send` is one more backend.
package enum Backend {
  /// The columns of `nudge_outbox` that a backend writes.
  package enum OutboxColumn: String, CaseIterable, Sendable {
    case kind, event
    case recordID = "record_id"
    case recipient, surface
    case deviceID = "device_id"
    case conversationID = "conversation_id"
    case title, subtitle, body, aps, data
    case activityID = "activity_id"
    case attributesType = "attributes_type"
    case attributes
    case contentState = "content_state"
    case staleAt = "stale_at"
    case dismissAt = "dismiss_at"
    case collapseID = "collapse_id"
    case priority
    case deliveredBy = "delivered_by"
    case pushRequested = "push_requested"
    case notBeforeAt = "not_before_at"
    case expiresAt = "expires_at"
    case dedupeKey = "dedupe_key"
  }

  /// The columns of the view `nudge_registration`.
  package enum RegistrationColumn: String, CaseIterable, Sendable {
    case deviceID = "device_id"
    case recipient, surface, topic, kind, scope, token, environment
    case registeredAt = "registered_at"
  }

  /// A value as it is bound; what is absent keeps the column's default.
  package enum Value: Equatable, Sendable {
    case integer(Int64)
    case text(String)
  }

  /// Inserts one nudge with just the given columns, and returns its id once it is committed.
  package static func send(
    _ row: [OutboxColumn: Value], databaseAt path: String
  ) throws(DatabaseFault) -> Int64 {
    let columns = OutboxColumn.allCases.filter { row[$0] != nil }
    return try write(
      into: "nudge_outbox", columns.map { ($0.rawValue, row[$0]) }, databaseAt: path)
  }

  /// Inserts one registration; the view's words come back as a `.refused` fault.
  package static func register(
    _ row: [RegistrationColumn: Value], databaseAt path: String
  ) throws(DatabaseFault) {
    let columns = RegistrationColumn.allCases.filter { row[$0] != nil }
    // An insert needs a column; the view says what is wrong with a registration without a device.
    let named = columns.isEmpty ? [.deviceID] : columns
    _ = try write(
      into: "nudge_registration", named.map { ($0.rawValue, row[$0]) }, databaseAt: path)
  }

  private static func write(
    into table: String, _ columns: [(name: String, value: Value?)], databaseAt path: String
  ) throws(DatabaseFault) -> Int64 {
    let database = try DatabaseFile.open(path)
    try Migration.check(database)
    do throws(SQLiteError) {
      let names = columns.map(\.name).joined(separator: ", ")
      let places = columns.indices.map { "?\($0 + 1)" }.joined(separator: ", ")
      let statement = try database.prepare(
        columns.isEmpty
          ? "insert into \(table) default values" : "insert into \(table) (\(names)) values (\(places))")
      for (index, column) in columns.enumerated() {
        switch column.value {
        case .integer(let integer): statement.bind(Int32(index + 1), integer)
        case .text(let text): statement.bind(Int32(index + 1), text)
        case nil: statement.bind(Int32(index + 1), nil as Int64?)
        }
      }
      try statement.run()
      return database.lastInsertedID
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }
}
