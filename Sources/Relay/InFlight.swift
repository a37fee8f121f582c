import APNs

/// What the worker remembers of a push while it is on its way; everything else is in the attempt row.
struct InFlight {
  var attempt: Int64
  var nudge: Int64
  var apnsID: PushID
  /// Wall milliseconds.
  var startedAt: Int64
  /// Since the connection was dialled. The layout of an `Instant` is known at run time only, and so would be that of
  /// everything in the table.
  private var age: Duration
  var started: ContinuousClock.Instant { link.began + age }
  var link: Link
  var host: Int
  /// Which of the wheel's topics it carries.
  var topic: Int
  var keyGeneration: Int
  // The token's row as the claim saw it.
  var tokenID: Int64
  var registeredAt: Int64
  var environment: String?
  var isProven: Bool

  init(
    attempt: Int64, nudge: Int64, apnsID: PushID, startedAt: Int64, started: ContinuousClock.Instant,
    link: Link, host: Int, topic: Int, keyGeneration: Int, tokenID: Int64, registeredAt: Int64,
    environment: String?, isProven: Bool
  ) {
    self.attempt = attempt
    self.nudge = nudge
    self.apnsID = apnsID
    self.startedAt = startedAt
    age = link.began.duration(to: started)
    self.link = link
    self.host = host
    self.topic = topic
    self.keyGeneration = keyGeneration
    self.tokenID = tokenID
    self.registeredAt = registeredAt
    self.environment = environment
    self.isProven = isProven
  }
}

/// The pushes on their way, by the tag that their connection hands back; places are reused.
struct InFlightTable {
  private var entries: [InFlight?] = []
  private var free: [Int] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func insert(_ entry: consuming InFlight) -> UInt64 {
    count += 1
    if let place = free.popLast() {
      entries[place] = entry
      return UInt64(place)
    }
    entries.append(entry)
    return UInt64(entries.count - 1)
  }

  mutating func remove(_ tag: UInt64) -> InFlight? {
    guard let place = Int(exactly: tag), place < entries.count, let entry = entries[place].take() else {
      return nil
    }
    free.append(place)
    count -= 1
    return entry
  }

  /// The lowest attempt id on its way.
  var oldestAttempt: Int64? {
    var oldest: Int64?
    for place in entries.indices {
      if let attempt = entries[place]?.attempt { oldest = min(oldest ?? .max, attempt) }
    }
    return oldest
  }

  /// Empties the table.
  mutating func removeAll() -> [InFlight] {
    let all = entries.compactMap(\.self)
    entries.removeAll()
    free.removeAll()
    count = 0
    return all
  }
}
