import APNs

/// One of Apple's two hosts: its connections, its key, and how much it is trusted at the moment.
package final class Host {
  package let environment: Environment
  /// The name for messages, e.g. `api.push.apple.com:443`.
  package let name: String
  let configuration: Configuration.Host
  /// Shared by all hosts with the same key.
  let signer: Signer
  package internal(set) var links: [Link] = []

  /// A dial, TLS or ALPN failed, or a connection ended before its first answer.
  var dialPause = Pause(from: .seconds(1), to: .seconds(60))
  /// The same with a connection beyond the first, while another one works: no further ones are dialled.
  var growthPause = Pause(from: .seconds(1), to: .seconds(60))
  /// 403: it refuses our credentials.
  var refusalPause = Pause(from: .seconds(5), to: .seconds(300))
  /// Three 5xx, three time-outs or three refused streams in a row.
  var troublePause = Pause(from: .seconds(5), to: .seconds(300))
  /// Since a pause, no answer has shown that it works again: one push at a time, over all connections.
  package internal(set) var isProbing = false
  /// It said that the key is not one for its environment.
  package internal(set) var refusesKeyEnvironment = false
  /// Since when every stream of every connection is taken.
  private var fullSince: ContinuousClock.Instant?
  /// How often each kind of trouble came without a good answer between.
  var troubles = (serverErrors: 0, timeouts: 0, refusals: 0)
  /// Why it cannot be used, for messages; nil when it can.
  package internal(set) var trouble: String?

  init(_ configuration: Configuration.Host, signer: Signer) {
    self.configuration = configuration
    self.signer = signer
    environment = configuration.environment
    name = "\(configuration.name):\(configuration.port)"
  }

  /// Whether claims for it wait for time to pass.
  package func isPaused(now: ContinuousClock.Instant) -> Bool {
    dialPause.isActive(now: now) || refusalPause.isActive(now: now) || troublePause.isActive(now: now)
      || signer.throttlePause.isActive(now: now)
  }

  /// When the pause that lasts longest ends; nil without one.
  func pausedUntil(now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
    [dialPause, refusalPause, troublePause, signer.throttlePause]
      .filter { $0.isActive(now: now) }.compactMap(\.until).max()
  }

  var inFlight: Int { links.reduce(0) { $0 + $1.inFlight } }

  /// How many pushes can go now.
  func room(now: ContinuousClock.Instant) -> Int {
    guard !isPaused(now: now) else { return 0 }
    if isProbing {
      return inFlight == 0 && links.contains { $0.room(now: now) > 0 } ? 1 : 0
    }
    return links.reduce(0) { $0 + $1.room(now: now) }
  }

  /// The connection that takes a payload of this size now.
  func link(forBytes bytes: Int, now: ContinuousClock.Instant) -> Link? {
    guard !isProbing || inFlight == 0 else { return nil }
    return links.first { $0.room(now: now) > 0 && $0.takes(bytes: bytes) }
  }

  /// Whether rows wait although every stream is taken, for longer than a moment.
  func needsAnother(now: ContinuousClock.Instant, most: Int) -> Bool {
    let open = links.filter { $0.connection.phase == .open }
    guard !isProbing, !growthPause.isActive(now: now), !open.isEmpty, links.count < most,
      open.allSatisfy({ $0.isProven && $0.connection.freeStreams == 0 })
    else {
      fullSince = nil
      return false
    }
    let since = fullSince ?? now
    fullSince = since
    return now - since >= .milliseconds(20)
  }

  /// An answer to a request of this time showed that requests are processed: the pauses that began before it
  /// are over. Returns whether there was trouble until now.
  func prove(since: ContinuousClock.Instant) -> Bool {
    dialPause.end(since: since)
    refusalPause.end(since: since)
    troublePause.end(since: since)
    signer.throttlePause.end(since: since)
    troubles = (0, 0, 0)
    guard !dialPause.isOpen, !refusalPause.isOpen, !troublePause.isOpen, !signer.throttlePause.isOpen else {
      return false
    }
    defer {
      isProbing = false
      refusesKeyEnvironment = false
      trouble = nil
    }
    return trouble != nil
  }

  /// What is wrong with it, for a person; nil when nothing is known to be.
  var troubleWords: String? {
    guard let trouble else { return nil }
    let what =
      if refusalPause.until != nil {
        "refuses our credentials"
      } else if signer.throttlePause.until != nil {
        "finds the provider token renewed too often"
      } else if dialPause.until != nil {
        "cannot be reached"
      } else {
        "fails"
      }
    return "\(environment.rawValue) \(what) (\(trouble))"
  }

  /// A new key is in use: what the host said about the old one is over, and a connection that has carried it is
  /// not used again.
  func takeNewKey(now: ContinuousClock.Instant) {
    refusalPause.forget(now: now)
    refusesKeyEnvironment = false
    if !isPaused(now: now) { trouble = nil }
    for link in links where link.keyGeneration != nil { link.retire() }
  }

  /// Takes all connections out of use; what is in flight on them finishes.
  func retireAll() { links.forEach { $0.retire() } }
}
