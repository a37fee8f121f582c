import APNs
import Glibc
import Outbox

// One transaction a turn, and what may keep it from being made.

extension Wheel {
  /// What a claim may do now.
  func bounds() -> ClaimBounds {
    var environments: Set<String> = []
    var room = 0
    for host in dispatch.hosts {
      let hostRoom = host.room(now: now)
      if hostRoom > 0 { environments.insert(host.environment.rawValue) }
      room += hostRoom
    }
    // While answers keep coming, the claims reach every row soon enough.
    let isStalled = dispatch.inFlight.isEmpty || now - lastProgress >= Wheel.patience
    return ClaimBounds(
      environments: environments, isFirstLook: environments.isEmpty && isStalled,
      attempts: max(1, min(room, Wheel.mostAttempts)),
      piece: max(1, room / 4))
  }

  /// How many transactions take the lock first after somebody has committed between the reading and the writing of
  /// one: a backend that commits all the time would let every other one come to nothing.
  private static let lockedTurns = 16

  /// How long no answer has to come before rows are looked at that nobody can send yet.
  static let patience = Duration.milliseconds(50)

  /// The batch beyond which a transaction gains nothing more.
  private static let mostAttempts = 500

  /// Settles what was answered and claims what comes next, if there is either and the lock may be taken.
  func turn() throws(Failure) {
    guard turnAllowedAt <= now else { return }
    if lock.heedsCommits(now: now) {
      lookForCommits()
      guard turnAllowedAt <= now else { return }
    }
    do throws(StoreError) {
      let bounds = bounds()
      let mayClaim = stopDeadline == nil ? try findsWork(within: bounds) : false
      let mustExpire = isExpiryDue ? try store.hasExpired(now: wall) : false
      if isExpiryDue && !mustExpire { nextExpiry = now + .seconds(1) }
      guard mayClaim || mustExpire || !finishes.isEmpty || isRetentionDue || !hasRecovered else { return }
      // Never work on a file that is not the database any more; the poll says what became of it.
      guard watch.file == .same else {
        nextPoll = now
        return
      }
      // A claim that nothing in this transaction bears on is decided before the lock is taken.
      let readsFirst =
        store.canReadFirst && turnsToLockFirst == 0 && hasRecovered && mayClaim && !mustExpire
        && store.concernNoClaim(finishes)
      guard readsFirst || lock.freeAt <= now else {
        readingTime = .zero
        return
      }
      try transact(bounds, mayClaim: mayClaim, mustExpire: mustExpire, readsFirst: readsFirst)
      recovered()
    } catch {
      try failed(error)
    }
  }

  /// Whether a claim is worth a write transaction: a read-only look decides. What was answered is written in
  /// any case, and may have freed room or made a nudge pending again, so then the claim itself is the look.
  private func findsWork(within bounds: ClaimBounds) throws(StoreError) -> Bool {
    guard finishes.isEmpty else {
      isCrowded = false
      mayHaveWork = true
      return true
    }
    guard mayHaveWork || wantsRescan || store.scan.hasLeftovers else { return false }
    // With every stream taken there is nobody to look for, until answers stop coming.
    isCrowded = bounds.environments.isEmpty && !bounds.isFirstLook
    guard !isCrowded else { return false }
    mayHaveWork = try store.hasWork(now: wall, within: bounds)
    // Not before the end was reached: else a backend that commits all the time would hold the scan to its first
    // part, and rows for a host that is well would never be seen behind those for a paused one.
    if !mayHaveWork && wantsRescan && rescanAllowedAt <= now {
      // The pause grows with what the last scan had to look at, so that rescans take a small part of the time.
      rescanAllowedAt = now + .milliseconds(min(max(store.scan.examined, 5), 1000))
      store.scan.restart()
      wantsRescan = false
      mayHaveWork = try store.hasWork(now: wall, within: bounds)
    }
    if !mayHaveWork && nextTime == nil { nextTime = try store.nextTime(after: wall) }
    return mayHaveWork
  }

  private func transact(_ bounds: ClaimBounds, mayClaim: Bool, mustExpire: Bool, readsFirst: Bool)
    throws(StoreError)
  {
    var locked = clock.now()
    let removesHistory = isRetentionDue
    dispatch.begin(now: now, wall: wall)
    var settlement = Settlement()
    var claimed = 0
    var hasMoreHistory = false
    var interrupted: Int64 = 0
    do throws(StoreError) {
      try store.turn(readingFirst: readsFirst) { transaction throws(StoreError) in
        if readsFirst {
          claimed = try store.decideClaim(now: wall, within: bounds, by: dispatch, in: &transaction)
          locked = lockTime(after: locked)
        }
        if !hasRecovered { interrupted = try store.recover(now: wall, in: &transaction) }
        settlement = try store.settle(finishes, in: &transaction)
        if mustExpire {
          _ = try store.expire(now: wall, limit: 500, in: &transaction)
        }
        if mayClaim && !readsFirst {
          claimed = try store.decideClaim(now: wall, within: bounds, by: dispatch, in: &transaction)
        }
        if mayClaim { try store.writeClaim(now: wall, in: &transaction) }
        if removesHistory {
          hasMoreHistory = try store.removeHistory(
            before: wall - configuration.retain.milliseconds, in: &transaction)
        }
        try store.keepLowWater(dispatch.inFlight.oldestAttempt, in: &transaction)
      }
    } catch {
      dispatch.discard()
      if readsFirst { turnsToLockFirst = Wheel.lockedTurns }
      throw error
    }
    turnsToLockFirst = max(0, turnsToLockFirst - 1)
    // Measured before the requests are written: that happens without the lock.
    lock.release(after: locked, now: clock.now(), hasMore: claimed >= bounds.attempts)
    if !readsFirst { readingTime = .zero }
    dispatch.send()
    store.tidy()
    hasRecovered = true
    finishes.removeAll(keepingCapacity: true)
    if interrupted > 0 {
      log.warning("attempts of an earlier run have no outcome: interrupted", ["count": "\(interrupted)"])
    }
    if removesHistory {
      nextRetention = now + (hasMoreHistory ? .milliseconds(100) : .seconds(3600))
    }
    if claimed > 0 {
      lastProgress = now
      holdsMemory = true
    }
    // A host that has room and takes nothing (a full send window): the next event, or the poll, tries again.
    if mayClaim && bounds.hasSomebody && !store.hasProgressed && store.scan.hasLeftovers {
      mayHaveWork = false
    }
    // The look before this transaction could not see them, and own commits wake nobody.
    if settlement.reopenedNudges > 0 || mustExpire { mayHaveWork = true }
    try pauseThrottledDevices()
    report(settlement, claimed: claimed)
  }

