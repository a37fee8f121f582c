import SQLite

/// A nudge that ends in this transaction without a further attempt.
struct Closing {
  let id: Int64
  let state: String
  let detail: String?
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
  /// The most devices of one nudge that one claim examines.
  static let devices = 1000
}

extension Store {
  /// Whether a claim would find a row that it has not examined yet; read-only and cheap.
  package func hasWork(now: Int64, within bounds: borrowing ClaimBounds) throws(SQLiteError) -> Bool {
    if let revisitAt = scan.revisitAt, revisitAt <= now { return true }
    for lane in Scan.Lane.allCases {
      guard let from = scan[lane].from(bounds) else { continue }
      let statement = statements.look[lane.rawValue]
      statement.bindLane(from, now: now, limit: 1)
      defer { statement.reset() }
      if try statement.step() { return true }
      scan[lane].rest(within: bounds, isRevisited: scan.revisitAt != nil)
    }
    return false
  }

  /// Claims what is due and can go now: writes an attempt row for each (nudge, device) and hands it to the
  /// dispatcher, ends what has nothing left to try, and leaves the rest pending.
  ///
  /// Returns the number of attempts.
  package func claim(
    now: Int64, within bounds: borrowing ClaimBounds, by dispatcher: any Dispatcher,
    in transaction: inout Transaction
  ) throws(SQLiteError) -> Int {
    if let revisitAt = scan.revisitAt, revisitAt <= now { scan.restart() }
    _ = try statements.highestAttemptedNudge.step()
    highestAttemptedNudge = statements.highestAttemptedNudge.integer(0)
    statements.highestAttemptedNudge.reset()

    var claim = Claim(now: now, attemptsLeft: bounds.attempts)
    claimed.removeAll(keepingCapacity: true)
    closings.removeAll(keepingCapacity: true)
    for lane in Scan.Lane.allCases {
      try look(through: lane, for: &claim, within: bounds, by: dispatcher, in: &transaction)
    }
    try closeClaimed(now: now)
    for closing in closings {
      try close(closing, now: now, in: &transaction)
    }
    return bounds.attempts - claim.attemptsLeft
  }

