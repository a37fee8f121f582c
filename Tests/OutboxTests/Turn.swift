import Testing

@testable import Outbox

/// A world with phones that can be started by push, and a backend that writes about one activity, `turn`.
struct Turn {
  let world: World
  let rooms = ["production": 20, "sandbox": 20]

  init(_ phones: [String] = ["phone"], in world: World? = nil) throws {
    self.world = try world ?? World()
    for phone in phones {
      try self.world.register(phone, environment: "production")
      try self.world.registerActivity(
        phone, kind: "activity_start", scope: "Turn", token: World.token("start " + phone))
    }
  }

  // MARK: The backend

  /// Inserts a row about the activity: `start`, `update` or `end`.
  @discardableResult
  func row(_ kind: String, _ columns: KeyValuePairs<String, String> = [:]) throws -> Int64 {
    try world.nudge(
      [("kind", "'activity_\(kind)'"), ("activity_id", "'turn'"), ("attributes_type", "'Turn'")]
        + Array(columns))
  }

  /// The app on a phone has adopted its activity.
  func adopt(_ phone: String = "phone", token: String? = nil, at time: Int64? = nil) throws {
    try world.registerActivity(phone, token: token ?? World.token("turn " + phone), at: time)
  }

  // MARK: The worker

  /// Claims until nothing is due.
  func claim() throws -> [Staged] { try world.drain(rooms) }

  /// Claims what is due, which is one request.
  func request(sourceLocation: SourceLocation = #_sourceLocation) throws -> Staged {
    let staged = try claim()
    try #require(staged.count == 1, sourceLocation: sourceLocation)
    return staged[0]
  }

  /// The request ends, so many milliseconds from now.
  func answer(_ staged: Staged, _ outcome: Outcome, after milliseconds: Int64 = 0) throws {
    world.now += milliseconds
    try world.settle(world.finish(staged, outcome))
  }

  /// Claims and accepts until nothing is due or on its way; returns what was sent.
  @discardableResult
  func play() throws -> [Staged] {
    var all: [Staged] = []
    while true {
      let staged = try claim()
      if staged.isEmpty { return all }
      all += staged
      try world.turn(rooms, finishes: staged.map { world.finish($0, .accepted) }, claims: false)
    }
  }

  /// Asks for the activity and plays it; returns what was sent.
  @discardableResult
  func start() throws -> [Staged] {
    try row("start")
    return try play()
  }

  /// Another worker takes over and recovers.
  func restart() throws {
    try world.restart()
    _ = try world.recover()
  }

  /// Expires what has run out when so many milliseconds have passed.
  func expire(after milliseconds: Int64) throws {
    world.now += milliseconds
    _ = try world.expire()
  }

  // MARK: Looking

  func states() throws -> [String] { try world.rows("select state from nudge_outbox order by id") }

  /// A row's state, and its detail if it has one, e.g. `unaddressed: activity over`.
  func fate(_ nudge: Int64) throws -> String? {
    try world.backend.text(
      "select state || coalesce(': ' || detail, '') from nudge_outbox where id = \(nudge)")
  }
}
