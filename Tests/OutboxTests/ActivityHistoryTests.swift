import SQLite
import Testing

@testable import Outbox

/// Every short history of one activity on two phones, and what has to hold whatever the order of events is.
///
/// The rules are told here a second time, from the list of what was sent and answered, without SQL.
@Suite("Histories of a Live Activity")
struct ActivityHistoryTests {
  enum Event: String, CaseIterable {
    case start, update, end, updateOfOne
    case register, rotate
    case accepted, unsent, deadToken, unanswered
    case restart, back, forth
  }

  @Test("all histories of three events after a start keep the order", arguments: Event.allCases)
  func exhaustive(first: Event) throws {
    let world = try World(environments: ["production"])
    for second in Event.allCases {
      for third in Event.allCases {
        try History([.start, .accepted, first, second, third], in: world).run()
      }
    }
  }

  @Test("long histories at random keep the order", arguments: 1...20)
  func random(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let events = (0..<120).map { _ in
      // Rows and answers come more often than the clock steps.
      let likely: [Event] = [
        .start, .update, .update, .end, .updateOfOne, .register, .accepted, .accepted, .unsent,
      ]
      return Bool.random(using: &generator)
        ? likely.randomElement(using: &generator) ?? .update
        : Event.allCases.randomElement(using: &generator) ?? .update
    }
    try History(events, in: World(environments: ["production"])).run()
  }

  /// What one phone has seen, in the order in which it was sent.
  private struct Seen {
    var staged: Staged
    var kind: String
    var outcome: Outcome?
  }

  private final class History {
    static let phones = ["one", "two"]
    let world: World
    let turn: Turn
    var events: [Event]
    var sent: [Seen] = []
    var inFlight: [Int] = []
    /// Phones that have registered a token since their activity was last over.
    var tokens = 0
    let rooms = ["production": 20]

    /// Begins with an empty outbox and two phones that can be started by push.
    init(_ events: [Event], in world: World) throws {
      self.events = events
      self.world = world
      try world.sql(
        """
        delete from nudge_outbox; delete from nudge_attempt; delete from nudge_device; delete from nudge_token;
        delete from nudge_activity; update nudge_worker set low_water_attempt_id = 0
        """)
      try world.restart()
      turn = try Turn(History.phones, in: world)
    }

    func run() throws {
      for event in events {
        try apply(event)
        try claim()
        check()
      }
      try finish()
    }

    private func apply(_ event: Event) throws {
      world.now += 1
      switch event {
      case .start: try turn.row("start")
      case .update: try turn.row("update")
      case .end: try turn.row("end")
      case .updateOfOne: try turn.row("update", ["device_id": "'one'"])
      case .register: for phone in History.phones { try register(phone) }
      case .rotate: try register("two")
      case .accepted: try answer(.accepted)
      case .unsent: try answer(.unsent)
      case .deadToken: try answer(.deadToken)
      case .unanswered: try answer(.unanswered)
      case .restart:
        try turn.restart()
        for index in inFlight { sent[index].outcome = .interrupted }
        inFlight = []
      case .back: world.now -= 100_000
      case .forth: world.now += 3000
      }
    }

    private func register(_ phone: String) throws {
      tokens += 1
      try turn.adopt(phone, token: World.token("\(phone) \(tokens)"))
    }

    /// The first request that is on its way ends.
    private func answer(_ outcome: Outcome) throws {
      guard let index = inFlight.first else { return }
      inFlight.removeFirst()
      sent[index].outcome = outcome
      try world.turn(rooms, finishes: [world.finish(sent[index].staged, outcome)], claims: false)
    }

    private func claim() throws {
      for staged in try world.drain(rooms, most: 50) {
        let kind = try world.backend.text("select kind from nudge_outbox where id = \(staged.nudge)") ?? ""
        inFlight.append(sent.count)
        sent.append(Seen(staged: staged, kind: kind))
      }
    }

    func check() {
      let story = Comment(
        rawValue:
          "\(events.map(\.rawValue)): \(sent.map { "\($0.staged.device) \($0.kind) \($0.staged.nudge)" })")
      for phone in History.phones {
        let seen = sent.filter { $0.staged.device == phone }
        // One at a time.
        #expect(seen.filter { $0.outcome == nil }.count <= 1, story)
        // The timestamp neither falls nor repeats.
        let stamps = seen.map { $0.staged.timestamp ?? 0 }
        #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $0 < $1 }, story)
        var newest: Int64 = 0
        var newestTurn: Int64 = 0
        var isOver = false
        for entry in seen {
          let id = entry.staged.nudge
          switch entry.kind {
          case "activity_update":
            #expect(id >= newest, story)
            #expect(!isOver, story)
          case "activity_end":
            #expect(id >= newestTurn, story)
            #expect(!isOver, story)
            newestTurn = max(newestTurn, id)
          default: newestTurn = max(newestTurn, id)
          }
          newest = max(newest, id)
          // A token that is registered after the end is a new activity; then the phone is asked by that one only.
          if entry.kind == "activity_end", entry.outcome == .accepted { isOver = true }
          if entry.kind == "activity_start", entry.outcome == .accepted { isOver = false }
          if isOver, events.contains(.register) || events.contains(.rotate) { isOver = false }
        }
        // One start, ever, for each row that asks for one.
        let starts = seen.filter { $0.kind == "activity_start" && $0.outcome != .unsent }.map(\.staged.nudge)
        #expect(Set(starts).count == starts.count, story)
      }
    }

    /// Everything comes to its end: with a token on each phone and all answers in, nothing waits or is held.
    func finish() throws {
      let story = Comment(rawValue: "\(events.map(\.rawValue))")
      for _ in 0..<40 {
        while !inFlight.isEmpty { try answer(.accepted) }
        try claim()
        check()
        if inFlight.isEmpty {
          if try world.count("nudge_outbox where state = 'waiting'") == 0 { break }
          world.now += 200_000
          for phone in History.phones { try register(phone) }
          try claim()
        }
      }
      #expect(
        try world.rows("select id from nudge_outbox where state in ('pending', 'waiting')") == [], story)
      #expect(!world.store.hasPassedRows, story)
      // The newest end, or the newest update where there is none, has reached every phone that was to have it.
      #expect(
        try world.rows(
          """
          select n.id from nudge_outbox n
          where case n.state when 'attempted' then not exists (select 1 from nudge_attempt a where a.nudge_id = n.id)
            when 'superseded' then n.id = (select max(id) from nudge_outbox)
              and not exists (select 1 from nudge_outbox m where m.kind = 'activity_end')
            else 0 end
          """) == [], story)
      #expect(try world.rows("select id from nudge_attempt where outcome is null") == [], story)
    }
  }
}
