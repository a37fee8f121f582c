import Outbox

/// Runs the worker on one database until it is told to stop, or, with `drain`, until nothing is due.
///
/// Returns the exit code; throws what keeps it from working, in words for a person.
package func runWorker(
  _ configuration: Configuration, readKey: @escaping Keys.Reader, notify: Notify, clock: Clock = .system,
  log: Log
) throws(Failure) -> ExitCode {
  let keys = try Keys(configuration, read: readKey)
  let signals = try Signals()
  let patience = Patience(signals: signals, notify: notify, clock: clock)
  while true {
    guard let place = try openPlace(configuration, hosts: keys.hosts(), patience, log: log) else {
      log.notice("stopped")
      return .success
    }
    switch try run(place, configuration, keys: keys, patience, log: log) {
    case .stopped:
      log.notice("stopped")
      return .success
    case .drained:
      return .success
    case .leftRows(let words):
      log.error("rows are left", ["reason": words])
      return .unavailable
    case .databaseReplaced(let leftovers):
      log.notice("database was replaced: opening the new file", ["file": configuration.database])
      guard let leftovers else { break }
      guard try putAside(leftovers, configuration, patience, log: log) else { return .success }
    case .databaseRestored:
      log.notice("database was restored: starting over", ["file": configuration.database])
    case .databaseBarred:
      break
    case .databaseMissing:
      throw Failure(
        .noDatabase,
        "\(configuration.database) was deleted while the worker ran: put it back, then start again")
    }
  }
}

/// Waiting for something to be put right, which a signal to stop ends; the service manager hears of it.
private struct Patience {
  let signals: Signals
  let notify: Notify
  let clock: Clock

  /// Waits a second; true when told to stop.
  func wait(_ words: String) throws(Failure) -> Bool {
    let end = clock.now() + .seconds(1)
    while true {
      let now = clock.now()
      notify.turn(now: now)
      notify.show("waiting: \(words)", now: now)
      guard now < end else { return false }
      if try signals.wait(min(end, notify.deadline ?? end) - now) {
        notify.announceStopping()
        return true
      }
    }
  }
}

/// What one life of the worker has to itself: the lock, and the database behind it.
private struct Place: ~Copyable {
  let lock: WorkerLock
  let store: Store
  let hosts: [Host]

  init(_ configuration: Configuration, hosts: [Host]) throws(Unavailable) {
    let lock = try Place.lock(configuration.database)
    let store: Store
    do throws(DatabaseFault) {
      store = try Store(
        path: lock.databasePath, environments: hosts.map(\.environment.rawValue),
        expireAfter: configuration.expireAfter.milliseconds,
        patience: configuration.drain ? DatabaseFile.patience : .milliseconds(500))
    } catch {
      throw Unavailable(failure: Failure(error), mayPass: error.mayPass)
    }
    self.lock = lock
    self.store = store
    self.hosts = hosts
  }

  private static func lock(_ database: String) throws(Unavailable) -> WorkerLock {
    do throws(WorkerLock.Fault) {
      return try WorkerLock(databasePath: database)
    } catch {
      throw Unavailable(error, database: database)
    }
  }
}

/// Why the database cannot be served now.
private struct Unavailable: Error {
  let failure: Failure
  /// Whether it may be put right while the worker waits.
  let mayPass: Bool
}

/// Takes the lock and opens the database; nil when the worker was told to stop.
///
/// What can be put right from outside (permissions, a foreign lock, a full disk) is waited for, with one message:
/// whoever repairs it has not to think of the worker too. `--drain` is for scripts and fails at once.
private func openPlace(
  _ configuration: Configuration, hosts: [Host], _ patience: Patience, log: Log
) throws(Failure) -> Place? {
  var said: String?
  while true {
    do throws(Unavailable) {
      let place = try Place(configuration, hosts: hosts)
      if said != nil { log.notice("database can be used again", ["file": configuration.database]) }
      return place
    } catch {
      guard error.mayPass && !configuration.drain else { throw error.failure }
      if said != error.failure.message {
        said = error.failure.message
        log.error("database cannot be used: nothing is sent until it can", ["reason": error.failure.message])
      }
      if try patience.wait(error.failure.message) { return nil }
    }
  }
}

/// Makes sure that a replaced database's log is not taken for the new file's; false when told to stop.
private func putAside(
  _ stale: StaleLog, _ configuration: Configuration, _ patience: Patience, log: Log
) throws(Failure) -> Bool {
  var said: String?
  while !stale.isGone {
    do throws(StaleLog.Obstacle) {
      if let path = try stale.putAside() {
        log.warning("the old file's write-ahead log was moved aside", ["file": path])
      }
      return true
    } catch {
      if said != error.words {
        said = error.words
        log.error(
          "the old file's write-ahead log would be mixed into the new file: nothing is sent until it is gone",
          ["file": stale.path, "reason": error.words])
      }
      if try patience.wait("\(stale.path): \(error.words)") {
        log.notice("stopped")
        return false
      }
    }
  }
  return true
}

/// One life of the worker with one database file.
private func run(
  _ place: borrowing Place, _ configuration: Configuration, keys: Keys, _ patience: Patience, log: Log
) throws(Failure) -> Wheel.End {
  let wheel = try Wheel(
    configuration, hosts: place.hosts, store: place.store,
    watch: DatabaseWatch(
      path: place.lock.databasePath, given: configuration.database, pollInterval: configuration.pollInterval,
      isBlind: configuration.drain),
    poller: try Poller(), signals: patience.signals, keys: keys, notify: patience.notify,
    clock: patience.clock,
    log: log)
  log.notice(
    "worker started",
    ["database": place.lock.databasePath, "hosts": place.hosts.map(\.name).joined(separator: ",")])
  // What has happened to the keys before there was a wheel; and from here on the worker is up.
  wheel.reloadKeys(isAsked: false)
  return try wheel.run()
}

extension Unavailable {
  /// Why the worker may not have the database, in words.
  init(_ fault: WorkerLock.Fault, database: String) {
    switch fault {
    case .held(let pid):
      let holder = pid > 0 ? "the worker with pid \(pid)" : "another worker"
      failure = Failure(
        .alreadyRunning, "\(database) is held by \(holder): one worker serves a database; stop that one first"
      )
      mayPass = false
    case .noDatabase:
      failure = Failure(.noDatabase, "there is no database \(database): nudged never creates one")
      mayPass = false
    case .file(let path, let words):
      failure = Failure(
        .inputOutput,
        "cannot write the lock file \(path): \(words); the worker needs to write the database's folder: "
          + DatabaseFile.obstacle(to: path))
      mayPass = true
    }
  }
}
