import SQLite

extension Store {
  /// Ends rows whose time has run out although no claim looks at them, because their host is paused or they
  /// wait for a token.
  ///
  /// Returns whether more may be left for another call.
  package func expire(now: Int64, limit: Int64, in transaction: inout Transaction) throws(SQLiteError) -> Bool
  {
    highestAttemptedNudge = try database.integer("select max(nudge_id) from nudge_attempt") ?? 0
    let ids = try expired(now: now, limit: limit)
    for id in ids { try close(Closing(id: id, state: "expired", detail: nil), now: now) }
    if isWaitingOver(now: now) && ids.count < limit { waitingExpiry = try expiryOfWaiting(nil) }
    return ids.count >= limit
  }

  /// Whether rows may have run out unseen.
  package func mayHaveExpired(now: Int64) -> Bool { scan.hasLeftovers || isWaitingOver(now: now) }

  private func isWaitingOver(now: Int64) -> Bool { waitingExpiry.map { $0 <= now } ?? false }

  /// Whether `expire` has anything to do; read-only.
  package func hasExpired(now: Int64) throws(SQLiteError) -> Bool {
    if try !expired(now: now, limit: 1).isEmpty { return true }
    if isWaitingOver(now: now) { waitingExpiry = try expiryOfWaiting(nil) }
    return false
  }

  /// When a row of a Live Activity runs out: an update or an end, whose own default stands in `ActivityEvent`.
  private static let activityExpiry = """
    coalesce(expires_at, max(created_at, coalesce(not_before_at, created_at)) + \(ActivityEvent.longestActive))
    """

  /// When the first of the rows that wait for a token runs out, or the one that is named.
  func expiryOfWaiting(_ nudge: Int64?) throws(SQLiteError) -> Int64? {
    try database.integer(
      "select min(\(Store.activityExpiry)) from nudge_outbox where state = 'waiting'"
        + (nudge.map { " and id = \($0)" } ?? ""))
  }

  private func expired(now: Int64, limit: Int64) throws(SQLiteError) -> [Int64] {
    var ids: [Int64] = []
    // Rows with an expiry of their own have an index for it.
    let dated = try database.prepare(
      """
      select id from nudge_outbox indexed by nudge_outbox_expiring
      where state = 'pending' and expires_at is not null
        and expires_at between \(legalTimes.lowerBound) and ?1 limit ?2
      """)
    dated.bind(1, now)
    dated.bind(2, limit)
    while try dated.step() { ids.append(dated.integer(0)) }

    let ofActivities = try database.prepare(
      """
      select id from nudge_outbox indexed by nudge_outbox_activity
      where activity_id is not null and state in ('pending', 'waiting')
        and (state = 'waiting' or kind in ('activity_update', 'activity_end'))
        and \(Store.activityExpiry) between \(legalTimes.lowerBound) and ?1 limit ?2
      """)
    ofActivities.bind(1, now)
    ofActivities.bind(2, limit)
    while try ofActivities.step() { ids.append(ofActivities.integer(0)) }

    // The others expire in the order in which they became due, which is the order of their lane: the first
    // one that still has time ends the look. (One with an odd created_at in front only delays the others
    // until a claim comes by.)
    for lane in [
      """
      select id, created_at, expires_at, kind from nudge_outbox indexed by nudge_outbox_undated
      where state = 'pending' and not_before_at is null and ?1 is not null order by id
      """,
      """
      select id, max(created_at, not_before_at), expires_at, kind from nudge_outbox indexed by nudge_outbox_dated
      where state = 'pending' and not_before_at is not null and not_before_at <= ?1
      order by not_before_at, id
      """,
    ] {
      let rows = try database.prepare(lane)
      rows.bind(1, now)
      defer { rows.reset() }
      var examined = 0
      while Int64(ids.count) < limit, examined < 10 * ClaimBounds.rows, try rows.step() {
        examined += 1
        guard rows.isNull(2), rows.storageClass(1) == .integer, legalTimes.contains(rows.integer(1)),
          ActivityEvent(rows.bytes(3))?.expireAfter == nil
        else {
          continue
        }
        guard rows.integer(1) + expireAfter <= now else { break }
        ids.append(rows.integer(0))
      }
    }
    return ids
  }

  /// The next wall time at which something happens by itself: a row becomes due or runs out.
  package func nextTime(after now: Int64) throws(SQLiteError) -> Int64? {
    var next = scan.revisitAt.flatMap { $0 > now ? $0 : nil }
    for statement in [statements.nextDue, statements.nextExpiry] {
      statement.bind(1, now)
      defer { statement.reset() }
      if try statement.step() {
        next = min(next ?? .max, statement.integer(0))
      }
    }
    return next
  }
}
