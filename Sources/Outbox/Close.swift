import SQLite

extension Store {
  /// Ends the nudges whose last device was claimed, a statement per run of neighbouring ids.
  func closeClaimed(now: Int64) throws(SQLiteError) {
    claimed.sort()
    var first = 0
    while first < claimed.count {
      var last = first
      while last + 1 < claimed.count, claimed[last + 1] == claimed[last] + 1 { last += 1 }
      statements.closeClaimed.bind(1, now)
      statements.closeClaimed.bind(2, claimed[first])
      statements.closeClaimed.bind(3, claimed[last])
      try statements.closeClaimed.run()
      first = last + 1
    }
  }

  /// Ends a nudge with words. Any attempt makes it `attempted`, and then the words say what was left.
  func close(_ closing: Closing, now: Int64) throws(SQLiteError) {
    fanOuts[closing.id] = nil
    var state = closing.state
    var detail = closing.detail
    let devices = try attemptedDevices(closing.id)
    if devices.attempted > 0 {
      state = "attempted"
      if closing.state == "expired" {
        let all = try max(addressedDevices(closing.id), devices.attempted)
        detail = "expired before \(all - devices.done) of \(all) devices"
      } else if let words = closing.detail {
        detail = "\(closing.state): \(words)"
      }
    }
    statements.closeNudge.bind(1, closing.id)
    statements.closeNudge.bind(2, state)
    statements.closeNudge.bind(3, detail)
    statements.closeNudge.bind(4, now)
    try statements.closeNudge.run()
    // A start that will not come leaves nothing to wait for.
    statements.wakeBehindStart.bind(1, closing.id)
    try statements.wakeBehindStart.run()
    if database.changes > 0 { scan.restart() }
  }

  /// Lets a nudge wait until the update token of its activity is registered; a trigger of the schema wakes it.
  func awaitToken(_ nudge: Int64) throws(SQLiteError) {
    statements.awaitToken.bind(1, nudge)
    try statements.awaitToken.run()
    let expiry = try expiryOfWaiting(nudge)
    waitingExpiry = [waitingExpiry, expiry].compactMap { $0 }.min()
  }

  /// How many devices have an attempt of this nudge, and for how many of those nothing is left to try.
  private func attemptedDevices(_ nudge: Int64) throws(SQLiteError) -> (attempted: Int64, done: Int64) {
    guard nudge <= highestAttemptedNudge else { return (0, 0) }
    let select = try database.prepare(
      """
      select count(*), coalesce(sum(is_done), 0) from (
        select max(may_have_buzzed) is not null or sum(outcome is 'unsent') >= ?2
          or count(distinct case when outcome = 'wrong_host' then environment end) >= ?3 as is_done
        from nudge_attempt where nudge_id = ?1 group by device_id)
      """)
    select.bind(1, nudge)
    select.bind(2, Int64(History.mostUnsent))
    select.bind(3, Int64(environments.count))
    _ = try select.step()
    return (select.integer(0), select.integer(1))
  }

  /// How many devices a nudge is addressed to now, with or without a token of the right kind.
  private func addressedDevices(_ nudge: Int64) throws(SQLiteError) -> Int64 {
    let select = try database.prepare(
      """
      select count(*) from nudge_outbox n
        join nudge_device d on d.recipient = coalesce(n.recipient, 'owner')
          and (case when n.device_id is not null then d.device_id = n.device_id
            else coalesce(n.surface, 'phone') in ('*', d.surface) end)
      where n.id = ?1
      """)
    select.bind(1, nudge)
    _ = try select.step()
    return select.integer(0)
  }
}
