/// A pause after a fault: it doubles from episode to episode until something good ends it.
///
/// An episode counts once: answers to requests that were sent before the pause began belong to it, however
/// many of them report it and however late.
package struct Pause {
  private let shortest: Duration
  private let longest: Duration
  private var next: Duration
  private var began: ContinuousClock.Instant?
  /// Whether an episode has begun and nothing good has ended it.
  package private(set) var isOpen = false
  /// When claims may go on; nil when there is no pause.
  package private(set) var until: ContinuousClock.Instant?

  package init(from shortest: Duration, to longest: Duration) {
    self.shortest = shortest
    self.longest = longest
    next = shortest
  }

  package func isActive(now: ContinuousClock.Instant) -> Bool {
    isOpen && until.map { now < $0 } ?? false
  }

  /// Reports the fault; returns the length of the pause that begins, nil when it belongs to one already counted.
  ///
  /// - Parameter since: when the request or the dial began that met the fault.
  package mutating func report(
    since: ContinuousClock.Instant, now: ContinuousClock.Instant
  ) -> Duration? {
    if let began, since <= began { return nil }
    if isActive(now: now) { return nil }
    // A tenth of jitter, so that many workers do not come back as one.
    let length = next * (1 + Double.random(in: 0..<0.1))
    began = now
    isOpen = true
    until = now + length
    next = min(next * 2, longest)
    return length
  }

  /// What it was about has changed: no pause, the next one is short again, and what was sent until now begins none.
  package mutating func forget(now: ContinuousClock.Instant) {
    began = now
    until = nil
    next = shortest
  }

  /// Something good happened: no pause, and the next one is short again. What was sent before the pause began
  /// does not count.
  package mutating func end(since: ContinuousClock.Instant) {
    guard isOpen else { return }
    if let began, since <= began { return }
    isOpen = false
    until = nil
    next = shortest
  }
}
