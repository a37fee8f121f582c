import SQLite

extension Backend {
  /// A registered device with its tokens.
  package struct Device: Equatable, Sendable {
    package var id: String
    package var recipient: String
    package var surface: String
    package var topic: String
    /// By kind, then scope; empty for a device that has registered none.
    package var tokens: [Token]
  }

  /// One token of a device; times are milliseconds since 1970 UTC.
  package struct Token: Equatable, Sendable {
    package var kind: String
    /// The attributes type or activity id that an activity's token serves; empty for others.
    package var scope: String
    /// Lower-case hex.
    package var token: String
    /// `production`, `sandbox`, or nil while it is not known.
    package var environment: String?
    /// When an accepted push proved the environment.
    package var provenAt: Int64?
    package var registeredAt: Int64?
    /// When every host had called the token bad: it is set aside.
    package var rejectedAt: Int64?
  }

  /// All devices in the order of recipient and device id.
  package static func devices(databaseAt path: String) throws(DatabaseFault) -> [Device] {
    let database = try DatabaseFile.open(path)
    try Migration.check(database)
    do throws(SQLiteError) {
      let statement = try database.prepare(
        """
        select d.device_id, d.recipient, d.surface, d.topic,
          t.kind, t.scope, t.token, t.environment, t.proven_at, t.registered_at, t.rejected_at
        from nudge_device d left join nudge_token t on t.device_id = d.device_id
        order by d.recipient, d.device_id, t.kind, t.scope
        """)
      var devices: [Device] = []
      while try statement.step() {
        let id = statement.string(0) ?? ""
        if devices.last?.id != id {
          devices.append(
            Device(
              id: id, recipient: statement.string(1) ?? "", surface: statement.string(2) ?? "",
              topic: statement.string(3) ?? "", tokens: []))
        }
        guard let token = statement.string(6) else { continue }
        devices[devices.count - 1].tokens.append(
          Token(
            kind: statement.string(4) ?? "", scope: statement.string(5) ?? "", token: token,
            environment: statement.string(7), provenAt: statement.optionalInteger(8),
            registeredAt: statement.optionalInteger(9), rejectedAt: statement.optionalInteger(10)))
      }
      return devices
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }
}
