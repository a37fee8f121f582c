import APNs

/// The signing keys of all hosts, and what becomes of them when their files change.
///
/// A new key is used from the next provider token on. What is in flight is answered on its own connection, and a
/// key that cannot be used changes nothing.
package final class Keys {
  /// Reads a key's file again; throws what is wrong with it, in words that name the setting, the file and the
  /// fault, never the key.
  package typealias Reader = (Configuration.Key) throws(Failure) -> Configuration.Key

  private let read: Reader
  private let watch: KeyWatch
  private let signers: [Signer]
  private let pairs: [(Configuration.Host, Signer)]
  /// What is wrong with a file, as it was logged.
  private var said: [String: String] = [:]

  /// For the poller; -1 where inotify is not to be had.
  var descriptor: Int32 { watch.descriptor }
  /// When the files are to be read again; nil while nothing has happened to them.
  var due: ContinuousClock.Instant? { watch.due }

  /// One key file is one provider token, whatever its hosts.
  init(_ configuration: Configuration, read: @escaping Reader) throws(Failure) {
    var signers: [Configuration.Key: Signer] = [:]
    var pairs: [(Configuration.Host, Signer)] = []
    for host in configuration.hosts {
      guard let key = host.key else { continue }
      if signers[key] == nil { signers[key] = try Signer(key, teamID: configuration.teamID) }
      if let signer = signers[key] { pairs.append((host, signer)) }
    }
    guard !pairs.isEmpty else {
      throw Failure(.configuration, "no host has a key: set --key-file")
    }
    self.read = read
    self.pairs = pairs
    self.signers = Array(signers.values)
    // What is sent at once needs no key of later; see `DatabaseWatch` for what it costs to be told.
    watch = KeyWatch(paths: configuration.drain ? [] : signers.keys.map(\.file))
  }

  /// The hosts that have a key, anew for each life of the worker; their provider tokens are kept.
  func hosts() -> [Host] { pairs.map { Host($0, signer: $1) } }

  /// Notes what has happened to the files.
  func takeEvents(now: ContinuousClock.Instant) { watch.takeEvents(now: now) }

  /// Reads the files again and puts new keys to use; returns the signers that have one.
  ///
  /// - Parameter isAsked: somebody has asked for it and wants an answer, also when nothing has changed.
  func reload(isAsked: Bool, now: ContinuousClock.Instant, log: Log) -> [Signer] {
    watch.watch()
    var renewed: [Signer] = []
    for signer in signers {
      do throws(Failure) {
        let key = try read(signer.key)
        if key != signer.key {
          try signer.replace(with: key, now: now)
          renewed.append(signer)
          log.notice("new signing key in use", ["file": key.file, "key_id": key.id])
        } else if isAsked {
          log.notice("signing key is the same as before", ["file": key.file, "key_id": key.id])
        }
        said[key.file] = nil
      } catch {
        guard isAsked || said[signer.file] != error.message else { continue }
        said[signer.file] = error.message
        log.error("new signing key cannot be used: the old one stays", ["reason": error.message])
      }
    }
    return renewed
  }
}

extension Wheel {
  /// Reads the key files again; what hosts have said about a key that was replaced is over.
  func reloadKeys(isAsked: Bool) {
    notify.announceReload()
    let renewed = keys.reload(isAsked: isAsked, now: now, log: log)
    for host in dispatch.hosts where renewed.contains(where: { $0 === host.signer }) {
      host.takeNewKey(now: now)
    }
    notify.announceReady()
  }
}