  /// Examines the rows of one lane from where something may be found, and moves its positions on.
  private func look(
    through lane: Scan.Lane, for claim: inout Claim, within bounds: borrowing ClaimBounds,
    by dispatcher: any Dispatcher, in transaction: inout Transaction
  ) throws(SQLiteError) {
    guard let regular = scan[lane].from(bounds) else { return }
    // While large fan-outs are on their way, every other turn begins behind the row that was served last, so
    // that they and the rows behind them take turns even when there is room for one request only.
    scan[lane].isTurned.toggle()
    let rotated = fanOuts.isEmpty || !scan[lane].isTurned ? nil : scan[lane].lastServed
    let from = rotated.map { max($0, regular) } ?? regular

    let statement = statements.pending[lane.rawValue]
    statement.bindLane(from, now: claim.now, limit: ClaimBounds.rows)
    defer { statement.reset() }
    claim.leftBehind.removeAll()
    var last = from
    var served: Scan.Key?
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
      let before = claim.attemptsLeft
      try consider(nudge, for: &claim, within: bounds, by: dispatcher, in: &transaction)
      if claim.attemptsLeft < before { served = key }
      last = key
      if claim.attemptsLeft == 0 { break }
      if !claim.leftBehind.isEmpty && !bounds.isFirstLook
        && bounds.environments.allSatisfy({ claim.leftBehind[$0] != nil })
      {
        break
      }
    }
    if rotated == nil {
      scan[lane].advance(
        to: last, reachedEnd: reachedEnd, leftBehind: claim.leftBehind, within: bounds,
        isRevisited: scan.revisitAt != nil)
    }
    scan[lane].lastServed = reachedEnd && served == nil ? nil : (served ?? scan[lane].lastServed)
  }

  /// Judges one row: ends it, or attempts it for as many of its devices as there is room.
  private func consider(
    _ nudge: borrowing Nudge, for claim: inout Claim, within bounds: borrowing ClaimBounds,
    by dispatcher: any Dispatcher, in transaction: inout Transaction
  ) throws(SQLiteError) {
    do throws(Invalid) {
      if try nudge.expiry(after: expireAfter) <= claim.now {
        closings.append(Closing(id: nudge.id, state: "expired", detail: nil))
        return
      }
    } catch {
      closings.append(Closing(id: nudge.id, state: "invalid", detail: error.words))
      return
    }
    switch dispatcher.examine(nudge) {
    case .invalid(let words):
      closings.append(Closing(id: nudge.id, state: "invalid", detail: words))
    case .deliverable(let tokenKind, let scope):
      try distribute(
        nudge, to: (tokenKind, scope), for: &claim, within: bounds, by: dispatcher,
        in: &transaction)
    }
  }

  /// Goes through the devices that a nudge is for, from where the last piece ended.
  private func distribute(
    _ nudge: borrowing Nudge, to token: (kind: String, scope: String),
    for claim: inout Claim, within bounds: borrowing ClaimBounds, by dispatcher: any Dispatcher,
    in transaction: inout Transaction
  ) throws(SQLiteError) {
    let targets = self.targets(of: nudge, tokenKind: token.kind, scope: token.scope)
    defer { targets.reset() }
    var sent = 0
    var seen = 0
    var hasHistory = fanOuts[nudge.id] != nil
    var impossible: String?
    var isWaiting = false
    var cursor: [UInt8]?
    while try targets.step() {
      let target = Target(row: targets)
      seen += 1
      var route = Route.exhausted
      if !target.isSetAside {
        tokenHash.removeAll(keepingCapacity: true)
        dispatcher.hash(target.token(), into: &tokenHash)
        let history = try history(nudge, target)
        hasHistory = hasHistory || history.mayHaveBuzzed || history.unsent > 0 || !history.wrongHosts.isEmpty
        if history.isOver { continue }
        route = dispatcher.route(target, wrongHosts: history.wrongHosts)
      }
      let mustStop = sent >= bounds.piece || claim.attemptsLeft == 0 || seen > ClaimBounds.devices
      switch route {
      case .send(let environment) where mustStop, .wait(let environment):
        claim.leave(environment)
        if !isWaiting { cursor = sent > 0 ? lastServedDevice : nil }
        isWaiting = true
      case .send(let environment):
        if try attempt(
          nudge, target, environment: environment, tokenKind: token.kind,
          now: claim.now, in: &transaction, by: dispatcher)
        {
          sent += 1
          claim.attemptsLeft -= 1
          if !isWaiting { lastServedDevice.replace(with: target.deviceID()) }
        }
        hasHistory = true
      case .waitUntil(let time):
        scan.revisitAt = min(scan.revisitAt ?? time, time)
        if !isWaiting { cursor = sent > 0 ? lastServedDevice : nil }
        isWaiting = true
      case .impossible(let words): impossible = words
      case .exhausted: break
      }
      if mustStop && isWaiting { break }
    }
    if isWaiting {
      if let cursor { fanOuts[nudge.id] = cursor }
      return
    }
    fanOuts[nudge.id] = nil
    if hasHistory {
      claimed.append(nudge.id)
    } else if let impossible {
      closings.append(Closing(id: nudge.id, state: "invalid", detail: impossible))
    } else {
      let words = try unaddressed(nudge, tokenKind: token.kind, scope: token.scope, setAside: seen)
      closings.append(Closing(id: nudge.id, state: "unaddressed", detail: words))
    }
  }
}

/// What one claim keeps in its head while it goes through the lanes.
struct Claim {
  let now: Int64
  var attemptsLeft: Int
  /// The row under examination.
  var key = Scan.Key.start
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
  /// Takes over borrowed bytes, in the storage at hand.
  mutating func replace(with bytes: Span<UInt8>) {
    removeAll(keepingCapacity: true)
    bytes.withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}
