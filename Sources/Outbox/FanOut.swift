import SQLite

/// A walk through the devices of one nudge. A large one takes several claims, each of which goes on where the
/// last one stopped; the unique indexes keep the pieces apart, this only saves looking at them again.
struct Walk {
  /// The device that was looked at last; empty at the beginning.
  var device: [UInt8] = []
  /// Whether its id is a BLOB.
  var isBlob = false
  /// How many devices were looked at.
  var seen = 0
  /// Whether a device has an attempt of this nudge.
  var hasHistory = false
  /// Why a device can never be sent to, in words.
  var impossible: String?
  /// Environments that devices which were passed wait for.
  var environments: Set<String> = []
  /// When a device that was passed may be tried again, in wall milliseconds.
  var until: Int64?
  /// Why devices were passed because of their Live Activity.
  var activity = ActivityNotes()
  /// An answer has left something to try for a device that was passed.
  var mustRepeat = false

  /// The most walks that are remembered; a forgotten one begins anew.
  static let most = 4096

  mutating func stop(behind target: Target) {
    device.replace(with: target.deviceID())
    isBlob = target.isBlob
  }
}

extension Store {
  /// Goes through the devices that a nudge is for, from where the last walk stopped, and ends the nudge when
  /// nothing is left to try for any of them.
  ///
  /// Returns false when the next claim is to go on with it at once.
  func distribute(
    _ nudge: borrowing Nudge, _ delivery: Delivery, for claim: inout Claim,
    within bounds: borrowing ClaimBounds, by dispatcher: any Dispatcher, in transaction: inout Transaction
  ) throws(SQLiteError) -> Bool {
    var walk = walk(of: nudge.id)
    let alreadySeen = walk.seen
    var sent = 0
    var hasStopped = false
    var position = 0
    try readTargets(of: nudge, delivery, behind: walk, by: dispatcher)
    walking: while position < targets.count {
      guard claim.devicesLeft > 0 else {
        remember(walk, of: nudge.id, at: position, since: alreadySeen, leaving: &claim)
        return false
      }
      claim.devicesLeft -= 1
      let target = targets[position]
      switch try route(target, of: nudge, delivery.event, &walk, for: &claim, by: dispatcher) {
      case .send(let environment):
        if sent >= bounds.piece || claim.attemptsLeft == 0 {
          claim.leave(environment)
          hasStopped = true
          break walking
        }
        if try attempt(
          nudge, target, delivery, environment: environment, now: claim.now, by: dispatcher)
        {
          sent += 1
          claim.attemptsLeft -= 1
        }
        walk.hasHistory = true
      case .wait(let environment):
        if claim.attemptsLeft < bounds.attempts && bounds.environments.contains(environment) {
          // This claim has used up the room; with new room it goes on here.
          claim.leave(environment)
          hasStopped = true
          break walking
        }
        walk.environments.insert(environment)
      case .waitUntil(let time): walk.until = min(walk.until ?? time, time)
      case .exhausted: break
      }
      walk.seen += 1
      position += 1
      if position == AddressBook.page {
        walk.stop(behind: target)
        try readTargets(of: nudge, delivery, behind: walk, by: dispatcher)
        position = 0
      }
    }
    if hasStopped {
      remember(walk, of: nudge.id, at: position, since: alreadySeen, leaving: &claim)
      return true
    }
    if !fanOuts.isEmpty { fanOuts[nudge.id] = nil }
    leave(walk, for: &claim)
    if walk.mustRepeat { return false }
    if walk.environments.isEmpty && walk.until == nil && !walk.activity.isHeld {
      try end(nudge, delivery, after: walk)
    }
    return true
  }

  private func walk(of nudge: Int64) -> Walk { fanOuts[nudge] ?? Walk() }

  /// Where the nudge can go on this device, if anything is left to try there.
  private func route(
    _ target: borrowing Target, of nudge: borrowing Nudge, _ event: ActivityEvent?, _ walk: inout Walk,
    for claim: inout Claim, by dispatcher: any Dispatcher
  ) throws(SQLiteError) -> Route {
    if target.isSetAside && event == nil { return .exhausted }
    let history = try history(nudge, target)
    if history.mayHaveBuzzed || history.unsent > 0 || !history.wrongHosts.isEmpty { walk.hasHistory = true }
    if history.isOver { return .exhausted }
    if let event {
      guard try isInTurn(nudge, event, target, &walk.activity, for: &claim, by: dispatcher) else {
        return .exhausted
      }
      if claim.examined != nudge.id {
        _ = dispatcher.examine(nudge)
        claim.examined = nudge.id
      }
    }
    if let fault = target.fault {
      walk.impossible = fault
      return .exhausted
    }
    return dispatcher.route(target, wrongHosts: history.wrongHosts)
  }

  /// Lets a later claim go on with a walk, if it has come anywhere; `position` is where it stands in the devices
  /// that were read last.
  private func remember(
    _ walk: Walk, of nudge: Int64, at position: Int, since alreadySeen: Int, leaving claim: inout Claim
  ) {
    leave(walk, for: &claim)
    guard walk.seen > alreadySeen else { return }
    if fanOuts.count >= Walk.most, fanOuts[nudge] == nil, let other = fanOuts.keys.first {
      fanOuts[other] = nil
    }
    var walk = walk
    if position > 0 {
      let last = targets[position - 1]
      walk.stop(behind: last)
    }
    fanOuts[nudge] = walk
  }

  /// Keeps the nudge in view for the devices that were passed.
  private func leave(_ walk: Walk, for claim: inout Claim) {
    for environment in walk.environments { claim.leave(environment) }
    if let until = walk.until { scan.revisitAt = min(scan.revisitAt ?? until, until) }
  }

  /// Nothing is left to try for any device now.
  private func end(
    _ nudge: borrowing Nudge, _ delivery: Delivery, after walk: Walk
  ) throws(SQLiteError) {
    if walk.activity.awaitsToken {
      awaiting.append(nudge.id)
    } else if walk.hasHistory {
      claimed.append(nudge.id)
    } else if let impossible = walk.impossible {
      closings.append(Closing(id: nudge.id, state: "invalid", detail: impossible))
    } else if let newer = walk.activity.supersededBy {
      closings.append(Closing(id: nudge.id, state: "superseded", detail: "by nudge \(newer)"))
    } else if let words = walk.activity.over {
      closings.append(Closing(id: nudge.id, state: "unaddressed", detail: words))
    } else if walk.activity.isUnknown {
      awaiting.append(nudge.id)
    } else {
      let words = try unaddressed(nudge, delivery, setAside: walk.seen)
      closings.append(Closing(id: nudge.id, state: "unaddressed", detail: words))
    }
  }
}
