import APNs

/// One connection to a host as the wheel sees it: how far it is trusted, and how much it takes now.
package final class Link {
  package let connection: PushConnection
  /// What the poller reports for it.
  package let tag: UInt64
  /// When the dial began.
  package let began: ContinuousClock.Instant
  /// Pushes that are staged or have not ended.
  package internal(set) var inFlight = 0
  /// Bytes of payload staged in this turn.
  var stagedBytes = 0
  /// Whether anything is staged in this turn.
  var isStaging = false
  /// A final answer has shown that requests are processed here; until then one goes at a time.
  package internal(set) var isProven = false
  /// Any final answer has come.
  var hasAnswered = false
  /// It was given up here, so that its end is no fault of the host.
  var wasRetiredByUs = false
  /// That it came to nothing has been counted as the host's fault.
  var wasCounted = false
  /// The handshake was logged.
  var wasOpened = false
  /// The provider token that its pushes carry; another key or a refused token needs a new connection.
  var keyGeneration: Int?
  /// When it was last used, for the closing of those that are not needed any more.
  var lastUsed: ContinuousClock.Instant

  /// The peer ended it, or is about to, before its first answer.
  var endedEarly: Bool { !hasAnswered && !wasRetiredByUs }

  init(_ connection: PushConnection, tag: UInt64, now: ContinuousClock.Instant) {
    self.connection = connection
    self.tag = tag
    began = now
    lastUsed = now
  }

  /// How many pushes it takes now.
  func room(now: ContinuousClock.Instant) -> Int {
    // Where something is staged, this turn has found it fresh.
    guard connection.phase == .open, isStaging || connection.isFresh(now: now) else { return 0 }
    let free = connection.freeStreams
    return isProven ? free : min(free, inFlight == 0 ? 1 : 0)
  }

  /// Takes it out of use; what is in flight finishes.
  func retire() {
    wasRetiredByUs = true
    connection.retire()
  }

  /// Whether the connection's window takes this payload too.
  func takes(bytes: Int) -> Bool { connection.sendWindow - stagedBytes >= bytes }
}
