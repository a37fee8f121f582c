import SQLite

@testable import Outbox

/// A backend's database with the tables of nudged, a worker's store on it, and a network that does as told.
final class World {
  let folder: TemporaryFolder
  let path: String
  /// The backend's own connection.
  let backend: Database
  private(set) var store: Store
  let network = ScriptedDispatcher()
  let environments: [String]
  /// Wall time in milliseconds; tests move it.
  var now: Int64 = 1_800_000_000_000
  static let expireAfter: Int64 = 3_600_000

  init(environments: [String] = ["production", "sandbox"], journal: String = "wal") throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    self.environments = environments
    network.order = environments
    backend = try Database(path: path, busyTimeout: .seconds(5))
    _ = try backend.text("pragma journal_mode = \(journal)")
    // Thousands of small transactions a test: durability is not what is tested here.
    try backend.execute("pragma synchronous = off")
    _ = try Migration.apply(databaseAt: path)
    store = try Store(path: path, environments: environments, expireAfter: World.expireAfter)
    try store.database.execute("pragma synchronous = off")
  }

  /// Another worker takes over, as after a crash; nothing is recovered yet.
  func restart() throws {
    store = try Store(path: path, environments: environments, expireAfter: World.expireAfter)
    try store.database.execute("pragma synchronous = off")
  }

  // MARK: The backend

  func sql(_ text: String) throws { try backend.execute(text) }

  /// Inserts a nudge made now; `columns` beyond `created_at` and `title`, e.g. `"device_id": "'phone-1'"`.
  @discardableResult
  func nudge(_ columns: KeyValuePairs<String, String> = [:]) throws -> Int64 { try nudge(Array(columns)) }

  func nudge(_ columns: [(key: String, value: String)]) throws -> Int64 {
    let names = ["created_at", "title"].filter { name in !columns.contains { $0.key == name } }
    let values = names.map { $0 == "title" ? "'Done'" : "\(now)" }
    try backend.execute(
      """
      insert into nudge_outbox (\((names + columns.map(\.key)).joined(separator: ", ")))
      values (\((values + columns.map(\.value)).joined(separator: ", ")))
      """)
    return backend.lastInsertedID
  }

  /// Inserts many undated nudges in one transaction.
  func nudges(_ count: Int, device: String? = nil) throws {
    let device = device.map { "'\($0)'" } ?? "null"
    try backend.execute(
      """
      with recursive n (i) as (select 1 union all select i + 1 from n where i < \(count))
      insert into nudge_outbox (created_at, title, device_id) select \(now), 'Done', \(device) from n
      """)
  }

  /// Registers a device's alert token; its digits are made from the device's id unless they are given.
  func register(
    _ device: String, token: String? = nil, recipient: String = "owner", environment: String? = nil,
    surface: String = "phone", at time: Int64? = nil
  ) throws {
    let digits = token ?? World.token(device)
    try backend.execute(
      """
      insert into nudge_registration (device_id, recipient, surface, topic, token, environment, registered_at)
      values ('\(device)', '\(recipient)', '\(surface)', 'com.example.app', '\(digits)',
        \(environment.map { "'\($0)'" } ?? "null"), \(time ?? now - 1000))
      """)
  }

  /// Registers a device's token of a Live Activity kind.
  func registerActivity(
    _ device: String, kind: String = "activity_update", scope: String = "turn", token: String,
    recipient: String = "owner", at time: Int64? = nil
  ) throws {
    try backend.execute(
      """
      insert into nudge_registration (device_id, recipient, topic, kind, scope, token, environment, registered_at)
      values ('\(device)', '\(recipient)', 'com.example.app', '\(kind)', '\(scope)', '\(token)', 'production',
        \(time ?? now))
      """)
  }

  static func token(_ device: String) -> String {
    device.utf8.map { String(Int($0) + 0x100, radix: 16).dropFirst() }.joined()
  }

  /// Registers `count` devices, `device-00001` and so on, with tokens of a known environment.
  func registerMany(_ count: Int, environment: String = "production", prefix: String = "device") throws {
    try backend.execute("begin immediate")
    for index in 1...count {
      let number = String(100_000 + index).dropFirst()
      try register("\(prefix)-\(number)", environment: environment)
    }
    try backend.execute("commit")
  }

  // MARK: The worker

  /// One turn: settles, then claims as far as the hosts have room. Without any room it is a first look.
  @discardableResult
  func turn(
    _ rooms: [String: Int], finishes: [Finish] = [], piece: Int? = nil, claims: Bool = true
  ) throws -> [Staged] {
    let bounds = World.bounds(rooms, piece: piece)
    let (store, now, network) = (store, now, network)
    prepare(rooms)
    // As the worker does it: first without the lock, and if that comes to nothing, with it.
    if claims, store.concernNoClaim(finishes) {
      do throws(SQLiteError) {
        lastSettlement = try store.turn(readingFirst: true) { transaction throws(SQLiteError) in
          lastClaimCount = try store.decideClaim(now: now, within: bounds, by: network, in: &transaction)
          whileReading?()
          let settlement = try store.settle(finishes, in: &transaction)
          try store.writeClaim(now: now, in: &transaction)
          return settlement
        }
        return network.staged
      } catch {
        guard error.kind == .busy else { throw error }
        busyTurns += 1
        network.discard()
        prepare(rooms)
      }
    }
    lastSettlement = try store.turn { transaction throws(SQLiteError) in
      let settlement = try store.settle(finishes, in: &transaction)
      if claims {
        lastClaimCount = try store.decideClaim(now: now, within: bounds, by: network, in: &transaction)
        try store.writeClaim(now: now, in: &transaction)
      }
      return settlement
    }
    return network.staged
  }

  private func prepare(_ rooms: [String: Int]) {
    network.rooms = rooms
    network.wall = now
    network.staged.removeAll()
  }

  /// What somebody else does between the reading and the writing of a turn.
  var whileReading: (() -> Void)?
  /// How many turns had to begin again with the lock.
  private(set) var busyTurns = 0
  private(set) var lastSettlement = Settlement()
  private(set) var lastClaimCount = 0

  static func bounds(_ rooms: [String: Int], piece: Int? = nil) -> ClaimBounds {
    let open = rooms.filter { $0.value > 0 }
    let room = open.values.reduce(0, +)
    return ClaimBounds(
      environments: Set(open.keys), isFirstLook: open.isEmpty, attempts: max(1, min(room, 500)),
      piece: piece ?? max(1, room / 4))
  }

  /// Claims until a look finds nothing, as the wheel does; fails to end only if the store says for ever that
  /// there is work.
  @discardableResult
  func drain(_ rooms: [String: Int], most: Int = 1000) throws -> [Staged] {
    var all: [Staged] = []
    var turns = 0
    while try hasWork(rooms) {
      all += try turn(rooms)
      turns += 1
      if turns > most { throw Endless(turns: turns) }
    }
    lastTurns = turns
    return all
  }

  private(set) var lastTurns = 0

  struct Endless: Error { let turns: Int }

  func hasWork(_ rooms: [String: Int]) throws -> Bool {
    try store.hasWork(now: now, within: World.bounds(rooms))
  }

  @discardableResult
  func settle(_ finishes: Finish...) throws -> Settlement {
    try turn([:], finishes: finishes, claims: false)
    return lastSettlement
  }

  /// The end of a staged attempt.
  func finish(
    _ staged: Staged, _ outcome: Outcome, status: Int? = nil, reason: String? = nil,
    timestampAt: Int64? = nil, uniqueID: String? = nil
  ) -> Finish {
    let usual: Int? =
      switch outcome {
      case .accepted: 200
      case .deadToken: 410
      case .wrongHost, .rejected: 400
      case .unanswered, .unsent, .interrupted: nil
      }
    var finish = Finish(
      attempt: staged.attempt, nudge: staged.nudge, apnsID: staged.apnsID, outcome: outcome,
      environment: staged.environment, startedAt: staged.startedAt, finishedAt: now, status: status ?? usual,
      reason: reason, timestampAt: timestampAt, uniqueID: uniqueID,
      token: Finish.Token(
        id: staged.tokenID, digits: staged.token, registeredAt: staged.registeredAt,
        environment: staged.tokenEnvironment, isProven: staged.isProven))
    // As the worker leaves it out.
    if finish.isPlain { finish.apnsID = [] }
    return finish
  }

  func recover() throws -> Int64 {
    let (store, now) = (store, now)
    return try store.turn { transaction throws(SQLiteError) in
      try store.recover(now: now, in: &transaction)
    }
  }

  func expire(limit: Int64 = 500) throws -> Bool {
    let (store, now) = (store, now)
    return try store.turn { transaction throws(SQLiteError) in
      try store.expire(now: now, limit: limit, in: &transaction)
    }
  }

  // MARK: Looking

  func state(_ nudge: Int64) throws -> String? {
    try backend.text("select state from nudge_outbox where id = \(nudge)")
  }

  func detail(_ nudge: Int64) throws -> String? {
    try backend.text("select detail from nudge_outbox where id = \(nudge)")
  }

  /// The first column of all rows of a query.
  func rows(_ query: String) throws -> [String] {
    let statement = try backend.prepare(query)
    var rows: [String] = []
    while try statement.step() {
      rows.append(statement.string(0) ?? "NULL")
    }
    return rows
  }

  func count(_ condition: String) throws -> Int64 {
    try backend.integer("select count(*) from \(condition)") ?? -1
  }
}
