import SQLite

// A nudge is sent at most once to a device.
//
// This file is the only way to a request. Three things together make the promise:
//
// 1. The attempt row is written here, in the claim's transaction, with `may_have_buzzed` = 1. Two unique
//    indexes, (nudge_id, device_id, may_have_buzzed) and (nudge_id, token_hash, may_have_buzzed), let only one
//    such row exist per nudge and device and per nudge and token, whatever the code does, also across crashes
//    and when a token moves or changes. `may_have_buzzed` becomes NULL only with the outcomes `unsent` and
//    `wrong_host` (a CHECK holds it to that), and NULLs are distinct in a unique index
//    (https://www.sqlite.org/lang_createindex.html), so only what provably reached no phone is tried again.
// 2. The transaction is synced to the disk before COMMIT returns (`synchronous = extra`), and the relay hands
//    no byte of a request to TLS before that (`Dispatcher.stage` says so). What was made ready in a transaction
//    that fails is discarded, also when it fails because an attempt could not be written.
// 3. What a crash leaves without an outcome becomes `interrupted` and keeps `may_have_buzzed` (`recover`).

extension Store {
  /// How many attempts one statement writes where there are as many: to open the table and its indexes costs a
  /// quarter of what a row does.
  static let attemptsAtOnce = 16

  /// ?1 is the time, and nine parameters follow for each attempt.
  static func insertAttemptsSQL(_ count: Int) -> String {
    let rows = (0..<count).map { row in
      "(" + (0..<9).map { "?\(2 + 9 * row + $0), " }.joined() + "?1, 1)"
    }
    return """
      insert into nudge_attempt
        (id, nudge_id, device_id, token_kind, token_hash, environment, push_type, topic, apns_id, started_at,
         may_have_buzzed)
      values \(rows.joined(separator: ", "))
      """
  }

  /// Decides on an attempt and lets the dispatcher make its request ready; false when this claim has one to the
  /// device or the token already (several rows may name the same, where they were written past the view).
  func attempt(
    _ nudge: borrowing Nudge, _ target: borrowing Target, _ delivery: Delivery, environment: String,
    now: Int64, by dispatcher: any Dispatcher
  ) throws(SQLiteError) -> Bool {
    guard !drafts.hold(nudge.id, device: target.deviceID(), tokenHash: target.tokenHash()) else {
      return false
    }
    apnsID.removeAll(keepingCapacity: true)
    dispatcher.makeIdentifier(into: &apnsID)
    let id = nextAttemptID
    nextAttemptID = id + 1
    drafts.append(
      id: id, nudge: nudge.id, device: target.deviceID(), tokenKind: delivery.tokenKind,
      tokenHash: target.tokenHash(),
      environment: environment, pushType: dispatcher.attemptPushType, topic: dispatcher.attemptTopic,
      apnsID: apnsID)
    var timestamp: Int64?
    if let event = delivery.event {
      timestamp = try begin(event, attempt: id, nudge, target, now: now)
    }
    dispatcher.stage(attempt: id, apnsID: apnsID, nudge: nudge, target: target, timestamp: timestamp)
    return true
  }

  /// Writes the attempts that the claim has decided on; if one is refused, nothing of the transaction happens and
  /// nothing is sent.
  func writeAttempts(now: Int64) throws(SQLiteError) {
    let drafts = drafts
    var next = 0
    while next < drafts.list.count {
      let isMany = drafts.list.count - next >= Store.attemptsAtOnce
      var insert = (isMany ? statements.insertAttempts : statements.insertAttempt).execution()
      insert.bind(1, now)
      for row in 0..<(isMany ? Store.attemptsAtOnce : 1) {
        let place = Int32(2 + 9 * row)
        insert.bind(place, drafts.list[next].id)
        insert.bind(place + 1, drafts.list[next].nudge)
        insert.bind(place + 2, drafts.text(next, .device))
        insert.bind(place + 3, drafts.text(next, .tokenKind))
        insert.bind(place + 4, drafts.text(next, .tokenHash))
        insert.bind(place + 5, drafts.text(next, .environment))
        insert.bind(place + 6, drafts.text(next, .pushType))
        insert.bind(place + 7, drafts.text(next, .topic))
        insert.bind(place + 8, drafts.text(next, .apnsID))
        next += 1
      }
      _ = try insert.step()
    }
    if !flights.isEmpty {
      for draft in drafts.list { try remember(draft.id, of: draft.nudge) }
    }
  }

  /// What earlier attempts of a nudge mean for one more to this device with this token.
  struct History {
    /// One of them may have reached the device or the token.
    var mayHaveBuzzed = false
    /// How often the peer provably did not process it.
    var unsent = 0
    /// Environments that answered BadDeviceToken for this token.
    var wrongHosts: [String] = []

    /// The bound on the one thing that is tried again.
    static let mostUnsent = 3

    /// Whether nothing is left to try.
    var isOver: Bool { mayHaveBuzzed || unsent >= History.mostUnsent }
  }

  /// Reads the attempts of this nudge to this device or with its token.
  func history(_ nudge: borrowing Nudge, _ target: borrowing Target) throws(SQLiteError) -> History {
    var history = History()
    guard nudge.id <= highestAttemptedNudge else { return history }
    let select = statements.history
    select.bind(1, nudge.id)
    select.bind(2, target.deviceID())
    select.bind(3, target.tokenHash())
    defer { select.reset() }
    while try select.step() {
      if !select.isNull(0) {
        history.mayHaveBuzzed = true
        return history
      }
      let isThisToken = select.integer(3) != 0
      switch select.string(1) {
      case "unsent": history.unsent += 1
      case "wrong_host" where isThisToken:
        if let environment = select.string(2) { history.wrongHosts.append(environment) }
      default: break
      }
    }
    return history
  }
}
