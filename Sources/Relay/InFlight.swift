import APNs

/// What the worker remembers of a push while it is on its way; everything else is in the attempt row.
struct InFlight {
  var attempt: Int64
  var nudge: Int64
  var apnsID: PushID
  /// Wall milliseconds.
  var startedAt: Int64
  var started: ContinuousClock.Instant
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
}

/// The pushes on their way, by the tag that their connection hands back; places are reused.
struct InFlightTable {
  private var entries: [InFlight?] = []
  private var free: [Int] = []
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func insert(_ entry: InFlight) -> UInt64 {
    count += 1
    if let place = free.popLast() {
      entries[place] = entry
      return UInt64(place)
    }
    entries.append(entry)
    return UInt64(entries.count - 1)
  }

  mutating func remove(_ tag: UInt64) -> InFlight? {
    guard let place = Int(exactly: tag), place < entries.count, let entry = entries[place] else { return nil }
    entries[place] = nil
    free.append(place)
    count -= 1
    return entry
  }

  /// The lowest attempt id on its way.
  var oldestAttempt: Int64? {
    var oldest: Int64?
    for entry in entries {
      if let attempt = entry?.attempt { oldest = min(oldest ?? .max, attempt) }
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
