import CSQLite

/// One connection to one database file; it is used by one thread and closed when it goes out of scope.
///
/// The corresponding C functions are `sqlite3_open_v2` and `sqlite3_close_v2`.
@safe package struct Database: ~Copyable {
  let handle: OpaquePointer

  /// How a file is opened.
  package enum Access: Sendable {
    /// The file must exist.
    case readWrite
    /// The file must exist and is not written by this connection.
    case readOnly
    /// Reading that leaves no trace: no `-wal` and no `-shm` is made, so both must be there if the journal mode is
    /// WAL (`readonly_shm`, a parameter of SQLite's unix VFS).
    case untouched
    /// Reading without a look at locks and companions, for a file that nobody writes
    /// (https://www.sqlite.org/c3ref/open.html, `immutable`).
    case immutable

    fileprivate var flags: Int32 {
      switch self {
      case .readWrite: SQLITE_OPEN_READWRITE
      case .readOnly: SQLITE_OPEN_READONLY
      case .untouched, .immutable: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
      }
    }

    fileprivate func name(of path: String) -> String {
      switch self {
      case .readWrite, .readOnly: path
      case .untouched: Access.uri(path) + "?readonly_shm=1"
      case .immutable: Access.uri(path) + "?immutable=1"
      }
    }

    /// The path with what a URI gives a meaning written as `%hh` (https://www.sqlite.org/uri.html, 3.1).
    private static func uri(_ path: String) -> String {
      var text = path.hasPrefix("/") ? "file://" : "file:"
      for scalar in path.unicodeScalars {
        switch scalar {
        case "%": text += "%25"
        case "?": text += "%3f"
        case "#": text += "%23"
        default: text.unicodeScalars.append(scalar)
        }
      }
      return text
    }
  }

  /// Opens an existing file; a missing one is an error and is never created.
  ///
  /// - Parameter busyTimeout: how long SQLite itself waits for a lock. The worker passes zero and tries
  ///   again from its loop, since a blocking handler would stop the network too.
  package init(path: String, access: Access = .readWrite, busyTimeout: Duration = .zero) throws(SQLiteError) {
    var opened: OpaquePointer?
    let result = unsafe sqlite3_open_v2(
      access.name(of: path), &opened, access.flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE, nil)
    guard result == SQLITE_OK, let connection = unsafe opened else {
      let error = unsafe SQLiteError.current(of: opened)
      unsafe sqlite3_close_v2(opened)
      throw error
    }
    unsafe handle = connection
    unsafe sqlite3_extended_result_codes(handle, 1)
    waitForLocks(Int32(clamping: busyTimeout.milliseconds))
  }

  deinit {
    unsafe sqlite3_close_v2(handle)
  }

  /// Spares SQLite its mutexes and its count of memory, in a program of which only one thread uses it.
  ///
  /// Has to come before everything else; later it changes nothing (https://www.sqlite.org/threadsafe.html).
  package static func useOneThread() {
    _ = nudged_use_one_thread()
  }

  /// Runs SQL text that may hold several statements and returns no rows (`sqlite3_exec`).
  package func execute(_ sql: String) throws(SQLiteError) {
    guard unsafe sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else {
      throw unsafe .current(of: handle)
    }
  }

  /// Compiles one statement that is meant to be kept and run many times.
  package func prepare(_ sql: String) throws(SQLiteError) -> Statement {
    var prepared: OpaquePointer?
    let result = unsafe sqlite3_prepare_v3(
      handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard result == SQLITE_OK, let statement = unsafe prepared else { throw unsafe .current(of: handle) }
    return unsafe Statement(statement, connection: handle)
  }

  /// The first column of the first row as an integer; nil when there is no row or it is NULL.
  package func integer(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.optionalInteger(0) : nil
  }

  /// The first column of the first row as text; nil when there is no row or it is NULL.
  package func text(_ sql: String) throws(SQLiteError) -> String? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.string(0) : nil
  }

  /// How many rows the last INSERT, UPDATE or DELETE touched, those of triggers not counted.
  package var changes: Int64 { unsafe sqlite3_changes64(handle) }

  /// The rowid of the last row that this connection inserted.
  package var lastInsertedID: Int64 { unsafe sqlite3_last_insert_rowid(handle) }

  /// Whether the file could be opened for reading only, whatever was asked for (`sqlite3_db_readonly`).
  package var isReadOnly: Bool { unsafe sqlite3_db_readonly(handle, "main") == 1 }

  /// Lets the files stay as they are when the connection is closed.
  ///
  /// The last connection to close writes the rest of the write-ahead log into the database and removes the log
  /// (https://www.sqlite.org/c3ref/c_dbconfig_defensive.html#sqlitedbconfignockptonclose): not into a damaged one.
  package func leaveFilesOnClose() {
    unsafe _ = nudged_no_checkpoint_on_close(handle)
  }

  /// Whether statements that are compiled from now on fire triggers; they do unless told otherwise.
  package func fireTriggers(_ isWanted: Bool) {
    unsafe _ = nudged_enable_triggers(handle, isWanted ? 1 : 0)
  }

  /// Frees what the cache of pages holds and does not need (`sqlite3_db_release_memory`).
  package func releaseMemory() {
    _ = unsafe sqlite3_db_release_memory(handle)
  }

  /// How long SQLite itself waits for a lock from now on.
  func waitForLocks(_ milliseconds: Int32) {
    unsafe sqlite3_busy_timeout(handle, milliseconds)
  }

  /// Whether a transaction is open on this connection.
  package var isInTransaction: Bool { unsafe sqlite3_get_autocommit(handle) == 0 }
}
