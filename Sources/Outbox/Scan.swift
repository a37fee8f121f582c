import SQLite

/// How far the queue has been looked through, so that what waits is passed and not examined again each turn.
///
/// The queue has three lanes. In each, every environment has a position: up to there, nothing is left that
/// could go over that environment's host. When a scan leaves nothing behind, all positions return to the
/// start; then a lane is simply read from its first pending row.
package struct Scan {
  /// A way through the pending rows; each is one index of the schema.
  enum Lane: Int, CaseIterable {
    /// Rows with a `not_before_at` that has come, in its order.
    case dated
    /// Rows without one, in the order of their ids.
    case undated
    /// Rows whose `not_before_at` is no time at all; they sort behind every legal time.
    case misdated
  }

  /// A place in a lane: `at` is the not_before_at (0 in the undated lane).
  struct Key: Comparable {
    var at: Int64 = .min
    var id: Int64 = .min

    static let start = Key()

    static func < (left: Key, right: Key) -> Bool {
      left.at == right.at ? left.id < right.id : left.at < right.at
    }

    /// The last place before this one.
    var before: Key {
      if id > .min { return Key(at: at, id: id - 1) }
      return at > .min ? Key(at: at - 1, id: .max) : .start
    }
  }

  /// The positions in one lane: one for each environment, and one for the look at rows that nobody can send
  /// yet (they are examined once, so that what is invalid is settled although no host is up).
  struct Positions {
    private var environments: [String: Key] = [:]
    private var firstLook: Key = .start
    /// Environments that rows before their position wait for.
    private(set) var waitingFor: Set<String> = []
    /// While fan-outs are on their way: how far the turns have come that begin behind them.
    var rotation: Key?

    /// Where a claim has to begin; nil when it has nobody to look for.
    func from(_ bounds: borrowing ClaimBounds) -> Key? {
      var from: Key? = bounds.isFirstLook ? firstLook : nil
      for environment in bounds.environments {
        let key = environments[environment] ?? .start
        from = min(from ?? key, key)
      }
      return from
    }

    /// Records that a claim has looked through the lane up to `last`.
    ///
    /// - Parameter isRevisited: rows wait for a time of their own and are to be passed until then.
    mutating func advance(
      to last: Key, reachedEnd: Bool, leftBehind: [String: Key], within bounds: borrowing ClaimBounds,
      isRevisited: Bool
    ) {
      for environment in bounds.environments {
        if let left = leftBehind[environment] {
          environments[environment] = left.before
        } else {
          environments[environment] = max(environments[environment] ?? .start, last)
          if reachedEnd { waitingFor.remove(environment) }
        }
      }
      // Another host's claim may find that a row which was passed needs this one after all: a device further on
      // in its walk, or a token that was registered anew.
      for (environment, left) in leftBehind where !bounds.environments.contains(environment) {
        if let position = environments[environment], position >= left {
          environments[environment] = left.before
        }
      }
      if bounds.isFirstLook { firstLook = max(firstLook, last) }
      waitingFor.formUnion(leftBehind.keys)
      if reachedEnd { forgetIfEmpty(isRevisited: isRevisited) }
    }

    /// Records that no row stands behind the position that a claim would begin at.
    mutating func rest(within bounds: borrowing ClaimBounds, isRevisited: Bool) {
      waitingFor.subtract(bounds.environments)
      forgetIfEmpty(isRevisited: isRevisited)
    }

    /// With nobody waiting, the lane can be read from its first row again.
    private mutating func forgetIfEmpty(isRevisited: Bool) {
      guard waitingFor.isEmpty && !isRevisited else { return }
      environments.removeAll(keepingCapacity: true)
      firstLook = .start
    }

    /// Lets the next claim begin at `key` at the latest.
    mutating func goBack(before key: Key) {
      for (environment, position) in environments where position >= key {
        environments[environment] = key.before
      }
      if firstLook >= key { firstLook = key.before }
    }
  }

  /// How many rows were examined since all positions stood at the start.
  package internal(set) var examined = 0
  /// Whether the last claim began behind the fan-outs.
  var isTurned = false
  var lanes: [Positions] = Array(repeating: Positions(), count: Lane.allCases.count)
  /// When something that is paused for itself (a device, a topic) may be tried again, in wall milliseconds.
  package internal(set) var revisitAt: Int64?

  /// Environments that pending, due rows were left behind for.
  package var waitingFor: Set<String> {
    lanes.reduce(into: []) { $0.formUnion($1.waitingFor) }
  }

  /// Whether any pending, due row was left behind.
  package var hasLeftovers: Bool { revisitAt != nil || lanes.contains { !$0.waitingFor.isEmpty } }

  subscript(lane: Lane) -> Positions {
    get { lanes[lane.rawValue] }
    set { lanes[lane.rawValue] = newValue }
  }

  /// Forgets all positions: the next claim looks at every pending row again.
  package mutating func restart() {
    self = Scan()
  }

  /// Lets the next claim find a nudge that has become pending again.
  mutating func reconsider(_ id: Int64, notBeforeAt: Int64?) {
    let lane: Lane = notBeforeAt == nil ? .undated : .dated
    lanes[lane.rawValue].goBack(before: Key(at: notBeforeAt ?? 0, id: id))
  }
}

extension Statement {
  /// Binds the parameters that all lane statements share.
  func bindLane(_ from: Scan.Key, now: Int64, limit: Int64) {
    bind(1, from.at)
    bind(2, from.id)
    bind(3, now)
    bind(4, limit)
  }
}
