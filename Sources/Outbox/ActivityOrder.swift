import SQLite

// Of the nudges for one Live Activity, only the newest state goes out, and nothing older follows it.
//
// Among the rows that are due and valid, the newest update supersedes older ones and an end supersedes all
// updates, device by device; a start that was sent later than a row was written supersedes it. One request at a
// time is on its way to an activity, and what no token can be found for waits.

/// Why a walk has passed devices without an attempt, as far as their Live Activity is the cause.
struct ActivityNotes {
  /// A request is on its way there; what follows is decided when it is answered.
  var isHeld = false
  /// The activity was started there, or a start is pending, and its update token is not registered yet.
  var awaitsToken = false
  /// Neither a start nor a token is known.
  var isUnknown = false
  /// It has ended there; in words.
  var over: String?
  /// The nudge whose state is newer.
  var supersededBy: Int64?
}

extension Store {
  /// The age at which no activity lives any more: 8 hours active, then 4 on the lock screen (Apple, "Displaying
  /// live data with Live Activities").
  private static let longestLife: Int64 = 12 * 3_600_000

  /// Whether a nudge may go to this device as far as the order within its activity is concerned; if not, the
  /// notes say why.
  func isInTurn(
    _ nudge: borrowing Nudge, _ event: ActivityEvent, _ target: borrowing Target,
    _ notes: inout ActivityNotes, for claim: inout Claim, by dispatcher: any Dispatcher
  ) throws(SQLiteError) -> Bool {
    let place = ActivityPlace(
      device: Array(copying: target.deviceID()), activity: Array(copying: nudge.bytes(.activityID)))
    if event != .start, let newer = try newer(than: nudge, event, target, for: &claim, by: dispatcher) {
      notes.supersededBy = newer
      return false
    }
    if flights.isBusy(place) {
      notes.isHeld = true
      flights.hold(place.activity)
      return false
    }
    if event == .start { return true }
    return try findsToken(nudge, target, &notes, now: claim.now)
  }

  /// Whether the device has a token that the activity's updates and its end can go to.
  private func findsToken(
    _ nudge: borrowing Nudge, _ target: borrowing Target, _ notes: inout ActivityNotes, now: Int64
  ) throws(SQLiteError) -> Bool {
    let memory = target.activity
    let oldest = now - Store.longestLife
    let hasToken = target.token().count > 0 && !target.isSetAside
    if hasToken, target.registeredAt > max(memory.endedAt ?? .min, oldest) { return true }
    if try isStartPending(before: nudge, target, now: now) {
      notes.awaitsToken = true
    } else if memory.endedAt != nil {
      notes.over = "activity over"
    } else if let startedAt = memory.startedAt, startedAt > oldest {
      notes.awaitsToken = true
    } else if hasToken || memory.startedAt != nil {
      notes.over = "activity over: it began more than 12 hours ago"
    } else {
      notes.isUnknown = true
    }
    return false
  }

  /// The nudge that makes this one pointless on the device, if there is any.
  private func newer(
    than nudge: borrowing Nudge, _ event: ActivityEvent, _ target: borrowing Target, for claim: inout Claim,
    by dispatcher: any Dispatcher
  ) throws(SQLiteError) -> Int64? {
    let memory = target.activity
    let sent = event == .end ? memory.lastTurn : memory.lastNudge
    if nudge.id < sent { return sent }
    let select = statements.newerOfActivity
    select.bindPlace(nudge, target, now: claim.now)
    select.bind(7, event == .update ? 1 : 0)
    select.bind(8, memory.lastTurn)
    select.bind(9, Int64.max)
    // Only what is valid supersedes, so one that was not judged yet is judged here.
    while try select.step() {
      let id = select.integer(0)
      select.reset()
      if try isValid(id, for: &claim, by: dispatcher) { return id }
      select.bind(9, id)
    }
    return nil
  }

  /// Judges a row ahead of its turn, and ends it if it is not valid.
  private func isValid(
    _ id: Int64, for claim: inout Claim, by dispatcher: any Dispatcher
  ) throws(SQLiteError) -> Bool {
    if let known = claim.isValid[id] { return known }
    let select = statements.nudge
    select.bind(1, id)
    guard try select.step() else { return false }
    defer { select.reset() }
    let nudge = Nudge(select)
    let judgement = judge(nudge, now: claim.now, by: dispatcher)
    claim.examined = id
    guard case .closing(let closing) = judgement else {
      claim.isValid[id] = true
      return true
    }
    claim.isValid[id] = false
    closings.append(closing)
    return false
  }

  /// Whether a start that was written before the nudge is still to be sent to the device.
  private func isStartPending(
    before nudge: borrowing Nudge, _ target: borrowing Target, now: Int64
  ) throws(SQLiteError) -> Bool {
    let select = statements.pendingStart
    select.bindPlace(nudge, target, now: now)
    defer { select.reset() }
    return try select.step()
  }

  /// Ends the older rows of the same activity and address that wait for a token: this one waits now, or goes.
  func supersedeWaiting(by nudge: borrowing Nudge, _ event: ActivityEvent) throws(SQLiteError) {
    let select = statements.waitingOfAddress
    select.bind(1, nudge.bytes(.activityID))
    select.bind(2, nudge.id)
    select.bind(3, event == .end ? 1 : 0)
    while try select.step() {
      closings.append(Closing(id: select.integer(0), state: "superseded", detail: "by nudge \(nudge.id)"))
    }
  }
}

extension Statement {
  /// Binds the activity, the nudge, the time and the device that the statements about its order share.
  fileprivate func bindPlace(_ nudge: borrowing Nudge, _ target: borrowing Target, now: Int64) {
    bind(1, nudge.bytes(.activityID))
    bind(2, nudge.id)
    bind(3, now)
    bind(4, target.deviceID())
    bind(5, target.recipient())
    bind(6, target.surface())
  }
}
