import SQLite

/// Every statement of the worker's turn, compiled once. Each belongs to the file that runs it.
struct Statements {
  // Looking.
  let dataVersion: Statement
  let schemaVersion: Statement
  let newestVersion: Statement
  let lowWater: Statement
  let highestAttempt: Statement
  let look: [Statement]
  let nextDue: Statement
  let nextExpiry: Statement

  // Claiming.
  let pending: [Statement]
  let targetsOfDevice: Statement
  let targetsOnSurface: Statement
  let targetsAnywhere: Statement
  let history: Statement
  let highestAttemptedNudge: Statement
  let insertAttempt: Statement
  let closeClaimed: Statement

  // Settling.
  let acceptRun: Statement
  let finishAttempt: Statement
  let closeNudge: Statement
  let reopenNudge: Statement

  init(_ database: borrowing Database) throws(SQLiteError) {
    dataVersion = try database.prepare("pragma data_version")
    schemaVersion = try database.prepare("pragma schema_version")
    newestVersion = try database.prepare("select max(version) from nudge_schema")
    lowWater = try database.prepare("select low_water_attempt_id from nudge_worker where id = 1")
    highestAttempt = try database.prepare("select max(id) from nudge_attempt")

    // The lanes of `Scan.Lane`, in its order. (Below the lowest integer there is still minus infinity.) Each repeats the condition of its partial index and names the
    // index, since after an ANALYZE the planner may prefer another.
    let lanes = [
      """
      from nudge_outbox indexed by nudge_outbox_dated
      where state = 'pending' and not_before_at is not null
        and (not_before_at, id) > (case ?1 when \(Int64.min) then -9e999 else ?1 end, ?2)
        and not_before_at <= ?3
      order by not_before_at, id limit ?4
      """,
      """
      from nudge_outbox indexed by nudge_outbox_undated
      where state = 'pending' and not_before_at is null
        and ?1 is not null and id > ?2 and ?3 is not null
      order by id limit ?4
      """,
      """
      from nudge_outbox indexed by nudge_outbox_dated
      where state = 'pending' and not_before_at is not null
        and not_before_at > \(legalTimes.upperBound) and ?1 is not null and ?2 is not null and ?3 is not null
      order by not_before_at, id limit ?4
      """,
    ]
    var look: [Statement] = []
    var pending: [Statement] = []
    for lane in lanes {
      look.append(try database.prepare("select 1 " + lane))
      pending.append(try database.prepare("select \(Nudge.columns) " + lane))
    }
    self.look = look
    self.pending = pending
    nextDue = try database.prepare(
      """
      select not_before_at from nudge_outbox indexed by nudge_outbox_dated
      where state = 'pending' and not_before_at is not null
        and not_before_at > ?1 and not_before_at <= \(legalTimes.upperBound)
      order by not_before_at limit 1
      """)
    nextExpiry = try database.prepare(
      """
      select expires_at from nudge_outbox indexed by nudge_outbox_expiring
      where state = 'pending' and expires_at is not null
        and expires_at > ?1 and expires_at <= \(legalTimes.upperBound)
      order by expires_at limit 1
      """)

    // Where nearly all devices have one recipient, an ANALYZE would let the planner walk through the devices of
    // everybody.
    func targets(_ index: String) -> String {
      "select \(Target.columns) from nudge_device d \(index) cross join nudge_token t "
    }
    let token = "t.device_id = d.device_id and t.kind = ?3 and t.scope = ?4"
    targetsOfDevice = try database.prepare(
      targets("") + "where d.device_id = ?2 and d.recipient = ?1 and d.device_id > ?5 and \(token)")
    targetsOnSurface = try database.prepare(
      targets("indexed by nudge_device_address")
        + """
        where d.recipient = ?1 and d.surface = ?2 and d.device_id > ?5 and \(token)
        order by d.device_id
        """)
    targetsAnywhere = try database.prepare(
      targets("indexed by nudge_device_recipient")
        + """
        where d.recipient = ?1 and ?2 is not null and d.device_id > ?5 and \(token)
        order by d.device_id
        """)
    history = try database.prepare(
      """
      select may_have_buzzed, outcome, environment, token_hash = ?3 from nudge_attempt
      where nudge_id = ?1 and device_id = ?2
      union all
      select may_have_buzzed, outcome, environment, 1 from nudge_attempt
      where nudge_id = ?1 and token_hash = ?3 and device_id <> ?2
      """)
    highestAttemptedNudge = try database.prepare("select max(nudge_id) from nudge_attempt")
    insertAttempt = try database.prepare(Store.insertAttemptSQL)
    closeClaimed = try database.prepare(
      """
      update nudge_outbox set state = 'attempted', settled_at = ?1
      where id between ?2 and ?3 and state = 'pending'
      """)

    acceptRun = try database.prepare(
      """
      update nudge_attempt set outcome = 'accepted', status = 200, finished_at = ?1
      where id between ?2 and ?3 and outcome is null
      """)
    finishAttempt = try database.prepare(
      """
      update nudge_attempt
      set outcome = ?3, status = ?4, reason = ?5, apns_timestamp_at = ?6, apns_unique_id = ?7,
        finished_at = ?8, may_have_buzzed = case when ?3 in ('unsent', 'wrong_host') then null else 1 end
      where id = ?1 and apns_id = ?2 and outcome is null
      """)
    closeNudge = try database.prepare(
      """
      update nudge_outbox set state = ?2, detail = ?3, settled_at = ?4 where id = ?1 and state = 'pending'
      """)
    // A row with a detail has ended for a reason that still holds: cancelled, or expired on the way.
    reopenNudge = try database.prepare(
      """
      update nudge_outbox set state = 'pending', settled_at = null
      where id = ?1 and state = 'attempted' and detail is null
      """)
  }
}
