/// The proof that a write transaction is open: what must happen inside one takes it `inout`.
///
/// It cannot be copied or stored, so it cannot outlive the body that it was handed to.
package struct Transaction: ~Copyable {
  fileprivate init() {}
}

extension Database {
  /// Runs `body` inside `begin immediate` and commits; any error rolls all of it back and is thrown on.
  ///
  /// `immediate` takes the write lock at once: a transaction that reads first and writes later fails with
  /// "database is locked" at its first write, whatever the busy timeout
  /// (https://www.sqlite.org/lang_transaction.html). An error whose `kind` is `.busy` says that another
  /// connection holds the lock and that nothing happened.
  package func transaction<Result>(
    _ body: (inout Transaction) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    try execute("begin immediate")
    do throws(SQLiteError) {
      var transaction = Transaction()
      let result = try body(&transaction)
      try execute("commit")
      return result
    } catch {
      // Some errors (full disk, I/O) have rolled back by themselves already.
      if isInTransaction { try? execute("rollback") }
      throw error
    }
  }
}
