import Foundation
import Glibc

/// A worker's bad days: a backlog with fan-outs, tokens that change and die, two hosts that refuse, send GOAWAY and
/// fall silent, and a SIGKILL in each round, at a random moment or at a random system call.
///
/// Everything random comes from one seed. What happened is judged by ``Ledger``.
final class Ordeal {
  struct Plan {
    let kills: Int
    let nudges: Int
    let seed: UInt64

    static var isNightly: Bool { setting("SOAK_KILLS") != nil }

    /// The short form, or what `scripts/soak` asks for: with a rollback journal half of it.
    static func current(journal: String) -> Plan {
      let part = journal == "wal" ? 1 : 2
      return Plan(
        kills: max(6, (setting("SOAK_KILLS") ?? 8) / part),
        nudges: max(150, (setting("SOAK_NUDGES") ?? 240) / part),
        seed: setting("SOAK_SEED").map { UInt64($0) } ?? UInt64.random(in: 1...999_999_999))
    }

    private static func setting(_ name: String) -> Int? {
      ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }
  }

  /// The same numbers for the same seed (SplitMix64).
  struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var mixed = state
      mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
      return mixed ^ (mixed >> 31)
    }
  }

  /// What a row asks for: its title, and the devices that must get it whatever happens.
  struct Wish {
    let title: String
    let steady: [String]
  }

  private let scenario: Scenario
  private let plan: Plan
  private let production: TestPeer
  private let sandbox: TestPeer
  private var dice: Dice
  private var nextToken = 1
  /// The token of each device as it was registered last.
  private var tokens: [String: String] = [:]
  private var verdicts: [String: String] = [:]
  private let began = ContinuousClock.now
  private(set) var wishes: [Wish] = []
  /// Every device that a token was ever registered for.
  private(set) var owners: [String: Set<String>] = [:]
  /// By kind of moment.
  private(set) var kills: [String: Int] = [:]
  /// How the worker ended when nobody killed it, and what it said.
  private(set) var ownEnds: [String] = []
  private(set) var changes = 0

  /// Devices 1 to 12 are the owner's; the others belong to four more people. The last three of the owner's lose their
  /// tokens to one another and to 410, all others always have one that lives.
  private static let devices = (1...20).map { "phone-\($0)" }
  private static let restless = ["phone-10", "phone-11", "phone-12"]

  private static func recipient(_ device: String) -> String {
    let number = Int(device.dropFirst("phone-".count)) ?? 0
    return number <= 12 ? "owner" : "person-\(number % 4)"
  }

  init(_ scenario: Scenario, _ plan: Plan) async throws {
    self.scenario = scenario
    self.plan = plan
    dice = Dice(state: plan.seed)
    production = try await scenario.peer()
    sandbox = try await scenario.peer()
    for device in Ordeal.devices { try register(device, freshToken()) }
  }

  /// Settings without log lines: every write(2) of the worker is one to a peer then.
  static func quiet(_ settings: [String]) -> [String] { settings.map { $0 == "debug" ? "error" : $0 } }

  func run() async throws {
    let batch = (plan.nudges + plan.kills - 1) / plan.kills
    for _ in 0..<plan.kills {
      try await writeScripts(faulty: true)
      try insert(batch)
      for _ in 0..<4 { try changeToken() }
      try await oneLife()
      for _ in 0..<4 { try changeToken() }
    }
    // At last hosts that do what they should: all that is left goes.
    try await writeScripts(faulty: false)
    let arguments = ["run", "--drain"] + settings
    var result = try await scenario.nudged(arguments, within: .seconds(600))
    // A disk that is busy elsewhere may keep a commit of the backend longer than a script waits for its lock.
    for _ in 0..<5 where result.exit == .code(74) {
      result = try await scenario.nudged(arguments, within: .seconds(600))
    }
    guard result.exit == .code(0) else {
      throw Failure("seed \(plan.seed): drain: \(result.exit) \(result.errors.suffix(2000))")
    }
  }

  private var settings: [String] {
    Ordeal.quiet(scenario.settings(production: production, sandbox: sandbox)) + ["--connections", "2"]
  }

  /// One start of the worker, and its violent end.
  private func oneLife() async throws {
    let command = [try Paths.nudged(), "run"] + settings
    let calls = ["write": 40, "pwrite64": 150, "fdatasync": 25, "read": 60, "epoll_pwait2": 60]
    switch Int.random(in: 0..<4, using: &dice) {
    case 0:
      let worker = try scenario.run("worker", command)
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...500, using: &dice)))
      end(worker, "at a random moment")
    case 1:
      let worker = try scenario.run("worker", command)
      let target = try requests() + Int.random(in: 1...40, using: &dice)
      try await waits(upTo: .seconds(2)) { try self.requests() >= target }
      try changeToken()
      end(worker, "at a random request")
    default:
      let call = calls.keys.sorted().randomElement(using: &dice) ?? "write"
      let number = Int.random(in: 1...(calls[call] ?? 1), using: &dice)
      let worker = try scenario.run("worker", Strace.killing(at: call, number, command))
      try await Task.sleep(for: .milliseconds(Int.random(in: 0...200, using: &dice)))
      try changeToken()
      try await waits(upTo: .seconds(3)) { !worker.isRunning }
      end(worker, worker.isRunning ? "idle" : "at \(call)")
    }
  }

  private func end(_ worker: Child, _ moment: String) {
    worker.kill()
    if worker.exit == .signal(SIGKILL) {
      kills[moment, default: 0] += 1
    } else {
      ownEnds.append("\(worker.exit.map(String.init(describing:)) ?? "lost"): \(worker.errors.suffix(1000))")
    }
  }

  private func waits(upTo limit: Duration, _ condition: () throws -> Bool) async throws {
    let deadline = ContinuousClock.now + limit
    while try !condition(), ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(5)) }
  }

  private func requests() throws -> Int { try production.requests().count + sandbox.requests().count }

  // MARK: The backend

  private func insert(_ count: Int) throws {
    var statements: [Backend.Statement] = []
    for _ in 0..<count {
      let title = "nudge \(wishes.count + 1)"
      let device = Ordeal.devices.randomElement(using: &dice) ?? "phone-1"
      let recipient = Ordeal.recipient(device)
      var one: String? = device
      switch Int.random(in: 0..<10, using: &dice) {
      case 0: one = nil
      case 1, 2: one = recipient == "owner" ? device : nil
      default: break
      }
      let addressed = one.map { [$0] } ?? Ordeal.devices.filter { Ordeal.recipient($0) == recipient }
      wishes.append(Wish(title: title, steady: addressed.filter { !Ordeal.restless.contains($0) }))
      statements.append(
        Backend.Statement(
          "insert into nudge_outbox (title, recipient, device_id) values (?, ?, ?)",
          [.text(title), .text(recipient), Value(one)]))
    }
    try scenario.backend.transaction(statements)
  }

  /// A new token, the same again, or, for the restless, one that dies or one that another of them had.
  private func changeToken() throws {
    changes += 1
    let device = Ordeal.devices.randomElement(using: &dice) ?? "phone-1"
    let isRestless = Ordeal.restless.contains(device)
    switch Int.random(in: 0..<3, using: &dice) {
    case 0: try register(device, tokens[device] ?? freshToken())
    case 1 where isRestless:
      let other = Ordeal.restless.randomElement(using: &dice) ?? device
      try register(device, tokens[other] ?? freshToken())
    case 2 where isRestless:
      let dying = freshToken()
      verdicts[dying] = "dead"
      try register(device, dying)
    default: try register(device, freshToken())
    }
  }

  private func register(_ device: String, _ token: String) throws {
    tokens[device] = token
    owners[token, default: []].insert(device)
    try scenario.backend.register(device, token: token, recipient: Ordeal.recipient(device))
  }

  /// A token that nobody had; a third of them live on the sandbox host.
  private func freshToken() -> String {
    defer { nextToken += 1 }
    let fresh = token(nextToken)
    if nextToken % 3 == 0 { verdicts[fresh] = "wrong" }
    return fresh
  }

  // MARK: The hosts

  private func writeScripts(faulty: Bool) async throws {
    for (name, peer) in [("peer-1", production), ("peer-2", sandbox)] {
      // A token of the sandbox is wrong in production; a dead one is dead on both.
      let known = name == "peer-1" ? verdicts : verdicts.filter { $0.value == "dead" }
      let script: [String: Any] = [
        "settings": ["max_concurrent_streams": 16], "tokens": known,
        "rules": faulty ? rules(from: try peer.requests().count) : [],
      ]
      let text = try JSONSerialization.data(withJSONObject: script)
      try text.write(to: URL(filePath: scenario.path("\(name).json")), options: .atomic)
    }
  }

  /// What goes wrong among the next requests of one host.
  private func rules(from count: Int) -> [[String: Any]] {
    func soon(_ times: Int, _ steps: [[String: Any]]) -> [String: Any] {
      ["from_request": count + Int.random(in: 1...40, using: &dice), "times": times, "do": steps]
    }
    let delay = Int.random(in: 1...40, using: &dice)
    return [
      soon(Int.random(in: 1...2, using: &dice), [["reset": 7]]),
      soon(1, [["goaway": [String: Any]()], ["wait_ms": 5], ["answer": ["status": 200]]]),
      soon(1, [["goaway": ["last": 0]]]),
      soon(Int.random(in: 0...4, using: &dice), []),
      soon(1, [["interim": 103], ["answer": ["status": 200]]]),
      soon(60, [["wait_ms": delay], ["answer": ["status": 200]]]),
    ]
  }

  var summary: String {
    let list = kills.sorted { $0.key < $1.key }.map { "  \($0.value) \($0.key)" }.joined(separator: "\n")
    let seconds = (ContinuousClock.now - began).components.seconds
    return """
      seed \(plan.seed), \(seconds) s
      kills: \(kills.values.reduce(0, +))
      \(list)
      token changes: \(changes)

      """
  }
}
