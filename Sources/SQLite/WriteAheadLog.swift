import CSQLite

/// The write-ahead log of a connection whose COMMIT leaves it as it is, however long it is.
///
/// Otherwise a COMMIT that finds 1,000 pages there moves them into the database before it returns
/// (https://www.sqlite.org/wal.html#ckpt), although nobody who waits for the commit has to wait for that.
@safe package final class WriteAheadLog {
  private let connection: OpaquePointer
  /// How many pages it holds, as of the last commit of this connection.
  private var pages: Int32 = 0

  /// The length from which on a checkpoint is worth its while: SQLite's own.
  private static let long: Int32 = 1000

  /// Lives as long as the connection.
  package init(of database: borrowing Database) {
    unsafe connection = database.handle
    unsafe sqlite3_wal_hook(
      connection,
      { log, _, _, pages in
        guard let log = unsafe log else { return SQLITE_OK }
        unsafe Unmanaged<WriteAheadLog>.fromOpaque(log).takeUnretainedValue().pages = pages
        return SQLITE_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  /// Moves into the database what nobody reads in the log any more, if that is long. It waits for nobody and nobody
  /// waits for it; what cannot be done is left for the next time, as SQLite itself does.
  package func checkpointIfLong() {
    guard pages >= WriteAheadLog.long else { return }
    pages = 0
    unsafe _ = sqlite3_wal_checkpoint_v2(connection, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
  }
}
