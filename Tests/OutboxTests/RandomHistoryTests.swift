import SQLite
import Testing

@testable import Outbox

/// A backend, phones, hosts, a clock and crashes at random, and what has to hold after each step.
@Suite("Random histories")
struct RandomHistoryTests {
  @Test(
    "whatever happens, at most one nudge to a device and to a token, and the states add up", arguments: 1...12
  )
  func histories(seed: UInt64) throws {
    var history = try History(seed: seed)
    for step in 1...250 {
      let action = try history.step()
      try history.check("seed \(seed), step \(step): \(action)")
    }
    try history.finish("seed \(seed)")
  }

  private struct History {
    private let world: World
    private var generator: SeededGenerator
    private var inFlight: [Staged] = []

    init(seed: UInt64) throws {
      generator = SeededGenerator(seed: seed)
      world = try World(environments: seed % 4 == 0 ? ["sandbox"] : ["production", "sandbox"])
    }

    private mutating func pick<Element>(_ choices: [Element]) -> Element {
      choices[Int.random(in: choices.indices, using: &generator)]
    }

    private mutating func device() -> String { pick((1...6).map { "device-\($0)" }) }
    private mutating func token() -> String { pick((10...16).map { "a0\($0)" }) }
    private mutating func recipient() -> String { pick(["owner", "owner", "guest"]) }

    private mutating func rooms() -> [String: Int] {
      var rooms: [String: Int] = [:]
      for environment in world.environments { rooms[environment] = pick([0, 0, 1, 2, 20]) }
      return rooms
    }

    mutating func step() throws -> String {
      switch Int.random(in: 0..<20, using: &generator) {
      case 0...4:
        let device = pick(["null", "null", "null", "'\(device())'"])
        let due = pick(["null", "null", "\(world.now + 3000)", "\(world.now - 2000)"])
        try world.nudge([
          "recipient": "'\(recipient())'", "device_id": device, "not_before_at": due,
          "surface": pick(["null", "'*'"]), "kind": pick(["'alert'", "'alert'", "'alert'", "'x'"]),
          "expires_at": pick(["null", "null", "\(world.now + 8000)", "5"]),
        ])
        return "insert"
      case 5...7:
        try world.register(
          device(), token: token(), recipient: recipient(),
          environment: pick([nil, "production", "sandbox"]),
          at: world.now + pick([-5000, 0, 0, 10]))
        return "register"
      case 8:
        try world.sql(
          "update nudge_outbox set state = 'cancelled' where id = (select max(id) from nudge_outbox) - \(pick([0, 1, 3]))"
        )
        return "cancel"
      case 9:
        try world.restart()
        _ = try world.recover()
        inFlight.removeAll()
        return "restart"
      case 10:
        world.now += pick([-4000, 10, 500, 2500, 9000, 4_000_000])
        return "clock"
      case 11:
        world.store.scan.restart()
        _ = try world.expire(limit: 3)
        return "rescan and expire"
      case 12:
        world.network.pausedDevices = pick([[:], [device(): world.now + 2000]])
        world.network.malformedDevices = pick([[], [], [device()]])
        return "pauses"
      default:
        let finishes = answers()
        let rooms = rooms()
        let claims = try world.hasWork(rooms)
        inFlight += try world.turn(rooms, finishes: finishes, claims: claims)
        return "turn \(rooms) settles \(finishes.count)"
      }
    }

    /// Some of what is in flight ends, and some of that is reported twice.
    private mutating func answers() -> [Finish] {
      var finishes: [Finish] = []
      inFlight.shuffle(using: &generator)
      for _ in 0..<Int.random(in: 0...4, using: &generator) {
        guard let staged = inFlight.popLast() else { break }
        let outcome: Outcome = pick([
          .accepted, .accepted, .rejected, .deadToken, .wrongHost, .wrongHost, .unanswered, .unsent, .unsent,
        ])
        let finish = world.finish(
          staged, outcome,
          timestampAt: outcome == .deadToken ? pick([nil, world.now - 3000, world.now + 99_999]) : nil)
        finishes.append(finish)
        if pick([false, false, true]) { finishes.append(world.finish(staged, pick([.accepted, .unsent]))) }
      }
      return finishes
    }

    func check(_ context: String) throws {
      for column in ["device_id", "token_hash"] {
        #expect(
          try world.rows(
            """
            select nudge_id || ' ' || \(column) from nudge_attempt where may_have_buzzed = 1
            group by nudge_id, \(column) having count(*) > 1
            """) == [], "\(context)")
      }
      // Every request that was made ready has its attempt, with its own ids, and no attempt has two.
      #expect(Set(world.network.history.map(\.attempt)).count == world.network.history.count, "\(context)")
      #expect(try world.count("nudge_attempt") == Int64(world.network.history.count), "\(context)")
      // Neither outcome nor mark contradict each other, and a wrong host is not asked twice.
      #expect(
        try world.count(
          "nudge_attempt where (may_have_buzzed is null) <> (outcome is not null and outcome in ('unsent', 'wrong_host'))"
        ) == 0, "\(context)")
      #expect(
        try world.rows(
          """
          select nudge_id from nudge_attempt where outcome = 'wrong_host'
          group by nudge_id, token_hash, environment having count(*) > 1
          """) == [], "\(context)")
      #expect(
        try world.rows(
          """
          select nudge_id from nudge_attempt where outcome = 'unsent'
          group by nudge_id, device_id having count(*) > 3
          """) == [], "\(context)")
      // The states partition the table.
      #expect(
        try world.rows(
          """
          select n.id || n.state from nudge_outbox n where case n.state
            when 'pending' then n.settled_at is not null
            when 'attempted' then n.settled_at is null
              or not exists (select 1 from nudge_attempt a where a.nudge_id = n.id)
            else n.settled_at is null
              or n.state not in ('expired', 'unaddressed', 'invalid', 'cancelled', 'suppressed')
              or exists (select 1 from nudge_attempt a where a.nudge_id = n.id)
            end
          """) == [], "\(context)")
    }

    /// With both hosts open and no pauses, everything that is due comes to its end.
    mutating func finish(_ context: String) throws {
      world.network.pausedDevices = [:]
      world.network.malformedDevices = []
      world.now += 20_000
      let rooms = Dictionary(uniqueKeysWithValues: world.environments.map { ($0, 50) })
      for _ in 1...20 {
        inFlight += try world.turn(
          rooms, finishes: inFlight.map { world.finish($0, .wrongHost) }, claims: false)
        inFlight = []
        if world.store.scan.hasLeftovers { world.store.scan.restart() }
        inFlight = try world.drain(rooms)
      }
      #expect(inFlight.isEmpty, "\(context)")
      #expect(
        try world.rows("select id || ' ' || quote(detail) from nudge_outbox where state = 'pending'") == [],
        "\(context)")
      #expect(!world.store.scan.hasLeftovers, "\(context)")
      #expect(world.store.fanOuts.isEmpty, "\(context)")
      try check(context)
      #expect(try world.backend.text("pragma integrity_check") == "ok", "\(context)")
    }
  }
}
