import Foundation
import Glibc
import Testing

@Suite("Notify", .serialized)
struct NotifyTests {
  private func worker(
    _ s: Scenario, _ peer: TestPeer?, _ manager: ServiceManager, _ more: [String] = [],
    environment: [String: String] = [:]
  ) throws -> Child {
    try s.start(
      ["run"] + s.settings(production: peer) + more,
      environment: environment.merging(["NOTIFY_SOCKET": manager.name]) { $1 })
  }

  @Test("tells when it is ready, what it does, and that it stops", arguments: ["path", "abstract"])
  func life(kind: String) async throws {
    try await scenario { s in
      let manager = try ServiceManager(kind == "path" ? s.path("notify") : "@nudged-\(UUID().uuidString)")
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(request: 2, [.answer(400, reason: "PayloadEmpty")])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try worker(s, peer, manager)
      try await manager.waitForStatus("idle; nothing sent since start")
      #expect(manager.states == ["READY=1"])
      for _ in 1...3 { try await s.backend.settled(try s.backend.nudge()) }
      try await manager.waitForStatus("idle; 2 accepted, 1 rejected since start")
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
      #expect(manager.states == ["READY=1", "STOPPING=1"])
    }
  }

  @Test("words come when they change, at most one in a second, and never wake an idle worker")
  func rate() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try worker(s, peer, manager, ["--poll-interval", "1h"])
      let start = ContinuousClock.now
      for number in 1...200 { try s.backend.nudge(["title": .text("\(number)")]) }
      // The last word is the last state, although the next poll is an hour away.
      try await manager.waitForStatus("idle; 200 accepted since start")
      let seconds = Double((ContinuousClock.now - start).components.seconds)
      #expect(Double(manager.values("STATUS").count) <= seconds + 3, "\(manager.values("STATUS"))")
      let told = manager.messages.count
      let before = try wakeUps(worker)
      try await Task.sleep(for: .seconds(3))
      #expect(manager.messages.count == told)
      // The looks after the last commit end within four seconds of it.
      #expect(try wakeUps(worker) - before <= 12)
    }
  }

  private func wakeUps(_ worker: Child) throws -> Int {
    let status = try String(contentsOfFile: "/proc/\(worker.pid)/status", encoding: .utf8)
    let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
    return Int(line?.split(separator: "\t").last ?? "") ?? -1
  }

  @Test("says why rows wait, in Apple's words, on one line")
  func refused() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(403, body: #"{"reason":"Invalid\nREADY=1"}"#)])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try worker(s, peer, manager)
      try await s.backend.settled(try s.backend.nudge())
      try s.backend.nudge()
      try await manager.waitForStatus(
        #"waiting: production refuses our credentials (Invalid\nREADY=1); 1 rejected"#)
      #expect(manager.states == ["READY=1"])
    }
  }

  @Test("a database that cannot be opened yet: no READY, but why, until it can")
  func barred() async throws {
    try await scenario(journal: "delete") { s in
      let manager = try ServiceManager(s.path("notify"))
      try s.backend.run("begin exclusive")
      let worker = try worker(s, try await s.peer(), manager, environment: ["WATCHDOG_USEC": "1000000"])
      try await manager.waitForStatus("waiting: ")
      #expect(manager.states.isEmpty)
      let alive = manager.values("WATCHDOG").count
      try await eventually("signs of life") { manager.values("WATCHDOG").count > alive + 4 }
      try s.backend.run("commit")
      try await eventually("it is ready", state: { worker.errors }) { manager.states == ["READY=1"] }
    }
  }

  @Test("a bad key: no READY, and the end")
  func badKey() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let file = s.path("AuthKey_\(Credentials.keyID).p8")
      try "no key".write(toFile: file, atomically: true, encoding: .utf8)
      let worker = try s.start(
        ["run", "--database", s.database, "--team-id", Credentials.teamID, "--key-file", file],
        environment: ["NOTIFY_SOCKET": manager.name])
      #expect(try await worker.wait() == .code(78))
      #expect(manager.states.isEmpty)
    }
  }

  @Test(
    "signs of life come from the loop: within half the time idle and under load, and none once it is stuck")
  func watchdog() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try worker(s, peer, manager, environment: ["WATCHDOG_USEC": "500000"])
      try await eventually("it is ready") { manager.states == ["READY=1"] }
      let idle = try await gaps(manager, within: .seconds(3))
      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
        insert into nudge_outbox (title) select 'row ' || i from n;
        """)
      let loaded = try await gaps(manager, within: .seconds(3))
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") > 0)
      for gaps in [idle, loaded] {
        // The rule is for the worker; a busy machine may hold up a beat, or the reading of it here.
        #expect(gaps.count > 5)
        #expect(gaps[gaps.count / 2] < .milliseconds(250), "\(gaps)")
      }
      worker.signal(SIGSTOP)
      try await Task.sleep(for: .milliseconds(300))
      let told = manager.messages.count
      try await Task.sleep(for: .seconds(1))
      #expect(manager.messages.count == told)
      worker.signal(SIGCONT)
      try await eventually("it lives again") { manager.messages.count > told }
    }
  }

  /// The gaps between the signs of life in that time, the shortest first.
  private func gaps(_ manager: ServiceManager, within limit: Duration) async throws -> [Duration] {
    let start = ContinuousClock.now
    while ContinuousClock.now - start < limit {
      _ = manager.messages
      try await Task.sleep(for: .milliseconds(5))
    }
    let beats = manager.messages.filter { $0.lines == ["WATCHDOG=1"] && $0.at >= start }.map(\.at)
    return zip(beats, beats.dropFirst()).map { $1 - $0 }.sorted()
  }

  @Test(
    "no signs of life when nobody waits for them",
    arguments: [[:], ["WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"], ["WATCHDOG_USEC": "soon"]])
  func noWatchdog(environment: [String: String]) async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let worker = try worker(s, try await s.peer(), manager, environment: environment)
      try await manager.waitForStatus("idle")
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
      #expect(manager.values("WATCHDOG").isEmpty)
    }
  }

  @Test(
    "a socket that is not there, is full, or is no address is no trouble",
    arguments: ["/nowhere/at/all", "@nobody", "relative", "/" + String(repeating: "x", count: 200), "full"])
  func deaf(name: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let manager = try name == "full" ? ServiceManager(s.path("notify")) : nil
      if let manager { try fill(manager.name) }
      let worker = try s.start(
        ["run"] + s.settings(production: peer), environment: ["NOTIFY_SOCKET": manager?.name ?? name])
      try await s.backend.settled(try s.backend.nudge())
      if let manager {
        // What could not be delivered is delivered once there is room.
        try await eventually("it is ready after all") { manager.states == ["READY=1"] }
      }
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
    }
  }

  /// Sends to a socket that nobody reads until it takes no more.
  private func fill(_ path: String) throws {
    let script = """
      import socket, sys
      s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      s.setblocking(False)
      try:
          while True: s.sendto(b"X=1", sys.argv[1])
      except BlockingIOError: pass
      """
    let result = try runToEnd([Paths.python, "-c", script, path], folder: "/tmp")
    guard result.exit == .code(0) else { throw Failure(result.errors) }
  }
}
