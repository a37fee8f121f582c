import SQLite

/// What others have done to the database under a running worker, so that its store must not go on.
package enum Change {
  /// The tables are not those that this program knows, in words.
  case schema(DatabaseFault)
  /// Another state of the database was put into its place (`.restore`): what the store remembers of attempts
  /// is not what stands in there.
  case restored
}

/// How far the store has judged what others commit.
struct Judged {
  /// `pragma data_version` of the last commit that was looked at.
  var dataVersion: Int64
  /// `pragma schema_version` of the schema that was found right: every change of the schema changes it
  /// (https://www.sqlite.org/fileformat2.html#schema_cookie).
  var schemaVersion: Int64
}

extension Store {
  /// Throws, and remembers the `change`, when the database is not any more what this store has opened; the first
  /// thing in each write transaction, so that nothing is written on the strength of an index that is gone.
  ///
  /// It costs a look at `pragma data_version`, and a few reads after somebody else's commit.
  func requireOurs(in transaction: inout Transaction) throws(SQLiteError) {
    try judge()
    // The words reach nobody: `change` says more.
    if change != nil { throw SQLiteError(code: Store.changedCode, message: "database schema has changed") }
  }

  /// Judges what others have committed since the last call, outside of a write transaction.
  package func judgeCommits() throws(SQLiteError) {
    try database.execute("begin")
    defer { try? database.execute("commit") }
    try judge()
  }

  /// After a statement failed: finds out whether the schema is to blame.
  package func judgeSchema() {
    do throws(DatabaseFault) {
      try Migration.check(database)
    } catch {
      if error.kind == .malformed { change = .schema(error) }
    }
  }

  /// Fires triggers only where somebody has added one to our tables.
  ///
  /// None of our own says anything about what the worker writes, and an UPDATE of a table that has one cannot change
  /// the rows while it finds them.
  static func heedTriggers(_ database: borrowing Database) throws(SQLiteError) {
    let foreign = try database.integer(
      """
      select count(*) from sqlite_master where type = 'trigger' and lower(tbl_name) glob 'nudge_*' and name not in
        ('nudge_outbox_insert', 'nudge_outbox_cancel', 'nudge_device_delete', 'nudge_registration_insert')
      """)
    database.fireTriggers(foreign != 0)
  }

  /// Lets the files stay as they are when this store goes.
  package func leaveFilesOnClose() { database.leaveFilesOnClose() }

  /// SQLITE_SCHEMA.
  private static let changedCode: Int32 = 17

  private func judge() throws(SQLiteError) {
    let dataVersion = try statements.dataVersion.value()
    guard dataVersion != judged.dataVersion else { return }
    let schemaVersion = try statements.schemaVersion.value()
    var isSameSchema = schemaVersion == judged.schemaVersion
    // A version alone is a row, and no change of the schema.
    if isSameSchema { isSameSchema = try statements.newestVersion.value() == Migration.newestVersion }
    if !isSameSchema {
      do throws(DatabaseFault) {
        try Migration.check(database)
      } catch {
        // Any other fault is the reading's, not the schema's: the next look meets it again.
        if error.kind == .malformed { change = .schema(error) }
        return
      }
      try Store.heedTriggers(database)
    }
    // Nobody else writes attempts and the low-water mark.
    let mark = try statements.lowWater.value()
    let highestAttempt = try statements.highestAttempt.value()
    if mark != lowWater || highestAttempt >= nextAttemptID {
      change = .restored
      return
    }
    judged = Judged(dataVersion: dataVersion, schemaVersion: schemaVersion)
  }
}

extension Statement {
  /// Runs a statement for the one integer that it returns; 0 for NULL or no row.
  fileprivate func value() throws(SQLiteError) -> Int64 {
    defer { reset() }
    return try step() ? integer(0) : 0
  }
}
