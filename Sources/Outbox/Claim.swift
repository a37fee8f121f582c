import SQLite

/// A nudge that ends in this transaction without a further attempt.
struct Closing {
  let id: Int64
  let state: String
  let detail: String?
}

/// A nudge that can be sent: to devices with a token of this kind, and of the scope that the column holds.
struct Delivery {
  let tokenKind: String
  let scope: Nudge.Column?
  let event: ActivityEvent?
}

/// What a row's own columns amount to.
enum Judgement {
  case closing(Closing)
  case delivery(Delivery)
}

/// How much one claim may do, and for whom.
package struct ClaimBounds {
  /// Environments whose host can take at least one request now.
  package var environments: Set<String>
  /// Whether rows that nobody can send yet are looked at too: once, to settle what is wrong with them and to
  /// learn which hosts are needed.
  package var isFirstLook: Bool
  /// The most attempts that one claim writes.
  package var attempts: Int
  /// The most attempts that one nudge gets while others may wait behind it.
  package var piece: Int

  package init(environments: Set<String>, isFirstLook: Bool, attempts: Int, piece: Int) {
    self.environments = environments
    self.isFirstLook = isFirstLook
    self.attempts = attempts
    self.piece = piece
  }

  /// The most rows that one claim examines in one lane.
  static let rows: Int64 = 1000
  /// The most devices that one claim looks at.
  static let devices = 2000

  /// Whether there is anybody to look for.
  package var hasSomebody: Bool { isFirstLook || !environments.isEmpty }
}

extension Store {
  /// Whether a claim would find a row that it has not examined yet; read-only and cheap.
  package func hasWork(now: Int64, within bounds: borrowing ClaimBounds) throws(SQLiteError) -> Bool {
    guard bounds.hasSomebody else { return false }
    if let revisitAt = scan.revisitAt, revisitAt <= now { return true }
    for lane in Scan.Lane.allCases {
      while let from = scan[lane].from(bounds) {
        let statement = statements.look[lane.rawValue]
        statement.bindLane(from, now: now, limit: 1)
        defer { statement.reset() }
        if try statement.step() { return true }
        scan[lane].rest(within: bounds, isRevisited: mustKeepPositions)
        // If that has forgotten the position: a row may have appeared before it meanwhile.
        guard let again = scan[lane].from(bounds), again < from else { break }
      }
    }
    // With nothing due, no walk through devices is under way, whatever became of its nudge.
    if !scan.hasLeftovers { fanOuts.removeAll() }
    return false
  }

  /// Decides what is due and can go now: an attempt for each (nudge, device), which is handed to the dispatcher,
  /// and an end for what has nothing left to try; the rest stays pending.
  ///
  /// It only reads; `writeClaim` has to follow in the same transaction. Returns the number of attempts.
  package func decideClaim(
    now: Int64, within bounds: borrowing ClaimBounds, by dispatcher: any Dispatcher,
    in transaction: inout Transaction
  ) throws(SQLiteError) -> Int {
    hasProgressed = false
    drafts.removeAll()
    let version = try dataVersion()
    targets.begin(isUnchanged: version == targetsVersion)
    targetsVersion = version
    if let revisitAt = scan.revisitAt, revisitAt <= now, bounds.hasSomebody { scan.restart() }
    _ = try statements.highestAttemptedNudge.step()
    highestAttemptedNudge = statements.highestAttemptedNudge.integer(0)
    statements.highestAttemptedNudge.reset()

    var claim = Claim(now: now, attemptsLeft: bounds.attempts)
    claimed.removeAll(keepingCapacity: true)
    closings.removeAll(keepingCapacity: true)
    awaiting.removeAll(keepingCapacity: true)
    // While fan-outs are on their way, every other turn begins behind the rows that the last such turn came to,
    // so that they and the rows behind them take turns even when there is room for one request only.
    scan.isTurned = !scan.isTurned && !fanOuts.isEmpty
    try look(isTurned: scan.isTurned, for: &claim, within: bounds, by: dispatcher, in: &transaction)
    if scan.isTurned, claim.attemptsLeft == bounds.attempts, hasNothingToWrite {
      try look(isTurned: false, for: &claim, within: bounds, by: dispatcher, in: &transaction)
    }
    if claim.attemptsLeft < bounds.attempts || !hasNothingToWrite { hasProgressed = true }
    return bounds.attempts - claim.attemptsLeft
  }

  /// Writes what `decideClaim` has decided.
  package func writeClaim(now: Int64, in transaction: inout Transaction) throws(SQLiteError) {
    try writeAttempts(now: now)
    try closeClaimed(now: now)
    for nudge in awaiting { try awaitToken(nudge) }
    for closing in closings { try close(closing, now: now) }
  }

  private var hasNothingToWrite: Bool { claimed.isEmpty && closings.isEmpty && awaiting.isEmpty }

  /// Whether rows were passed that wait for something of their own, not for a host.
  private var mustKeepPositions: Bool { scan.revisitAt != nil || !flights.held.isEmpty }

  /// Goes through the lanes while there is room.
  private func look(
    isTurned: Bool, for claim: inout Claim, within bounds: borrowing ClaimBounds,
    by dispatcher: any Dispatcher, in transaction: inout Transaction
  ) throws(SQLiteError) {
    for lane in Scan.Lane.allCases where claim.attemptsLeft > 0 {
      try look(
        through: lane, isTurned: isTurned, for: &claim, within: bounds, by: dispatcher, in: &transaction)
    }
  }

