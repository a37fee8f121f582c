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
  ///
  /// - Parameters:
  ///   - readingFirst: takes the write lock at the first write instead, and until then holds up nobody in WAL mode.
  ///     If somebody has committed between the first read and that write, it fails with an error whose `kind` is
  ///     `.busy`: what was read still holds when something is written (SQLITE_BUSY_SNAPSHOT,
  ///     https://www.sqlite.org/isolation.html).
  ///   - commitPatience: how long COMMIT may wait for readers, on a connection that waits for nothing
  ///   else. Only with a rollback journal do readers hold it up; new ones are kept out meanwhile by the PENDING
  ///   lock, and a rollback would let them in again (https://www.sqlite.org/lockingv3.html#writing).
  package func transaction<Result>(
    readingFirst: Bool = false, commitPatience: Duration? = nil,
    _ body: (inout Transaction) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    try execute(readingFirst ? "begin" : "begin immediate")
    do throws(SQLiteError) {
      var transaction = Transaction()
      let result = try body(&transaction)
      if let commitPatience {
        waitForLocks(Int32(clamping: commitPatience.milliseconds))
        defer { waitForLocks(0) }
        try execute("commit")
      } else {
        try execute("commit")
      }
      return result
    } catch {
      // Some errors (full disk, I/O) have rolled back by themselves already.
      if isInTransaction { try? execute("rollback") }
      throw error
    }
  }
}

extension Duration {
  /// Whole milliseconds, rounded down.
  var milliseconds: Int64 { components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000 }
}
