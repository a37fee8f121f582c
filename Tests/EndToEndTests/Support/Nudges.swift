import Foundation

/// What tests write into and read from the `nudge_` tables.
extension Backend {
  static let topic = "app.example.chat"

  /// The app registers: NULL where nothing is given, as a backend would pass on what the app sent.
  func register(
    _ device: String, token: String?, environment: String? = nil, recipient: String? = nil,
    surface: String? = nil, topic: String? = Backend.topic, kind: String? = nil, scope: String? = nil,
    registeredAt: Int64? = nil
  ) throws {
    try run(
      """
      insert into nudge_registration
        (device_id, recipient, surface, topic, kind, scope, token, environment, registered_at)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        Value(device), Value(recipient), Value(surface), Value(topic), Value(kind), Value(scope),
        Value(token),
        Value(environment), Value(registeredAt),
      ])
  }

  /// Commits a nudge and returns its id.
  @discardableResult
  func nudge(_ columns: KeyValuePairs<String, Value> = ["title": "Hello", "body": "Are you there?"]) throws
    -> Int64
  {
    try insert("nudge_outbox", columns)
  }

  func row(_ nudge: Int64) throws -> Row {
    guard let row = try run("select * from nudge_outbox where id = ?", [.integer(nudge)]).first else {
      throw Failure("nudge \(nudge) is gone")
    }
    return row
  }

  func state(_ nudge: Int64) throws -> String {
    try row(nudge)["state"].text ?? "NULL"
  }

  func attempts(_ nudge: Int64) throws -> [Row] {
    try run("select * from nudge_attempt where nudge_id = ? order by id", [.integer(nudge)])
  }

  /// The outcomes of a nudge's attempts in order; `open` for one in flight.
  func outcomes(_ nudge: Int64) throws -> [String] {
    try attempts(nudge).map { $0["outcome"].text ?? "open" }
  }

  func tokens(_ device: String? = nil) throws -> [Row] {
    try run("select * from nudge_token where ?1 is null or device_id = ?1 order by token", [Value(device)])
  }

  /// A nudge and its attempts in words, for a failure's message.
  func describe(_ nudge: Int64) -> String {
    guard let row = try? row(nudge) else { return "no nudge \(nudge)" }
    return "\(row["state"]), \(row["detail"]); attempts: \((try? attempts(nudge)) ?? [])"
  }

  /// Waits until the nudge is settled as `state` and none of its attempts is in flight any more: a row is `attempted`
  /// as soon as nothing is left to be tried.
  func settled(_ nudge: Int64, as state: String = "attempted", within limit: Duration = .seconds(15))
    async throws
  {
    try await eventually(
      "nudge \(nudge) is \(state)", within: limit,
      state: { describe(nudge) }
    ) {
      // One statement, so one snapshot: between two a claimed row may become pending again.
      try value(
        """
        select state = ? and not exists (
          select 1 from nudge_attempt where nudge_id = nudge_outbox.id and outcome is null)
        from nudge_outbox where id = ?
        """, [.text(state), .integer(nudge)]) == 1
    }
  }

  /// Commits a nudge, waits until it has been attempted, and returns its id.
  @discardableResult
  func send(
    _ columns: KeyValuePairs<String, Value> = ["title": "Hello"], within limit: Duration = .seconds(15)
  ) async throws -> Int64 {
    let id = try nudge(columns)
    try await settled(id, within: limit)
    return id
  }

  /// How many rows are in each state, and under `in flight` how many attempts have no outcome yet, if any.
  func states() throws -> [String: Int] {
    let rows = try run(
      """
      select state, count(*) as count from nudge_outbox group by state
      union all select 'in flight', count(*) from nudge_attempt where outcome is null having count(*) > 0
      """)
    var states: [String: Int] = [:]
    for row in rows { states[row["state"].text ?? "NULL"] = row["count"].integer.map { Int($0) } }
    return states
  }
}

/// A token as a phone reports it: 64 hex digits, the same for the same number.
func token(_ number: Int) -> String {
  let digits = String(number, radix: 16)
  return "c0ffee" + String(repeating: "0", count: 58 - digits.count) + digits
}

/// Wall time in milliseconds since 1970, plus `milliseconds`.
func now(plus milliseconds: Int64 = 0) -> Int64 {
  Int64(Date().timeIntervalSince1970 * 1000) + milliseconds
}
