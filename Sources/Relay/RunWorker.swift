import APNs
import Outbox

/// Runs the worker on one database until it is told to stop, or, with `drain`, until nothing is due.
///
/// Returns the exit code; throws what keeps it from working, in words for a person.
package func runWorker(_ configuration: Configuration, clock: Clock = .system, log: Log) throws(Failure)
  -> ExitCode
{
  let hosts = try makeHosts(configuration)
  let signals = try Signals()
  while true {
    let end = try runOnce(configuration, hosts: hosts(), signals: signals, clock: clock, log: log)
    switch end {
    case .stopped:
      log.notice("stopped")
      return .success
    case .drained:
      return .success
    case .leftRows(let words):
      log.error("rows are left", ["reason": words])
      return .unavailable
    case .databaseReplaced:
      log.notice("database was replaced: opening the new file", ["file": configuration.database])
    case .databaseMissing:
      throw Failure(
        .noDatabase,
        "\(configuration.database) was deleted while the worker ran: put it back, then start again")
    }
  }
}

/// One life of the worker with one database file.
private func runOnce(
  _ configuration: Configuration, hosts: [Host], signals: Signals, clock: Clock, log: Log
) throws(Failure) -> Wheel.End {
  let poller = try Poller()
  let lock: WorkerLock
  do throws(WorkerLock.Fault) {
    lock = try WorkerLock(databasePath: configuration.database)
  } catch {
    throw Failure(error, database: configuration.database)
  }
  let store: Store
  do throws(DatabaseFault) {
    store = try Store(
      path: lock.databasePath, environments: hosts.map(\.environment.rawValue),
      expireAfter: configuration.expireAfter.milliseconds)
  } catch {
    throw Failure(error)
  }
  let wheel = try Wheel(
    configuration, hosts: hosts, store: store, watch: DatabaseWatch(path: lock.databasePath), poller: poller,
    signals: signals, clock: clock, log: log)
  log.notice(
    "worker started",
    ["database": lock.databasePath, "hosts": hosts.map(\.name).joined(separator: ",")])
  return try wheel.run()
}

extension Failure {
  /// Why the worker may not have the database, in words.
  fileprivate init(_ fault: WorkerLock.Fault, database: String) {
    switch fault {
    case .held(let pid):
      let holder = pid > 0 ? "the worker with pid \(pid)" : "another worker"
      self.init(
        .alreadyRunning, "\(database) is held by \(holder): one worker serves a database; stop that one first"
      )
    case .noDatabase:
      self.init(.noDatabase, "there is no database \(database): nudged never creates one")
    case .file(let path, let words):
      self.init(
        .inputOutput,
        "cannot write the lock file \(path): \(words); the worker needs to write the database's folder")
    }
  }
}

/// Reads the keys and makes the hosts that have one; one key file is one provider token, whatever its hosts.
///
/// The result makes them anew for each life of the worker, with the provider tokens kept.
private func makeHosts(_ configuration: Configuration) throws(Failure) -> () -> [Host] {
  var signers: [Configuration.Key: Signer] = [:]
  var pairs: [(Configuration.Host, Signer)] = []
  for host in configuration.hosts {
    guard let key = host.key else { continue }
    if signers[key] == nil {
      do {
        let token = try ProviderToken(pem: key.content, keyID: key.id, teamID: configuration.teamID)
        signers[key] = Signer(token: token, file: key.file)
      } catch {
        throw Failure(.configuration, "\(key.file): \(error.words)")
      }
    }
    if let signer = signers[key] { pairs.append((host, signer)) }
  }
  guard !pairs.isEmpty else {
    throw Failure(.configuration, "no host has a key: set --key-file")
  }
  return { pairs.map { Host($0, signer: $1) } }
}