  /// Examines the rows of one lane from where something may be found, and moves its positions on.
  private func look(
    through lane: Scan.Lane, isTurned: Bool, for claim: inout Claim, within bounds: borrowing ClaimBounds,
    by dispatcher: any Dispatcher, in transaction: inout Transaction
  ) throws(SQLiteError) {
    guard let regular = scan[lane].from(bounds) else { return }
    let rotated = isTurned ? scan[lane].rotation : nil
    let from = rotated.map { max($0, regular) } ?? regular

    let statement = statements.pending[lane.rawValue]
    statement.bindLane(from, now: claim.now, limit: ClaimBounds.rows)
    defer { statement.reset() }
    claim.leftBehind.removeAll()
    var last = from
    var examined: Int64 = 0
    var reachedEnd = false
    while true {
      guard try statement.step() else {
        reachedEnd = examined < ClaimBounds.rows
        break
      }
      examined += 1
      let nudge = Nudge(statement)
      let key = Scan.Key(at: lane == .undated ? 0 : nudge.integer(.notBeforeAt), id: nudge.id)
      claim.key = key
      guard try consider(nudge, for: &claim, within: bounds, by: dispatcher, in: &transaction) else {
        hasProgressed = true
        break
      }
      last = key
      if claim.attemptsLeft == 0 { break }
      if !claim.leftBehind.isEmpty && !bounds.isFirstLook
        && bounds.environments.allSatisfy({ claim.leftBehind[$0] != nil })
      {
        break
      }
    }
    scan.examined += Int(examined)
    if rotated != nil {
      scan[lane].rotation = reachedEnd ? nil : last
      hasProgressed = true
      return
    }
    scan[lane].advance(
      to: last, reachedEnd: reachedEnd, leftBehind: claim.leftBehind, within: bounds,
      isRevisited: mustKeepPositions)
    if scan[lane].from(bounds) != regular { hasProgressed = true }
    if reachedEnd {
      scan[lane].rotation = nil
    } else if scan[lane].rotation == nil {
      scan[lane].rotation = last
    }
  }

  /// Judges one row: ends it, or attempts it for as many of its devices as there is room.
  ///
  /// Returns false when the row itself is to be looked at again by the next claim.
  private func consider(
    _ nudge: borrowing Nudge, for claim: inout Claim, within bounds: borrowing ClaimBounds,
    by dispatcher: any Dispatcher, in transaction: inout Transaction
  ) throws(SQLiteError) -> Bool {
    claim.examined = nudge.id
    switch judge(nudge, now: claim.now, by: dispatcher) {
    case .closing(let closing):
      closings.append(closing)
      return true
    case .delivery(let delivery):
      if let event = delivery.event, event != .start { try supersedeWaiting(by: nudge, event) }
      return try distribute(
        nudge, delivery, for: &claim, within: bounds, by: dispatcher, in: &transaction)
    }
  }

  /// What the row's own columns amount to now.
  func judge(_ nudge: borrowing Nudge, now: Int64, by dispatcher: any Dispatcher) -> Judgement {
    let event = nudge.activityEvent
    do throws(Invalid) {
      if try nudge.expiry(after: event?.expireAfter ?? expireAfter) <= now {
        return .closing(Closing(id: nudge.id, state: "expired", detail: nil))
      }
      if event != nil { try nudge.checkActivity() }
    } catch {
      return .closing(Closing(id: nudge.id, state: "invalid", detail: error.words))
    }
    switch dispatcher.examine(nudge) {
    case .invalid(let words): return .closing(Closing(id: nudge.id, state: "invalid", detail: words))
    case .deliverable(let tokenKind, let scope):
      return .delivery(Delivery(tokenKind: tokenKind, scope: scope, event: event))
    }
  }
}

/// What one claim keeps in its head while it goes through the lanes.
struct Claim {
  let now: Int64
  var attemptsLeft: Int
  var devicesLeft = ClaimBounds.devices
  /// The row under examination.
  var key = Scan.Key.start
  /// The row that the dispatcher has examined last.
  var examined: Int64 = 0
  /// Rows of Live Activities that were judged ahead of their turn, and whether they are valid.
  var isValid: [Int64: Bool] = [:]
  /// For each environment the first row of this lane that could not go there now.
  var leftBehind: [String: Scan.Key] = [:]

  mutating func leave(_ environment: String) {
    if leftBehind[environment] == nil { leftBehind[environment] = key }
  }
}

extension Nudge {
  /// When it is too late to send: the row's own `expires_at`, else a while after it was due.
  func expiry(after interval: Int64) throws(Invalid) -> Int64 {
    let createdAt = try time(.createdAt) ?? 0
    let notBeforeAt = try time(.notBeforeAt) ?? createdAt
    return try time(.expiresAt) ?? (max(createdAt, notBeforeAt) + interval)
  }
}

extension Array where Element == UInt8 {
  /// A copy of borrowed bytes.
  package init(copying bytes: Span<UInt8>) {
    self = bytes.withUnsafeBufferPointer { Array($0) }
  }

  /// Takes over borrowed bytes, in the storage at hand.
  mutating func replace(with bytes: Span<UInt8>) {
    removeAll(keepingCapacity: true)
    append(copying: bytes)
  }

  /// Appends borrowed bytes.
  mutating func append(copying bytes: Span<UInt8>) {
    bytes.withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}
