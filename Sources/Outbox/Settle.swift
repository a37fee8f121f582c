import SQLite

/// How an attempt ended; the raw value is what the column holds.
package enum Outcome: String, Sendable {
  /// Apple took it (200).
  case accepted
  /// A final refusal; it is not tried again.
  case rejected
  /// The token is dead (410).
  case deadToken = "dead_token"
  /// BadDeviceToken: perhaps the other host's token.
  case wrongHost = "wrong_host"
  /// Handed over, and no status came back.
  case unanswered
  /// The worker ended meanwhile.
  case interrupted
  /// Provably never processed by the peer.
  case unsent
}

/// The end of one attempt, as it goes into the tables.
package struct Finish {
  package let attempt: Int64
  package let nudge: Int64
  /// Our own id of the request, 36 characters.
  package var apnsID: [UInt8]
  package let outcome: Outcome
  package let environment: String
  /// Wall time in milliseconds.
  package let startedAt: Int64
  /// Wall time in milliseconds.
  package let finishedAt: Int64
  package let status: Int?
  package let reason: String?
  /// Apple's timestamp of a 410, milliseconds.
  package let timestampAt: Int64?
  package let uniqueID: String?
  /// What the claim read about the token, and the token itself.
  package let token: Token
  /// An acceptance that says nothing new: all of them are written with one statement per run of ids.
  package let isPlain: Bool

  /// The token as the claim saw it: a lesson is written only if nothing has changed since.
  package struct Token {
    package var id: Int64
    /// Hex digits; empty where the outcome teaches nothing about the token.
    package var digits: String
    package var registeredAt: Int64
    package var environment: String?
    /// The environment was known to be right already: an acceptance teaches nothing.
    package var isProven: Bool

    package init(id: Int64, digits: String, registeredAt: Int64, environment: String?, isProven: Bool) {
      self.id = id
      self.digits = digits
      self.registeredAt = registeredAt
      self.environment = environment
      self.isProven = isProven
    }
  }

  package init(
    attempt: Int64, nudge: Int64, apnsID: [UInt8], outcome: Outcome, environment: String, startedAt: Int64,
    finishedAt: Int64, status: Int?, reason: String?, timestampAt: Int64?, uniqueID: String?, token: Token
  ) {
    self.attempt = attempt
    self.nudge = nudge
    self.apnsID = apnsID
    self.outcome = outcome
    self.environment = environment
    self.startedAt = startedAt
    self.finishedAt = finishedAt
    self.status = status
    self.reason = reason
    self.timestampAt = timestampAt
    self.uniqueID = uniqueID
    self.token = token
    isPlain = outcome == .accepted && status == 200 && token.isProven && reason == nil && uniqueID == nil
  }
}

/// What a settle changed besides the attempts, for the log.
package struct Settlement {
  /// Rows of `nudge_token` that a 410 removed.
  package var droppedTokens: Int64 = 0
  /// Rows of `nudge_token` that every host has refused.
  package var setAsideTokens: Int64 = 0
  /// Tokens whose environment an acceptance revealed.
  package var provenTokens: Int64 = 0
  /// Nudges that have something left to try: a claim is to look at them.
  package var reopenedNudges: Int64 = 0

  package init() {}
}

extension Store {
  /// Whether these ends change nothing that a claim reads, so that it may be decided before they are written.
  package func concernNoClaim(_ finishes: [Finish]) -> Bool {
    let finishes = finishes.span
    for position in finishes.indices
    where !finishes[position].isPlain || flights[finishes[position].attempt] != nil { return false }
    return true
  }

  /// Writes how attempts ended, and what that teaches about their tokens, in the caller's transaction.
  ///
  /// Each write is conditional on the attempt having no outcome yet, so a late answer changes nothing.
  package func settle(_ finishes: [Finish], in transaction: inout Transaction) throws(SQLiteError)
    -> Settlement
  {
    var settlement = Settlement()
    var plain: [(attempt: Int64, finishedAt: Int64)] = []
    // By position in a span: a copy of each would retain all its parts.
    let finishes = finishes.span
    for position in finishes.indices {
      if finishes[position].isPlain {
        plain.append((finishes[position].attempt, finishes[position].finishedAt))
        if !flights.isEmpty { settlement.reopenedNudges += try settleActivity(finishes[position]) }
      } else {
        try settle(finishes[position], &settlement, in: &transaction)
      }
    }
    // Attempts of one claim have neighbouring ids, and most are accepted: a statement a run, not a row.
    plain.sort { $0.attempt < $1.attempt }
    var first = 0
    while first < plain.count {
      var last = first
      while last + 1 < plain.count, plain[last + 1].attempt == plain[last].attempt + 1,
        plain[last + 1].finishedAt == plain[first].finishedAt
      {
        last += 1
      }
      statements.acceptRun.bind(1, plain[first].finishedAt)
      statements.acceptRun.bind(2, plain[first].attempt)
      statements.acceptRun.bind(3, plain[last].attempt)
      try statements.acceptRun.run()
      first = last + 1
    }
    return settlement
  }

