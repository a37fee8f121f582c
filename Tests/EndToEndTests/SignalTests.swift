import Foundation
import Glibc
import Testing

@Suite("Signals")
struct SignalTests {
  /// Sends `signal` and requires exit 0 within `limit` and what a busy machine adds.
  private func stop(
    _ worker: Child, _ signal: Int32, within limit: Duration,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let start = ContinuousClock.now
    worker.signal(signal)
    #expect(try await worker.wait() == .code(0), "\(worker.errors)", sourceLocation: sourceLocation)
    let took = ContinuousClock.now - start
    #expect(took < limit + .seconds(2), "\(took)", sourceLocation: sourceLocation)
  }

  @Test(
    "stops at once while it dials a host that takes the connection and stays silent",
    arguments: [SIGTERM, SIGINT])
  func dialing(_ signal: Int32) async throws {
    try await scenario { s in
      let hole = try SilentHost()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let worker = try s.start(
        ["run"] + s.settings().map { $0 == "https://127.0.0.1:1" ? hole.url : $0 } + [
          "--production-key-file", s.credentials.providerKey, "--production-key-id", Credentials.keyID,
          "--stop-timeout", "10m",
        ])
      try await eventually("it dials", state: { worker.errors }) { worker.errors.contains("dialling") }
      try await stop(worker, signal, within: .zero)
      #expect(try s.backend.state(id) == "pending")
      #expect(try s.backend.outcomes(id) == [])
    }
  }

  @Test(
    "a foreign lock while an answer is in hand: stops after --stop-timeout and a second, and the next start settles",
    arguments: ["wal", "delete"])
  func foreignLock(journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule([.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "1s"])
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      try s.backend.run("begin exclusive")
      try s.release("go")
      try await eventually("the answer is out") { try peer.events("answer").count == 1 }
      try await stop(worker, SIGTERM, within: .seconds(2))
      try s.backend.run("commit")
      #expect(try s.backend.outcomes(id) == ["open"])
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(id) == ["interrupted"])
      #expect(try s.backend.state(id) == "attempted")
      #expect(try peer.requests().count == 1)
    }
  }

  @Test(
    "a foreign lock from before the start: a signal ends the wait",
    arguments: [("wal", "worker started"), ("delete", "database cannot be used")])
  func lockedFromTheStart(journal: String, sign: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      try s.backend.run("begin exclusive")
      let worker = try s.worker(production: peer, ["--stop-timeout", "1s"])
      // In WAL mode its first transaction cannot begin; with a rollback journal it cannot even read.
      try await eventually("it has met the lock", state: { worker.errors }) { worker.errors.contains(sign) }
      try await stop(worker, SIGTERM, within: .seconds(1))
      try s.backend.run("commit")
      #expect(try s.backend.state(id) == "pending")
      #expect(try peer.requests().isEmpty)
    }
  }

  @Test("stops at once during a pause, and what waits stays pending", arguments: [SIGTERM, SIGINT])
  func pausing(_ signal: Int32) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(403, reason: "InvalidProviderToken")])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "10m"])
      let refused = try s.backend.nudge()
      try await s.backend.settled(refused)
      let id = try s.backend.nudge()
      try await stop(worker, signal, within: .zero)
      #expect(try s.backend.state(id) == "pending")
      #expect(try peer.requests().count == 1)
    }
  }

  @Test(
    "a hundred answers pending: interrupted at --stop-timeout, all of them", arguments: [SIGTERM, SIGINT])
  func hundredPending(_ signal: Int32) async throws {
    try await scenario { s in
      let peer = try await hundred(s)
      let worker = try s.worker(production: peer, ["--stop-timeout", "1s", "--connections", "1"])
      try await peer.waitForRequests(101)
      try await stop(worker, signal, within: .seconds(2))
      #expect(
        try s.backend.run("select outcome, count(*) as count from nudge_attempt group by outcome").map(
          \.values)
          == [["accepted", 1], ["interrupted", 100]])
      #expect(try s.backend.count("select count(*) from nudge_outbox where state = 'attempted'") == 101)
      // What was not claimed waits for the next start.
      #expect(try s.backend.count("select count(*) from nudge_outbox where state = 'pending'") == 29)
    }
  }

  @Test("a hundred answers pending, and a second signal: stops at once, each left or settled as interrupted")
  func hundredPendingTwice() async throws {
    try await scenario { s in
      let peer = try await hundred(s)
      let worker = try s.worker(production: peer, ["--stop-timeout", "10m", "--connections", "1"])
      try await peer.waitForRequests(101)
      worker.signal(SIGTERM)
      try await eventually("it is stopping", state: { worker.errors }) {
        worker.errors.contains("event=stopping")
      }
      try await stop(worker, SIGINT, within: .zero)
      try peer.script(PeerScript())
      try await s.drain(production: peer)
      #expect(
        try s.backend.run("select outcome, count(*) as count from nudge_attempt group by outcome").map(
          \.values)
          == [["accepted", 30], ["interrupted", 100]])
      let titles = try peer.requests().compactMap { $0.alert["title"] as? String }
      #expect(titles.count == 130 && Set(titles).count == 130)
    }
  }

  /// 130 rows for a peer with a hundred streams, which answers the first request and no other.
  private func hundred(_ s: Scenario) async throws -> TestPeer {
    let peer = try await s.peer(
      .python, PeerScript(rules: [Rule(fromRequest: 2, [])], maxConcurrentStreams: 100))
    try s.backend.register("phone-1", token: token(1))
    try s.backend.script(
      """
      with recursive n(i) as (select 1 union all select i + 1 from n where i < 130)
      insert into nudge_outbox (title) select 'row ' || i from n;
      """)
    return peer
  }

  @Test(
    "a reader of the log that has gone, or no standard error at all: the worker goes on",
    arguments: ["broken", "closed"])
  func noLog(_ kind: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let prepare =
        kind == "closed"
        ? "os.close(2)"
        : "r, w = os.pipe(); os.dup2(w, 2); os.close(r); os.close(w)"
      // Python ignores SIGPIPE, and what is ignored stays so in the next program.
      let script = """
        import os, signal, sys
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        \(prepare)
        os.execv(sys.argv[1], sys.argv[1:])
        """
      let worker = try s.run(
        "worker", [Paths.python, "-c", script, try Paths.nudged(), "run"] + s.settings(production: peer))
      for title in ["one", "two"] {
        try await s.backend.settled(try s.backend.nudge(["title": .text(title)]))
      }
      // A peer that goes away under a write is no end either.
      try peer.perform([.abort])
      try await s.backend.settled(try s.backend.nudge(["title": "three"]))
      #expect(worker.isRunning)
      #expect(try s.backend.value("pragma integrity_check") == "ok")
      try await stop(worker, SIGTERM, within: .zero)
    }
  }
}

/// A host that takes connections and never says a word.
private final class SilentHost {
  private let descriptor: Int32
  let url: String

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = inet_addr("127.0.0.1")
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let status = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, length) | listen(descriptor, 16) | getsockname(descriptor, address, &length)
      }
    }
    url = "https://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
    guard status == 0 else { throw Failure("no socket: \(errno)") }
  }

  deinit { close(descriptor) }
}
