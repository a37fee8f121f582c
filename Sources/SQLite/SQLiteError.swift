import CSQLite

/// What SQLite answered when something did not work: its extended result code and its own words.
///
/// SQL arguments are never part of it, so that it can be logged. Codes: https://www.sqlite.org/rescode.html
package struct SQLiteError: Error, Equatable, CustomStringConvertible {
  /// The extended result code, e.g. `SQLITE_BUSY_SNAPSHOT`.
  package let code: Int32
  /// SQLite's message, e.g. `no such table: nudge_outbox`.
  package let message: String

  package init(code: Int32, message: String) {
    self.code = code
    self.message = message
  }

  /// Reads the error that `handle` holds now; the next call on the connection overwrites it.
  static func current(of handle: OpaquePointer?) -> SQLiteError {
    guard let handle = unsafe handle else {
      return SQLiteError(code: SQLITE_NOMEM, message: "out of memory")
    }
    return unsafe SQLiteError(
      code: sqlite3_extended_errcode(handle), message: String(cString: sqlite3_errmsg(handle)))
  }

  /// The primary result code: the low byte of the extended one.
  package var primaryCode: Int32 { code & 0xff }

  /// What to do about an error, as far as the code decides it.
  package enum Kind: Sendable {
    /// Another connection holds a lock; the same call works once it is gone.
    case busy
    /// The disk is full, or an I/O call failed; may work again later.
    case storage
    /// The file, its folder, `-wal` or `-shm` cannot be written or opened.
    case access
    /// The file is no database, or its content is damaged.
    case malformed
    /// Tables or columns are not what this program expects, or any other misuse.
    case other
  }

  /// The class of the error, by its primary code.
  package var kind: Kind {
    switch primaryCode {
    // PROTOCOL: many connections came to the write-ahead log at once, and "the suggested response is to try again".
    case SQLITE_BUSY, SQLITE_LOCKED, SQLITE_PROTOCOL: .busy
    case SQLITE_FULL, SQLITE_IOERR, SQLITE_NOMEM: .storage
    case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH: .access
    case SQLITE_CORRUPT, SQLITE_NOTADB: .malformed
    default: .other
    }
  }

  package var description: String { "SQLite error \(code): \(message)" }
}