  private func settle(
    _ finish: Finish, _ settlement: inout Settlement, in transaction: inout Transaction
  ) throws(SQLiteError) {
    let update = statements.finishAttempt
    update.bind(1, finish.attempt)
    update.bind(2, finish.apnsID)
    update.bind(3, finish.outcome.rawValue)
    update.bind(4, finish.status.map(Int64.init))
    update.bind(5, finish.reason)
    update.bind(6, finish.timestampAt)
    update.bind(7, finish.uniqueID)
    update.bind(8, finish.finishedAt)
    try update.run()
    guard database.changes == 1 else {
      _ = flights.end(finish.attempt)
      return
    }
    switch finish.outcome {
    case .accepted: settlement.provenTokens += try learnEnvironment(finish)
    case .deadToken: settlement.droppedTokens += try dropToken(finish)
    case .wrongHost:
      if try isRefusedEverywhere(finish) {
        settlement.setAsideTokens += try setAside(finish)
      } else {
        settlement.reopenedNudges += try reopen(finish.nudge)
      }
    case .unsent:
      if try unsentCount(finish) < History.mostUnsent {
        settlement.reopenedNudges += try reopen(finish.nudge)
      }
    case .rejected, .unanswered, .interrupted: break
    }
    settlement.reopenedNudges += try settleActivity(finish)
  }

  /// Lets the next claim look at a nudge again that has something left to try; returns 0 if it has ended.
  private func reopen(_ nudge: Int64) throws(SQLiteError) -> Int64 {
    statements.reopenNudge.bind(1, nudge)
    try statements.reopenNudge.run()
    let select = try database.prepare(
      "select not_before_at from nudge_outbox where id = ?1 and state = 'pending'")
    select.bind(1, nudge)
    guard try select.step() else { return 0 }
    fanOuts[nudge]?.mustRepeat = true
    scan.reconsider(nudge, notBeforeAt: select.optionalInteger(0))
    return 1
  }

  private func unsentCount(_ finish: Finish) throws(SQLiteError) -> Int64 {
    let select = try database.prepare(
      """
      select count(*) from nudge_attempt
      where nudge_id = ?1 and outcome = 'unsent'
        and device_id = (select device_id from nudge_attempt where id = ?2)
      """)
    select.bind(1, finish.nudge)
    select.bind(2, finish.attempt)
    _ = try select.step()
    return select.integer(0)
  }

  // MARK: Each token knows its host

  /// Condition on `nudge_token`: the token (?1) is what it was when the claim read its row (?2, ?3, ?4), and
  /// no other row of the same token was registered since the attempt began (?5).
  private static let isUnchanged = """
    token = ?1 and case when id = ?2 then registered_at is ?3 and environment is ?4
      else registered_at <= ?5 end
    """

  private func bindUnchanged(_ statement: Statement, _ finish: Finish) {
    statement.bind(1, finish.token.digits)
    statement.bind(2, finish.token.id)
    statement.bind(3, finish.token.registeredAt)
    statement.bind(4, finish.token.environment)
    statement.bind(5, finish.startedAt)
  }

  /// An acceptance proves the environment for every row that carries the token.
  private func learnEnvironment(_ finish: Finish) throws(SQLiteError) -> Int64 {
    guard !finish.token.isProven, !finish.token.digits.isEmpty else { return 0 }
    let update = try database.prepare(
      "update nudge_token set environment = ?6, proven_at = ?7, rejected_at = null where "
        + Store.isUnchanged)
    bindUnchanged(update, finish)
    update.bind(6, finish.environment)
    update.bind(7, finish.finishedAt)
    return try changeTokens(update)
  }

  /// Runs a statement that changes tokens, so that what claims have read of them holds no more; returns how many rows
  /// it touched.
  func changeTokens(_ statement: Statement) throws(SQLiteError) -> Int64 {
    targets.forget()
    try statement.run()
    return database.changes
  }

  /// Whether every host that can be reached has answered BadDeviceToken to this nudge and token.
  private func isRefusedEverywhere(_ finish: Finish) throws(SQLiteError) -> Bool {
    let select = try database.prepare(
      """
      select distinct environment from nudge_attempt
      where nudge_id = ?1 and outcome = 'wrong_host'
        and token_hash = (select token_hash from nudge_attempt where id = ?2)
      """)
    select.bind(1, finish.nudge)
    select.bind(2, finish.attempt)
    var refusing: Set<String> = []
    while try select.step() {
      if let environment = select.string(0) { refusing.insert(environment) }
    }
    return refusing.isSuperset(of: environments)
  }

  /// A token that all hosts refuse is set aside until it is registered again; it is not deleted.
  private func setAside(_ finish: Finish) throws(SQLiteError) -> Int64 {
    let update = try database.prepare(
      "update nudge_token set rejected_at = ?6 where " + Store.isUnchanged)
    bindUnchanged(update, finish)
    update.bind(6, finish.finishedAt)
    return try changeTokens(update)
  }

  // MARK: Dead tokens go

  /// Removes every row of the token unless the app registered it again after the time that Apple names.
  ///
  /// Apple's timestamp is the moment at which the token was known to be no longer valid; without one, the
  /// start of the attempt stands for it; one in the future counts as now.
  private func dropToken(_ finish: Finish) throws(SQLiteError) -> Int64 {
    let invalidSince = min(finish.timestampAt ?? finish.startedAt, finish.finishedAt)
    // A text or a BLOB there, written past the view, is no time and sorts behind every number.
    let delete = try database.prepare(
      """
      delete from nudge_token
      where token = ?1 and (registered_at <= ?2 or typeof(registered_at) not in ('integer', 'real'))
      """)
    delete.bind(1, finish.token.digits)
    delete.bind(2, invalidSince)
    return try changeTokens(delete)
  }
}
