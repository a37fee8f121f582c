import Outbox

// When the database does not let us: what was answered stays in hand, and nothing is claimed until it does.

extension Wheel {
  /// A transaction went through.
  func recovered() {
    isBarred = false
    if databaseTrouble != nil {
      databaseTrouble = nil
      log.notice("database can be written again", ["file": configuration.database])
    }
  }

  /// A look or a transaction failed, and nothing of it has happened.
  func failed(_ error: StoreError) throws(Failure) {
    // Whatever it was that failed, this is why; `changeByOthers` says so.
    guard store.change == nil else { return }
    switch error.kind {
    case .busy: lock.tryLater(now: clock.now())
    case .storage, .access:
      lock.leave(until: clock.now() + .seconds(1))
      // The file may have gone from under the connection.
      nextPoll = now
      let words = DatabaseFile.explain(error, path: watch.path).message
      if databaseTrouble != words {
        databaseTrouble = words
        log.error("database cannot be written: nothing is sent until it can", ["reason": words])
      }
      // What SQLite could open for reading only stays so for as long as it is open.
      isBarred = error.primaryCode == Wheel.readOnlyCode
    case .malformed:
      store.leaveFilesOnClose()
      throw Failure(
        .malformedDatabase,
        "\(configuration.database) is damaged (\(error.message)): restore it from a backup, then start again")
    case .other:
      store.judgeSchema()
      guard store.change == nil else { return }
      throw Failure(
        .malformedDatabase,
        "the nudge tables in \(configuration.database) are not what this program expects (\(error.message)): "
          + "run `nudged migrate`, or restore what was changed in them")
    }
  }

  /// SQLITE_READONLY (https://www.sqlite.org/rescode.html#readonly).
  private static let readOnlyCode: Int32 = 8

  /// Whether others have done to the database what this wheel cannot go on with.
  func changeByOthers() throws(Failure) -> End? {
    switch store.change {
    case .schema(let fault): throw Failure(fault)
    case .restored: return .databaseRestored
    case nil: return isBarred && dispatch.inFlight.isEmpty && finishes.isEmpty ? .databaseBarred : nil
    }
  }

  /// Whether the wall clock was set since the last turn, by more than what keeping it in step with others does.
  ///
  /// Everything that was planned by it is planned anew: rows that became due or not, pauses of a device.
  func noticeClockStep() {
    let step = wall - compared.wall - (now - compared.now).milliseconds
    compared = (now, wall)
    guard abs(step) > 1000 else { return }
    log.notice("the clock was set", ["step": "\(step)ms"])
    store.scan.restart()
    nextTime = nil
    mayHaveWork = true
  }
}
