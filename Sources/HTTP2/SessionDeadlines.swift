import CNghttp2

extension Session {
  /// Sends a PING unless one is out (RFC 9113, 6.7).
  package func probe(now: ContinuousClock.Instant) {
    guard !isOver, pingSentAt == nil else { return }
    unsafe state.pointee.pingNumber += 1
    let data = unsafe withUnsafeBytes(of: state.pointee.pingNumber) { unsafe Array($0) }
    if unsafe nghttp2_submit_ping(handle, 0, data) == 0 { pingSentAt = now }
  }

  /// A byte was read recently enough to rely on the connection.
  package func isFresh(now: ContinuousClock.Instant) -> Bool {
    !isOver && pingSentAt == nil && now - lastRead < options.readIdleBeforeProbe
  }

  /// Judges the deadlines; call it only when everything that arrived has been fed.
  package func judge(now: ContinuousClock.Instant) {
    guard !isOver else { return }
    if let sent = pingSentAt, now >= sent + options.pingTimeout {
      fail(ConnectionFault(.ping, "PING not answered within \(options.pingTimeout)"))
      return
    }
    // Deadlines come in the order of submission, so the first that is not due ends the search.
    while let (index, submitted) = oldestOpen, now >= submitted + options.answerTimeout {
      let id = unsafe state.pointee.slots[index].streamID
      // What nghttp2 has not framed yet it drops at the reset; what it has will still be written.
      unsafe state.pointee.end(index, state.pointee.isFramed(index) ? .timedOut : .notHandedOver)
      unsafe nghttp2_submit_rst_stream(handle, 0, id, NGHTTP2_CANCEL.rawValue)
    }
    if let due = silenceDeadline, now >= due { probe(now: now) }
  }

  /// When ``judge(now:)`` has something to do, if nothing arrives before.
  package var deadline: ContinuousClock.Instant? {
    guard !isOver else { return nil }
    var earliest: ContinuousClock.Instant?
    func consider(_ instant: ContinuousClock.Instant?) {
      if let instant { earliest = earliest.map { min($0, instant) } ?? instant }
    }
    consider(pingSentAt.map { $0 + options.pingTimeout })
    consider(oldestOpen.map { $0.1 + options.answerTimeout })
    consider(silenceDeadline)
    return earliest
  }

  /// Silence counts from the last byte, but not from before the oldest open request.
  private var silenceDeadline: ContinuousClock.Instant? {
    guard pingSentAt == nil, let (_, submitted) = oldestOpen else { return nil }
    return max(lastRead, submitted) + options.silenceWhileAwaiting
  }

  private var oldestOpen: (Int, ContinuousClock.Instant)? {
    let index = unsafe state.pointee.oldest
    guard index >= 0 else { return nil }
    return unsafe (index, beganAt + state.pointee.slots[index].submittedAt)
  }
}
