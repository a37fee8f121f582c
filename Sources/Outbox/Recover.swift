import SQLite

extension Store {
  /// Gives every attempt that an earlier worker left in flight its outcome, `interrupted`; returns their number.
  ///
  /// Whether their requests were answered nobody knows, so they are never sent again. The look begins at the
  /// low-water mark, so that it does not grow with history.
  package func recover(now: Int64, in transaction: inout Transaction) throws(SQLiteError) -> Int64 {
    try rememberInterruptedStarts()
    let update = try database.prepare(
      """
      update nudge_attempt set outcome = 'interrupted', finished_at = max(?1, started_at)
      where id >= ?2 and outcome is null
      """)
    update.bind(1, now)
    update.bind(2, lowWater)
    try update.run()
    let interrupted = database.changes
    try keepLowWater(nextAttemptID, in: &transaction)
    return interrupted
  }

  /// Remembers the lowest attempt id that is in flight once this transaction is committed; nil for none.
  package func keepLowWater(_ oldestInFlight: Int64?, in transaction: inout Transaction) throws(SQLiteError) {
    let mark = oldestInFlight ?? nextAttemptID
    guard mark != lowWater else { return }
    let update = try database.prepare("update nudge_worker set low_water_attempt_id = ?1")
    update.bind(1, mark)
    try update.run()
    lowWater = mark
  }

  /// Removes settled rows that are older than `cutoff`, with their attempts: a bounded step of a walk through
  /// the history. Returns false once the walk is done.
  package func removeHistory(
    before cutoff: Int64, in transaction: inout Transaction
  ) throws(SQLiteError) -> Bool {
    let select = try database.prepare(
      "select id, state, settled_at, created_at from nudge_outbox where id > ?1 order by id limit 200")
    select.bind(1, retentionPosition)
    var old: [Int64] = []
    var examined = 0
    var reachedYoung = false
    while try select.step() {
      examined += 1
      retentionPosition = select.integer(0)
      let isOpen = select.string(1) == "pending" || select.string(1) == "waiting"
      let settledAt = select.optionalInteger(2) ?? .max
      if !isOpen && settledAt < cutoff {
        old.append(retentionPosition)
      } else if select.integer(3) >= cutoff {
        reachedYoung = true
        select.reset()
        break
      }
    }
    let attempts = try database.prepare("delete from nudge_attempt where nudge_id = ?1")
    let nudge = try database.prepare("delete from nudge_outbox where id = ?1")
    for id in old {
      attempts.bind(1, id)
      try attempts.run()
      nudge.bind(1, id)
      try nudge.run()
    }
    let isDone = reachedYoung || examined < 200
    if isDone {
      retentionPosition = 0
      let activities = try database.prepare("delete from nudge_activity where last_timestamp < ?1 / 1000")
      activities.bind(1, cutoff)
      try activities.run()
    }
    return !isDone
  }
}
