import Foundation
import Testing

/// One test's world: a folder, a database with the tables, peers and workers. All of it is gone when the body returns
/// or throws.
final class Scenario {
  let folder: String
  let database: String
  let credentials: Credentials
  private(set) var backend: Backend
  private var peers: [TestPeer] = []
  private var children: [Child] = []

  init(migrated: Bool = true, journal: String = "wal") async throws {
    credentials = try Credentials.shared.get()
    folder = try temporaryFolder("test")
    database = "\(folder)/app.db"
    backend = try Backend(database: database, folder: folder)
    try backend.run("pragma journal_mode = \(journal)")
    try backend.run("pragma synchronous = full")
    try backend.run("create table message (id integer primary key, text text not null)")
    if migrated {
      let result = try await nudged(["migrate", "--database", database])
      guard result.exit == .code(0) else { throw Failure("nudged migrate: \(result.exit) \(result.errors)") }
    }
  }

  func end(failed: Bool) {
    if failed {
      for child in children { print("[\(child.name)] \(child.errors.suffix(6000))") }
    }
    children.forEach { $0.kill() }
    peers.forEach { $0.end() }
    backend.end()
    if ProcessInfo.processInfo.environment["END_TO_END_KEEP"] == nil {
      try? FileManager.default.removeItem(atPath: folder)
    }
  }

  func path(_ name: String) -> String { "\(folder)/\(name)" }

  /// Lets go what a peer holds with `.hold(path(name))`.
  func release(_ name: String) throws {
    try "".write(toFile: path(name), atomically: true, encoding: .utf8)
  }

  // Peers.

  func peer(
    _ stack: Stack = .python, _ script: any PeerText = PeerScript(), certificate: String? = nil,
    port: Int = 0,
    alpn: Bool = true
  ) async throws -> TestPeer {
    let peer = try await TestPeer(
      "peer-\(peers.count + 1)", stack: stack, script: script,
      certificate: certificate ?? credentials.certificate,
      key: credentials.serverKey, folder: folder, port: port, alpn: alpn)
    peers.append(peer)
    return peer
  }

  // nudged.

  /// Runs a command of nudged to its end.
  func nudged(
    _ arguments: [String], environment: [String: String] = [:], within limit: Duration = .seconds(30)
  ) async throws -> (exit: Exit, output: String, errors: String) {
    let child = try start(arguments, environment: environment)
    let exit = try await child.wait(within: limit)
    return (exit, child.output, child.errors)
  }

  /// Starts a command of nudged.
  func start(_ arguments: [String], environment: [String: String] = [:]) throws -> Child {
    let child = try Child(
      "nudged-\(children.count + 1)", [try Paths.nudged()] + arguments, folder: folder,
      environment: environment)
    children.append(child)
    return child
  }

  /// Starts another program that ends with the test.
  func run(_ name: String, _ command: [String]) throws -> Child {
    let child = try Child(name, command, folder: folder)
    children.append(child)
    return child
  }

  /// The settings of a worker. A host without a peer has no key, and a closed port for an address.
  func settings(production: TestPeer? = nil, sandbox: TestPeer? = nil) -> [String] {
    var settings = [
      "--database", database, "--ca-file", credentials.authority, "--team-id", Credentials.teamID,
      "--production-url", production?.url ?? "https://127.0.0.1:1",
      "--sandbox-url", sandbox?.url ?? "https://127.0.0.1:1", "--log-level", "debug",
    ]
    switch (production == nil, sandbox == nil) {
    case (false, false):
      settings += ["--key-file", credentials.providerKey]
    case (false, true):
      settings += [
        "--production-key-file", credentials.providerKey, "--production-key-id", Credentials.keyID,
      ]
    case (true, false):
      settings += ["--sandbox-key-file", credentials.providerKey, "--sandbox-key-id", Credentials.keyID]
    case (true, true):
      break
    }
    return settings
  }

  /// Starts `nudged run`.
  func worker(production: TestPeer? = nil, sandbox: TestPeer? = nil, _ more: [String] = []) throws -> Child {
    try start(["run"] + settings(production: production, sandbox: sandbox) + more)
  }

  /// Runs `nudged run --drain` to its end, and requires that it left nothing.
  @discardableResult
  func drain(
    production: TestPeer? = nil, sandbox: TestPeer? = nil, _ more: [String] = [], exit expected: Int32 = 0,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> String {
    let arguments = ["run", "--drain"] + settings(production: production, sandbox: sandbox) + more
    let result = try await nudged(arguments)
    #expect(
      result.exit == .code(expected), "stderr: \(result.errors.suffix(3000))", sourceLocation: sourceLocation)
    return result.errors
  }
}

/// Runs a test's body in a world of its own. Few at a time: each has three or four processes, and deadlines mean
/// nothing on a machine that is swamped.
func scenario(
  migrated: Bool = true, journal: String = "wal", _ body: (Scenario) async throws -> Void
) async throws {
  await Slots.shared.take()
  do {
    let scenario = try await Scenario(migrated: migrated, journal: journal)
    do {
      try await body(scenario)
      scenario.end(failed: false)
    } catch {
      scenario.end(failed: true)
      throw error
    }
  } catch {
    await Slots.shared.give()
    throw error
  }
  await Slots.shared.give()
}

private actor Slots {
  static let shared = Slots()

  private var free = 4
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func take() async {
    if free > 0 {
      free -= 1
    } else {
      await withCheckedContinuation { waiting.append($0) }
    }
  }

  func give() {
    if waiting.isEmpty {
      free += 1
    } else {
      waiting.removeFirst().resume()
    }
  }
}
