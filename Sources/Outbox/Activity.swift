import SQLite

// What the worker remembers of Live Activities, in `nudge_activity` and while requests are on their way.

/// What a nudge does to a Live Activity; the raw value is the word of the `kind` column.
enum ActivityEvent: String {
  case start = "activity_start"
  case update = "activity_update"
  case end = "activity_end"

  init?(_ kind: Span<UInt8>) {
    guard kind.count > 9, kind[0] == UInt8(ascii: "a"), kind[8] == UInt8(ascii: "_") else { return nil }
    self.init(rawValue: kind.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
  }

  /// How long it may be sent when the row does not say, in milliseconds: a start grows old like an alert (nil),
  /// the others as long as the activity itself can be active.
  var expireAfter: Int64? { self == .start ? nil : ActivityEvent.longestActive }

  /// How long an activity is active at most (Apple, "Displaying live data with Live Activities").
  static let longestActive: Int64 = 8 * 3_600_000
}

extension Nudge {
  /// What it does to a Live Activity; nil for every other kind.
  var activityEvent: ActivityEvent? { ActivityEvent(bytes(.kind)) }

  /// Throws words when the columns that only Live Activities have are unfit.
  func checkActivity() throws(Invalid) {
    guard storageClass(.activityID) == .text, bytes(.activityID).count > 0 else {
      throw Invalid(
        isNull(.activityID)
          ? "activity_id is NULL: give every nudge of one activity the same id"
          : "activity_id is not a text, or empty")
    }
    let id = bytes(.activityID)
    guard !id.indices.contains(where: { id[$0] == 0 }) else { throw Invalid("activity_id has a NUL byte") }
    _ = try time(.staleAt)
    _ = try time(.dismissAt)
  }
}

/// A Live Activity on one device.
struct ActivityPlace: Hashable {
  let device: [UInt8]
  let activity: [UInt8]
}

/// The Live Activities that have a request on its way.
///
/// They need not outlive the process: what a crash leaves in flight is settled as interrupted before the first
/// claim.
struct ActivityFlights {
  /// One request, as the settle needs it.
  struct Flight {
    let place: ActivityPlace
    let event: ActivityEvent
    /// The token that was sent to, as its row was.
    let token: [UInt8]
    let registeredAt: Int64
    /// What the request carries, in seconds.
    let timestamp: Int64
  }

  private var flights: [Int64: Flight] = [:]
  private var busy: Set<ActivityPlace> = []
  /// Activities with rows that a claim has passed because of a request on its way.
  private(set) var held: Set<[UInt8]> = []

  /// Whether no Live Activity has anything on its way.
  var isEmpty: Bool { flights.isEmpty }

  /// Whether something is on its way there: one request at a time, so that none overtakes another.
  func isBusy(_ place: ActivityPlace) -> Bool { !busy.isEmpty && busy.contains(place) }

  subscript(attempt: Int64) -> Flight? { flights[attempt] }

  mutating func begin(_ flight: Flight, attempt: Int64) {
    flights[attempt] = flight
    busy.insert(flight.place)
  }

  /// The attempt has ended, and what was held for its activity is to be looked at again.
  mutating func end(_ attempt: Int64) -> Flight? {
    guard let flight = flights.removeValue(forKey: attempt) else { return nil }
    busy.remove(flight.place)
    held.remove(flight.place.activity)
    return flight
  }

  mutating func hold(_ activity: [UInt8]) { held.insert(activity) }
}

extension Store {
  /// Whether rows were passed that are still to be looked at, so that one that a registration wakes may stand
  /// before the positions of the scan.
  package var hasPassedRows: Bool { scan.hasLeftovers || !flights.held.isEmpty }

  /// Begins a request about a Live Activity; returns its `timestamp` in seconds.
  ///
  /// It is now, but always later than the one before in that activity, whatever the clock has done since: a
  /// phone drops what is not newer than what it shows.
  func begin(
    _ event: ActivityEvent, attempt: Int64, _ nudge: borrowing Nudge, _ target: borrowing Target, now: Int64
  ) throws(SQLiteError) -> Int64 {
    let place = ActivityPlace(
      device: Array(copying: target.deviceID()), activity: Array(copying: nudge.bytes(.activityID)))
    let last = statements.lastTimestamp
    last.bind(1, place.activity)
    last.bind(2, place.device)
    defer { last.reset() }
    let timestamp = try last.step() ? max(now / 1000, last.integer(0) + 1) : now / 1000
    flights.begin(
      ActivityFlights.Flight(
        place: place, event: event, token: Array(copying: target.token()),
        registeredAt: target.registeredAt, timestamp: timestamp), attempt: attempt)
    return timestamp
  }

