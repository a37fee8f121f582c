/// What is to be done at its time, the earliest first; of two with the same time, the one that came first.
struct Agenda<Item> {
  private var entries: [(due: ContinuousClock.Instant, item: Item)] = []

  /// When there is something to do.
  var due: ContinuousClock.Instant? { entries.first?.due }

  mutating func add(_ item: Item, due: ContinuousClock.Instant) {
    let place = entries.lastIndex { $0.due <= due }.map { $0 + 1 } ?? 0
    entries.insert((due, item), at: place)
  }

  /// Takes out all whose time has come.
  mutating func takeDue(now: ContinuousClock.Instant) -> [Item] {
    guard let due, due <= now else { return [] }
    let end = entries.firstIndex { $0.due > now } ?? entries.count
    defer { entries.removeFirst(end) }
    return entries[..<end].map(\.item)
  }
}
