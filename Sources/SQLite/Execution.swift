import CSQLite

/// One run of a statement with text that SQLite borrows and does not copy (`SQLITE_STATIC`).
///
/// What is bound outlives the run: the compiler holds each span to that. The end of the value resets the
/// statement and forgets its parameters.
@safe package struct Execution: ~Copyable, ~Escapable {
  /// Reads the columns of the current row.
  package let statement: Statement

  @_lifetime(immortal)
  init(_ statement: Statement) { self.statement = statement }

  deinit {
    unsafe sqlite3_reset(statement.handle)
    unsafe sqlite3_clear_bindings(statement.handle)
  }

  /// Moves to the next row; false when there is none.
  package func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(statement.handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw unsafe .current(of: statement.connection)
    }
  }

  /// Binds an integer.
  package mutating func bind(_ index: Int32, _ value: Int64) {
    unsafe sqlite3_bind_int64(statement.handle, index, value)
  }

  /// Binds borrowed UTF-8 bytes as text.
  @_lifetime(self: copy self, copy text)
  package mutating func bind(_ index: Int32, _ text: Span<UInt8>) {
    unsafe text.withUnsafeBytes { bytes in unsafe bind(index, bytes.baseAddress, bytes.count) }
  }

  /// Binds borrowed bytes as a blob, which sorts behind every text, or else as text.
  @_lifetime(self: copy self, copy bytes)
  package mutating func bind(_ index: Int32, _ bytes: Span<UInt8>, asBlob: Bool) {
    unsafe bytes.withUnsafeBytes { bytes in
      guard asBlob else { return unsafe bind(index, bytes.baseAddress, bytes.count) }
      unsafe sqlite3_bind_blob(statement.handle, index, bytes.baseAddress, Int32(clamping: bytes.count), nil)
    }
  }

  /// Binds text that is part of the program.
  package mutating func bind(_ index: Int32, _ text: StaticString) {
    unsafe bind(index, text.utf8Start, text.utf8CodeUnitCount)
  }

  private mutating func bind(_ index: Int32, _ start: UnsafeRawPointer?, _ count: Int) {
    let empty: StaticString = ""
    // A nil address would bind NULL where the text is merely empty.
    let start = unsafe (start ?? UnsafeRawPointer(empty.utf8Start)).assumingMemoryBound(to: CChar.self)
    unsafe sqlite3_bind_text(statement.handle, index, start, Int32(clamping: count), nil)
  }
}

extension Statement {
  /// Begins a run that borrows what is bound to it.
  @_lifetime(immortal)
  package func execution() -> Execution { Execution(self) }
}