  /// Remembers what an attempt is for its Live Activity, if it is about one, in the transaction that writes it.
  func remember(_ attempt: Int64, of nudge: Int64) throws(SQLiteError) {
    guard let flight = flights[attempt] else { return }
    let remember = statements.rememberActivity
    remember.bind(1, flight.place.activity)
    remember.bind(2, flight.place.device)
    remember.bind(3, flight.timestamp)
    remember.bind(4, nudge)
    remember.bind(5, flight.event == .update ? nil : nudge)
    try remember.run()
  }

  /// Draws the conclusions from the end of an attempt for the activity that it was about; returns how many
  /// nudges have something left to try.
  func settleActivity(_ finish: Finish) throws(SQLiteError) -> Int64 {
    guard let flight = flights.end(finish.attempt) else { return 0 }
    var hasNews = flight.event == .start
    switch (flight.event, finish.outcome) {
    case (.start, .accepted), (.start, .unanswered), (.start, .interrupted):
      // Its card may be there. The time of the request: the phone may register its token before the answer.
      try open(flight.place, at: finish.startedAt)
    case (.end, .accepted):
      try retireToken(of: flight)
      try mark(flight.place, "ended_at = ?3", at: finish.finishedAt)
      hasNews = true
    case (.update, .deadToken), (.end, .deadToken):
      // Not if it was renewed meanwhile, nor if it was left over from before the last start.
      let sql = """
        ended_at = case when coalesce(started_at, 0) > ?4 or exists (
          select 1 from nudge_token where device_id = ?2 and kind = 'activity_update' and scope = ?1)
          then ended_at else ?3 end
        """
      try mark(flight.place, sql, at: finish.finishedAt, registeredAt: flight.registeredAt)
      hasNews = true
    default: break
    }
    return try wake(flight.place.activity, waiting: hasNews)
  }

  /// Starts that an earlier worker left in flight may have reached their phones: what comes next waits for the
  /// tokens of those.
  func rememberInterruptedStarts() throws(SQLiteError) {
    let starts = try database.prepare(
      """
      select a.device_id, n.activity_id, a.started_at
      from nudge_attempt a cross join nudge_outbox n on n.id = a.nudge_id
      where a.id >= ?1 and a.outcome is null and n.kind = 'activity_start'
      """)
    starts.bind(1, lowWater)
    while try starts.step() {
      let place = ActivityPlace(
        device: Array(copying: starts.bytes(0)), activity: Array(copying: starts.bytes(1)))
      try open(place, at: starts.integer(2))
    }
  }

  /// A start has opened the activity there, or may have.
  private func open(_ place: ActivityPlace, at time: Int64) throws(SQLiteError) {
    try mark(place, "started_at = ?3, ended_at = null", at: time)
  }

  private func mark(
    _ place: ActivityPlace, _ assignment: String, at time: Int64, registeredAt: Int64? = nil
  ) throws(SQLiteError) {
    let update = try database.prepare(
      "update nudge_activity set \(assignment) where activity_id = ?1 and device_id = ?2")
    update.bind(1, place.activity)
    update.bind(2, place.device)
    update.bind(3, time)
    if let registeredAt { update.bind(4, registeredAt) }
    try update.run()
  }

  /// The activity is over there, so its token is good for nothing; one that was registered meanwhile stays.
  private func retireToken(of flight: ActivityFlights.Flight) throws(SQLiteError) {
    let delete = try database.prepare(
      """
      delete from nudge_token
      where device_id = ?1 and kind = 'activity_update' and scope = ?2 and token = ?3 and registered_at is ?4
      """)
    delete.bind(1, flight.place.device)
    delete.bind(2, flight.place.activity)
    delete.bind(3, flight.token)
    delete.bind(4, flight.registeredAt)
    _ = try changeTokens(delete)
  }

  /// Lets the next claim look at the rows of an activity again, at those that wait too if there is news for
  /// them.
  private func wake(_ activity: [UInt8], waiting: Bool) throws(SQLiteError) -> Int64 {
    if waiting {
      statements.wakeWaiting.bind(1, activity)
      try statements.wakeWaiting.run()
    }
    let first = statements.firstOfActivity
    first.bind(1, activity)
    defer { first.reset() }
    var found: Int64 = 0
    while try first.step() {
      scan.reconsider(first.integer(1), notBeforeAt: first.optionalInteger(0))
      found = 1
    }
    return found
  }
}
