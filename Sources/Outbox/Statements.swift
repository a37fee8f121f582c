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
  let activityTargetsOfDevice: Statement
  let activityTargetsOnSurface: Statement
  let activityTargetsAnywhere: Statement
  let history: Statement
  let highestAttemptedNudge: Statement
  let insertAttempt: Statement
  let insertAttempts: Statement
  let closeClaimed: Statement

  // Keeping the order within a Live Activity.
  let nudge: Statement
  let newerOfActivity: Statement
  let pendingStart: Statement
  let waitingOfAddress: Statement
  let lastTimestamp: Statement
  let rememberActivity: Statement
  let awaitToken: Statement
  let wakeWaiting: Statement
  let wakeBehindStart: Statement
  let firstOfActivity: Statement

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
    // everybody. A Live Activity is also awaited on devices that have no token for it yet.
    let token = "t.device_id = d.device_id and t.kind = ?3 and t.scope = ?4"
    func targets(_ index: String, _ address: String, ofActivity: Bool) throws(SQLiteError) -> Statement {
      let order = index.isEmpty ? "" : "order by d.device_id"
      return try database.prepare(
        ofActivity
          ? """
          select \(Target.activityColumns) from nudge_device d \(index) left join nudge_token t on \(token)
            left join nudge_activity a on a.activity_id = ?4 and a.device_id = d.device_id
          where \(address) and d.device_id > ?5 \(order) limit ?6
          """
          : """
          select \(Target.columns) from nudge_device d \(index) cross join nudge_token t
          where \(address) and d.device_id > ?5 and \(token) \(order) limit ?6
          """)
    }
    let ofDevice = ("", "d.device_id = ?2 and d.recipient = ?1")
    let onSurface = ("indexed by nudge_device_address", "d.recipient = ?1 and d.surface = ?2")
    let anywhere = ("indexed by nudge_device_recipient", "d.recipient = ?1 and ?2 is not null")
    targetsOfDevice = try targets(ofDevice.0, ofDevice.1, ofActivity: false)
    targetsOnSurface = try targets(onSurface.0, onSurface.1, ofActivity: false)
    targetsAnywhere = try targets(anywhere.0, anywhere.1, ofActivity: false)
    activityTargetsOfDevice = try targets(ofDevice.0, ofDevice.1, ofActivity: true)
    activityTargetsOnSurface = try targets(onSurface.0, onSurface.1, ofActivity: true)
    activityTargetsAnywhere = try targets(anywhere.0, anywhere.1, ofActivity: true)
    history = try database.prepare(
      """
      select may_have_buzzed, outcome, environment, token_hash = ?3 from nudge_attempt
      where nudge_id = ?1 and device_id = ?2
      union all
      select may_have_buzzed, outcome, environment, 1 from nudge_attempt
      where nudge_id = ?1 and token_hash = ?3 and device_id <> ?2
      """)
    highestAttemptedNudge = try database.prepare("select max(nudge_id) from nudge_attempt")
    insertAttempt = try database.prepare(Store.insertAttemptsSQL(1))
    insertAttempts = try database.prepare(Store.insertAttemptsSQL(Store.attemptsAtOnce))
    closeClaimed = try database.prepare(
      """
      update nudge_outbox set state = 'attempted', settled_at = ?1
      where id between ?2 and ?3 and state = 'pending'
      """)

    // Live Activities. `live` repeats the condition of the partial index; ?1 is the activity, ?2 the nudge, ?3
    // the time, ?4 to ?6 a device with its recipient and surface.
    let live = """
      from nudge_outbox n indexed by nudge_outbox_activity
      where n.activity_id = ?1 and n.activity_id is not null and n.state in ('pending', 'waiting')
      """
    let dueOnDevice = """
      (n.not_before_at is null or n.not_before_at <= ?3) and coalesce(n.recipient, 'owner') = ?5
        and case when n.device_id is not null then n.device_id = ?4
          else coalesce(n.surface, 'phone') in ('*', ?6) end
        and not exists (select 1 from nudge_attempt b
          where b.nudge_id = n.id and b.device_id = ?4 and b.may_have_buzzed = 1)
      """
    nudge = try database.prepare("select \(Nudge.columns) from nudge_outbox where id = ?1")
    // ?7: this is an update; ?8: the newest start or end that was attempted there; ?9: look below it. An end reaches over later
    // updates, unless a start is to come between them.
    newerOfActivity = try database.prepare(
      """
      select n.id \(live) and case n.kind
          when 'activity_end' then n.id > ?2 or (?7 and n.id < ?2 and n.id >= ?8 and not exists (
            select 1 from nudge_outbox s indexed by nudge_outbox_activity
            where s.activity_id = ?1 and s.activity_id is not null and s.state in ('pending', 'waiting')
              and s.kind = 'activity_start' and s.id between n.id and ?2))
          when 'activity_update' then ?7 and n.id > ?2
          else 0 end
        and n.id < ?9 and \(dueOnDevice)
      order by n.id desc limit 1
      """)
    pendingStart = try database.prepare(
      """
      select 1 \(live) and n.kind = 'activity_start' and n.id < ?2 and \(dueOnDevice)
        and exists (select 1 from nudge_token t
          where t.device_id = ?4 and t.kind = 'activity_start' and t.scope = n.attributes_type)
      limit 1
      """)
    // ?3: this is an end. The address of the nudge itself is compared, word for word.
    waitingOfAddress = try database.prepare(
      """
      select n.id \(live) and n.state = 'waiting'
        and case n.kind when 'activity_update' then ?3 or n.id < ?2 else ?3 and n.id < ?2 end and n.id <> ?2
        and (n.device_id, coalesce(n.recipient, 'owner'),
          case when n.device_id is null then coalesce(n.surface, 'phone') end) is (
          select m.device_id, coalesce(m.recipient, 'owner'),
            case when m.device_id is null then coalesce(m.surface, 'phone') end
          from nudge_outbox m where m.id = ?2)
      """)
    lastTimestamp = try database.prepare(
      "select coalesce(last_timestamp, 0) from nudge_activity where activity_id = ?1 and device_id = ?2")
    rememberActivity = try database.prepare(
      """
      insert into nudge_activity (activity_id, device_id, last_timestamp, last_nudge_id, last_turn_id)
      values (?1, ?2, ?3, ?4, ?5)
      on conflict (activity_id, device_id) do update set last_timestamp = excluded.last_timestamp,
        last_nudge_id = max(coalesce(last_nudge_id, 0), excluded.last_nudge_id),
        last_turn_id = max(coalesce(last_turn_id, 0), coalesce(excluded.last_turn_id, 0))
      """)
    awaitToken = try database.prepare(
      """
      update nudge_outbox set state = 'waiting', detail = 'for the update token of its activity'
      where id = ?1 and state = 'pending'
      """)
    let wake = "update nudge_outbox set state = 'pending', detail = null where state = 'waiting' and "
    wakeWaiting = try database.prepare(wake + "activity_id = ?1")
    wakeBehindStart = try database.prepare(
      wake
        + "activity_id = (select activity_id from nudge_outbox where id = ?1 and kind = 'activity_start')")
    firstOfActivity = try database.prepare(
      """
      select null, min(n.id) \(live) and n.state = 'pending' and n.not_before_at is null having count(*)
      union all
      select n.not_before_at, min(n.id) \(live) and n.state = 'pending' and n.not_before_at = (
        select min(n.not_before_at) \(live) and n.state = 'pending') having count(*)
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
      update nudge_outbox set state = ?2, detail = ?3, settled_at = ?4
      where id = ?1 and state in ('pending', 'waiting')
      """)
    // A row with a detail has ended for a reason that still holds: cancelled, or expired on the way.
    reopenNudge = try database.prepare(
      """
      update nudge_outbox set state = 'pending', detail = null, settled_at = null
      where id = ?1 and ((state = 'attempted' and detail is null) or state = 'waiting')
      """)
  }
}