  /// When a claim that was begun at this time and is decided may take the lock, which is now; where it has been
  /// decided faster than the one before, the rest of the lock's free time is waited for.
  private func lockTime(after began: ContinuousClock.Instant) -> ContinuousClock.Instant {
    let decided = clock.now()
    readingTime = min(decided - began, Wheel.longestReading)
    guard decided < lock.freeAt else { return decided }
    usleep(UInt32((lock.freeAt - decided) / .microseconds(1)) + 1)
    return clock.now()
  }

  /// How much earlier than the lock may be taken a claim begins at most.
  private static let longestReading = Duration.milliseconds(2)

  /// Rows that wait run out unseen; claims end the others.
  private var isExpiryDue: Bool {
    nextExpiry <= now && stopDeadline == nil && store.mayHaveExpired(now: wall)
  }

  /// History is removed only when nothing else is to be done.
  private var isRetentionDue: Bool {
    nextRetention <= now && dispatch.inFlight.isEmpty && finishes.isEmpty && !mayHaveWork
      && stopDeadline == nil && !configuration.drain
  }

  /// 429 TooManyRequests is about one device: it is left alone for a minute.
  private func pauseThrottledDevices() throws(StoreError) {
    for attempt in throttledAttempts {
      if let device = try store.device(ofAttempt: attempt) {
        dispatch.pausedDevices[device] = now + .seconds(60)
        log.warning("device throttled", ["attempt": "\(attempt)", "pause": "60s"])
      }
    }
    throttledAttempts.removeAll()
  }

  private func report(_ settlement: Settlement, claimed: Int) {
    if settlement.droppedTokens > 0 {
      log.notice("dead tokens dropped", ["count": "\(settlement.droppedTokens)"])
    }
    if settlement.setAsideTokens > 0 {
      log.warning(
        "tokens set aside: every host answered BadDeviceToken", ["count": "\(settlement.setAsideTokens)"])
    }
    if claimed > 0 { log.debug("claimed", ["attempts": "\(claimed)"]) }
  }

  // MARK: The end

  /// Whether the worker is done.
  func ending() throws(Failure) -> End? {
    if let stopDeadline {
      let isQuiet = dispatch.inFlight.isEmpty && finishes.isEmpty
      guard isQuiet || mustStopNow || stopDeadline <= now else { return nil }
      try interruptRest()
      return .stopped
    }
    guard configuration.drain, !mayHaveWork, dispatch.inFlight.isEmpty, finishes.isEmpty else { return nil }
    guard store.scan.hasLeftovers else { return .drained }
    let waiting = dispatch.hosts.filter { store.scan.waitingFor.contains($0.environment.rawValue) }
    guard waiting.allSatisfy({ $0.isPaused(now: now) }) else { return nil }
    let reasons = waiting.map { "\($0.name): \($0.trouble ?? "paused")" }
    return .leftRows(reasons.isEmpty ? "a device or a topic is paused" : reasons.joined(separator: "; "))
  }

  /// Settles what has no answer as interrupted; a short while is spent on getting the lock.
  private func interruptRest() throws(Failure) {
    for entry in dispatch.inFlight.removeAll() {
      var apnsID: [UInt8] = []
      entry.apnsID.append(to: &apnsID)
      finishes.append(
        Finish(
          attempt: entry.attempt, nudge: entry.nudge, apnsID: apnsID, outcome: .interrupted,
          environment: dispatch.hosts[entry.host].environment.rawValue, startedAt: entry.startedAt,
          finishedAt: wall, status: nil, reason: nil, timestampAt: nil, uniqueID: nil,
          token: Finish.Token(
            id: entry.tokenID, digits: "", registeredAt: entry.registeredAt,
            environment: entry.environment, isProven: entry.isProven)))
    }
    guard !finishes.isEmpty else { return }
    let deadline = clock.now() + (mustStopNow ? .zero : .seconds(1))
    while true {
      do throws(StoreError) {
        try store.turn { transaction throws(StoreError) in
          _ = try store.settle(finishes, in: &transaction)
          try store.keepLowWater(nil, in: &transaction)
        }
        return
      } catch {
        guard error.kind == .busy, clock.now() < deadline else {
          // The next worker finds them without an outcome and settles them as interrupted.
          log.error(
            "outcomes could not be written; the next start settles them as interrupted",
            ["count": "\(finishes.count)", "reason": "\(error)"])
          return
        }
        poller.wait(.milliseconds(5)) { _ in }
      }
    }
  }
}
