import SQLite

/// Putting the `nudge_` tables into a backend's database, taking them out again, and knowing them.
///
/// The SQL is that of `migrations/`, embedded; each file may also be fed to the `sqlite3` shell by hand.
package enum Migration {
  /// One file of `migrations/`.
  private struct Step {
    let version: Int64
    let sql: String
  }

  private static let steps = [
    Step(version: 1, sql: String(decoding: PackageResources._001_initial_sql, as: UTF8.self))
  ]

  /// The schema version that this program works with.
  package static var newestVersion: Int64 { steps.last?.version ?? 0 }

  /// Brings the database to the newest version and returns the versions that were applied, oldest first.
  ///
  /// Look, apply and check are one write transaction: a second program that migrates at the same time waits
  /// and then finds nothing to do, and after any error the file is as it was.
  package static func apply(
    databaseAt path: String, busyTimeout: Duration = DatabaseFile.patience
  ) throws(DatabaseFault) -> [Int64] {
    let database = try DatabaseFile.open(path, busyTimeout: busyTimeout)
    do throws(Interruption) {
      return try exclusively(database) { database throws(Interruption) in
        let present = try query { () throws(SQLiteError) in try version(of: database) } ?? 0
        try refuseNewer(present)
        let missing = steps.filter { $0.version > present }
        for step in missing { try run(step.sql, on: database) }
        try refuse(try query { () throws(SQLiteError) in try condition(of: database) }, path: path)
        return missing.map(\.version)
      }
    } catch {
      throw error.fault(path: path)
    }
  }

  /// Takes every `nudge_` table, trigger, index and view of ours out again; false when there was none.
  package static func remove(
    databaseAt path: String, busyTimeout: Duration = DatabaseFile.patience
  ) throws(DatabaseFault) -> Bool {
    let database = try DatabaseFile.open(path, busyTimeout: busyTimeout)
    do throws(Interruption) {
      return try exclusively(database) { database throws(Interruption) in
        guard let present = try query({ () throws(SQLiteError) in try version(of: database) }) else {
          return false
        }
        // What a newer program added is not in this program's list.
        try refuseNewer(present)
        try run(String(decoding: PackageResources.remove_sql, as: UTF8.self), on: database)
        return true
      }
    } catch {
      throw error.fault(path: path)
    }
  }

  /// Throws unless the tables are there, at exactly the version this program knows, with all their parts.
  ///
  /// A column that someone else added is fine, a missing one is not.
  package static func check(_ database: borrowing Database) throws(DatabaseFault) {
    var path = "the database"
    do throws(Interruption) {
      path =
        try query { () throws(SQLiteError) in
          try database.text("select file from pragma_database_list where name = 'main'")
        } ?? path
      try refuse(try query { () throws(SQLiteError) in try condition(of: database) }, path: path)
    } catch {
      throw error.fault(path: path)
    }
  }

  // MARK: Versions

  /// The version that the database says it has; nil without the bookkeeping table.
  private static func version(of database: borrowing Database) throws(SQLiteError) -> Int64? {
    let table = try database.integer(
      "select 1 from sqlite_master where type = 'table' and name = 'nudge_schema'")
    guard table != nil else { return nil }
    return try database.integer("select max(version) from nudge_schema") ?? 0
  }

  private static func refuseNewer(_ present: Int64) throws(Interruption) {
    if present > newestVersion { try refuse(.newer(present), path: "") }
  }

  // MARK: Condition

  /// How the tables of a database stand to this program.
  package enum Condition: Equatable, Sendable {
    /// They are there, at exactly the version this program knows, with all their parts.
    case current
    case absent
    case older(Int64)
    case newer(Int64)
    /// The first part that is not there, e.g. `column nudge_outbox.state`.
    case lacking(String)
  }

  /// Looks at version and parts. A column that someone else added is fine, a missing one is not.
  ///
  /// What has to be there is read from a fresh schema in memory, so that no second list can fall behind.
  package static func condition(of database: borrowing Database) throws(SQLiteError) -> Condition {
    guard let present = try version(of: database), present > 0 else { return .absent }
    guard present == newestVersion else { return present > newestVersion ? .newer(present) : .older(present) }
    let fresh = try Database(path: ":memory:")
    for step in steps { try fresh.execute(step.sql) }
    let found = Set(try parts(of: database))
    return try parts(of: fresh).first { !found.contains($0) }.map(Condition.lacking) ?? .current
  }

  private static func refuse(_ condition: Condition, path: String) throws(Interruption) {
    let words: String
    switch condition {
    case .current: return
    case .absent: words = "no nudge tables in \(path): run `nudged migrate --database \(path)`"
    case .older(let version):
      words =
        "schema version \(version) of \(path) is older than this program's (\(newestVersion)): "
        + "run `nudged migrate --database \(path)`"
    case .newer(let version):
      words = "schema version \(version) is newer than this program knows (\(newestVersion)): upgrade nudged"
    case .lacking(let part):
      words = "the nudge schema was changed: \(part) is missing; put it back as migrations/ has it"
    }
    throw .fault(DatabaseFault(.malformed, words))
  }

  /// `table nudge_outbox`, `column nudge_outbox.state`, `unique index nudge_... (...)`, `trigger nudge_...`.
  ///
  /// An index counts with its columns: two of them are the guarantee that nothing is sent twice.
  private static func parts(of database: borrowing Database) throws(SQLiteError) -> [String] {
    let statement = try database.prepare(
      """
      select type || ' ' || name from sqlite_master where name glob 'nudge_*' and type <> 'index'
      union all
      select 'column ' || m.name || '.' || c.name
      from sqlite_master m, pragma_table_info(m.name) c
      where m.name glob 'nudge_*' and m.type = 'table'
      union all
      select case when i."unique" then 'unique index ' else 'index ' end || i.name || ' ('
        || (select group_concat(name, ', ') from pragma_index_info(i.name)) || ')'
      from sqlite_master m, pragma_index_list(m.name) i
      where m.name glob 'nudge_*' and m.type = 'table' and i.name glob 'nudge_*'
      """)
    var parts: [String] = []
    while try statement.step() { parts.append(statement.string(0) ?? "") }
    return parts.sorted { (rank($0), $0) < (rank($1), $1) }
  }

  /// A lost table is named before its columns, a lost view before its trigger, any before what is built on it.
  private static func rank(_ part: String) -> Int {
    ["table ", "column ", "view "].firstIndex { part.hasPrefix($0) } ?? 3
  }

  // MARK: Running

  /// Either error that can end the work inside the transaction.
  private enum Interruption: Error {
    case sqlite(SQLiteError)
    case fault(DatabaseFault)

    func fault(path: String) -> DatabaseFault {
      switch self {
      case .sqlite(let error): DatabaseFile.explain(error, path: path)
      case .fault(let fault): fault
      }
    }
  }

  private static func query<Value>(
    _ body: () throws(SQLiteError) -> Value
  ) throws(Interruption) -> Value {
    do throws(SQLiteError) { return try body() } catch { throw .sqlite(error) }
  }

  /// Runs `body` in one write transaction that is rolled back by any error.
  private static func exclusively<Value>(
    _ database: borrowing Database, _ body: (borrowing Database) throws(Interruption) -> Value
  ) throws(Interruption) -> Value {
    try query { () throws(SQLiteError) in try database.execute("begin immediate") }
    do throws(Interruption) {
      let value = try body(database)
      try query { () throws(SQLiteError) in try database.execute("commit") }
      return value
    } catch {
      if database.isInTransaction { try? database.execute("rollback") }
      throw error
    }
  }

  /// Runs a file of `migrations/` inside the open transaction.
  private static func run(_ sql: String, on database: borrowing Database) throws(Interruption) {
    let body = withoutTransaction(sql)
    try query { () throws(SQLiteError) in try database.execute(body) }
  }

  /// The text without the lines `begin immediate;` and `commit;` that make it whole for the shell.
  private static func withoutTransaction(_ sql: String) -> String {
    sql.split(separator: "\n", omittingEmptySubsequences: false)
      .filter { $0 != "begin immediate;" && $0 != "commit;" }
      .joined(separator: "\n")
  }
}
