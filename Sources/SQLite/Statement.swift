import CSQLite

/// A compiled SQL statement, bound and stepped by one thread and kept for reuse.
///
/// Parameters are numbered from 1, columns from 0, as in SQLite. The corresponding C functions are
/// `sqlite3_bind_*`, `sqlite3_step`, `sqlite3_column_*` and `sqlite3_reset`.
@safe package final class Statement {
  let handle: OpaquePointer
  let connection: OpaquePointer

  init(_ handle: OpaquePointer, connection: OpaquePointer) {
    unsafe self.handle = handle
    unsafe self.connection = connection
  }

  deinit {
    unsafe sqlite3_finalize(handle)
  }

  /// The text that it was compiled from (`sqlite3_sql`).
  package var sql: String { unsafe sqlite3_sql(handle).map { unsafe String(cString: $0) } ?? "" }

  // MARK: Running

  /// Moves to the next row; false when there is none, and then the statement is reset by itself.
  package func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE:
      unsafe sqlite3_reset(handle)
      return false
    default:
      let error = unsafe SQLiteError.current(of: connection)
      unsafe sqlite3_reset(handle)
      throw error
    }
  }

  /// Runs a statement to its end, any rows unread.
  package func run() throws(SQLiteError) {
    while try step() {}
  }

  /// Ends a run before its last row. An unfinished statement would pin a snapshot and hold back checkpoints.
  package func reset() {
    unsafe sqlite3_reset(handle)
  }

  // MARK: Parameters

  /// Binds an integer, or NULL for nil.
  package func bind(_ index: Int32, _ value: Int64?) {
    if let value {
      unsafe sqlite3_bind_int64(handle, index, value)
    } else {
      unsafe sqlite3_bind_null(handle, index)
    }
  }

  /// Binds text, or NULL for nil; SQLite keeps a copy.
  package func bind(_ index: Int32, _ value: String?) {
    guard var value else {
      unsafe sqlite3_bind_null(handle, index)
      return
    }
    value.withUTF8 { bytes in
      unsafe bindText(index, UnsafeRawBufferPointer(bytes))
    }
  }

  /// Binds UTF-8 bytes as text; SQLite keeps a copy.
  package func bind(_ index: Int32, _ value: Span<UInt8>) {
    unsafe value.withUnsafeBytes { bytes in
      unsafe bindText(index, bytes)
    }
  }

  /// Binds an array of UTF-8 bytes as text; SQLite keeps a copy.
  package func bind(_ index: Int32, _ value: [UInt8]) {
    unsafe value.withUnsafeBytes { bytes in
      unsafe bindText(index, bytes)
    }
  }

  private func bindText(_ index: Int32, _ bytes: UnsafeRawBufferPointer) {
    // SQLITE_TRANSIENT: the bytes are the caller's and may go after this call.
    let transient = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    // A nil base address would bind NULL where the text is merely empty.
    unsafe withUnsafePointer(to: 0 as UInt8) { empty in
      let start = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
      let fallback = unsafe UnsafeRawPointer(empty).assumingMemoryBound(to: CChar.self)
      unsafe sqlite3_bind_text(handle, index, start ?? fallback, Int32(clamping: bytes.count), transient)
    }
  }

  // MARK: Columns of the current row

  /// The storage class of a value (https://www.sqlite.org/datatype3.html), not the column's declared type.
  package enum StorageClass: Sendable {
    case null, integer, real, text, blob
  }

  /// What the column holds in this row.
  package func storageClass(_ column: Int32) -> StorageClass {
    switch unsafe sqlite3_value_type(value(column)) {
    case SQLITE_NULL: .null
    case SQLITE_INTEGER: .integer
    case SQLITE_FLOAT: .real
    case SQLITE_BLOB: .blob
    default: .text
    }
  }

  /// Whether the column is NULL.
  package func isNull(_ column: Int32) -> Bool {
    unsafe sqlite3_value_type(value(column)) == SQLITE_NULL
  }

  /// The column as an integer; other storage classes are converted by SQLite's rules.
  package func integer(_ column: Int32) -> Int64 {
    unsafe sqlite3_column_int64(handle, column)
  }

  /// The column as an integer, nil for NULL.
  package func optionalInteger(_ column: Int32) -> Int64? {
    isNull(column) ? nil : integer(column)
  }

  /// The column as a floating-point number; other storage classes are converted by SQLite's rules.
  package func real(_ column: Int32) -> Double {
    unsafe sqlite3_column_double(handle, column)
  }

  /// The bytes of the column as SQLite stores them (text in UTF-8, a blob as it is, empty for NULL).
  ///
  /// Nothing is cut at a NUL byte and nothing is checked. The span borrows SQLite's own memory: it is good
  /// until the next `step` or `reset` of this statement.
  @_lifetime(borrow self)
  package func bytes(_ column: Int32) -> Span<UInt8> { unsafe bytes(of: value(column)) }

  /// The same; nil for NULL.
  @_lifetime(borrow self)
  package func optionalBytes(_ column: Int32) -> Span<UInt8>? {
    let value = unsafe value(column)
    guard unsafe sqlite3_value_type(value) != SQLITE_NULL else { return nil }
    return unsafe bytes(of: value)
  }

  @_lifetime(borrow self)
  private func bytes(of value: OpaquePointer?) -> Span<UInt8> {
    // The pointer first, then the length: the order that the manual asks for.
    let start =
      unsafe sqlite3_value_type(value) == SQLITE_BLOB
      ? sqlite3_value_blob(value) : UnsafeRawPointer(sqlite3_value_text(value))
    let count = unsafe Int(sqlite3_value_bytes(value))
    let buffer = unsafe UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : count)
    return unsafe _overrideLifetime(
      Span(_unsafeElements: buffer.assumingMemoryBound(to: UInt8.self)), borrowing: self)
  }

  /// The column as a string, nil for NULL; invalid UTF-8 is repaired with U+FFFD.
  package func string(_ column: Int32) -> String? {
    guard let bytes = optionalBytes(column) else { return nil }
    return unsafe bytes.withUnsafeBufferPointer { buffer in
      unsafe String(decoding: buffer, as: UTF8.self)
    }
  }

  /// The column's value, good until the next `step` or `reset`.
  ///
  /// It is "unprotected", which asks for one thread, and spares each look at it the checks of `sqlite3_column_*`
  /// (https://www.sqlite.org/c3ref/column_blob.html).
  private func value(_ column: Int32) -> OpaquePointer? {
    unsafe sqlite3_column_value(handle, column)
  }
}
