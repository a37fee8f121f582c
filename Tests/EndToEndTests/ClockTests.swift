import Foundation
import Glibc
import Testing

@Suite("Clocks that are set")
struct ClockTests {
  private let hour: Int64 = 3_600_000

  /// A phone, a peer for it, and a worker between them by a clock that can be set.
  private func start(
    _ s: Scenario, _ script: PeerScript = PeerScript(), allClocks: Bool = false
  ) async throws -> (TestPeer, ShiftedClock, Child) {
    let peer = try await s.peer(.python, script)
    try s.backend.register("phone-1", token: token(1))
    let clock = try ShiftedClock(in: s, isMonotonicToo: allClocks)
    return (peer, clock, try clock.worker(s.settings(production: peer)))
  }

  @Test(
    "an hour back while idle: a new row still goes within seconds, and deferred rows keep their time",
    arguments: [false, true])
  func back(allClocks: Bool) async throws {
    try await scenario { s in
      let (peer, clock, worker) = try await start(s, allClocks: allClocks)
      try await s.backend.send(["title": "first"])
      try clock.set(seconds: -3600)
      // Idle for more than the slow poll, as in life.
      try await Task.sleep(for: .milliseconds(1500))
      #expect(worker.isRunning)
      // For the worker these lie an hour and more ahead; nothing may depend on that but not_before_at.
      let at = now()
      try await s.backend.send(["title": "second"], within: .seconds(10))
      try await s.backend.send(
        ["title": "dated", "not_before_at": .integer(at - hour + 2000)], within: .seconds(10))
      let later = try s.backend.nudge(["title": "later", "not_before_at": .integer(at)])
      try await Task.sleep(for: .milliseconds(1500))
      #expect(try s.backend.state(later) == "pending")
      try clock.set(seconds: 0)
      try await s.backend.settled(later, within: .seconds(10))
      #expect(try peer.titles() == ["first", "second", "dated", "later"])
    }
  }

  @Test(
    "a day forward: what was deferred fires once, what has run out expires, and nothing spins",
    arguments: [false, true])
  func forward(allClocks: Bool) async throws {
    try await scenario { s in
      let (peer, clock, worker) = try await start(s, allClocks: allClocks)
      try await s.backend.send(["title": "first"])
      let deferred = try (1...5).map {
        try s.backend.nudge([
          "title": .text("\($0)"), "not_before_at": .integer(now(plus: 24 * hour - 60_000)),
        ])
      }
      let lapsed = try s.backend.nudge([
        "title": "lapsed", "not_before_at": .integer(now(plus: 2 * hour)),
        "expires_at": .integer(now(plus: 3 * hour)),
      ])
      let far = try s.backend.nudge(["title": "far", "not_before_at": .integer(now(plus: 48 * hour))])
      try clock.set(seconds: 24 * 3600)
      for id in deferred { try await s.backend.settled(id, within: .seconds(10)) }
      try await s.backend.settled(lapsed, as: "expired", within: .seconds(10))
      let used = try processorTime(worker.pid)
      try await Task.sleep(for: .seconds(3))
      #expect(try processorTime(worker.pid) - used < .milliseconds(300))
      #expect(try s.backend.state(far) == "pending")
      #expect(try peer.titles() == ["first", "1", "2", "3", "4", "5"])
      // Back again: nothing fires a second time.
      try clock.set(seconds: 0)
      try await s.backend.send(["title": "last"], within: .seconds(10))
      #expect(try peer.requests().count == 7)
    }
  }

  @Test("a pause of a device is a length of time: setting the clock back does not make it longer")
  func pauses() async throws {
    try await scenario { s in
      let (peer, clock, worker) = try await start(
        s, PeerScript(rules: [Rule(forToken: 1, [.answer(429, reason: "TooManyRequests")])]))
      try await s.backend.send(["title": "first"])
      try await worker.says("device throttled")
      let second = try s.backend.nudge(["title": "second"])
      try await Task.sleep(for: .milliseconds(500))
      #expect(try s.backend.state(second) == "pending")
      try clock.set(seconds: -3600)
      try await s.backend.settled(second, within: .seconds(90))
      let requests = try peer.requests()
      try #require(requests.count == 2)
      #expect(requests[1].atMs - requests[0].atMs > 55_000)
    }
  }

  @Test("an hour back: the provider token lies in the future and is minted anew")
  func providerToken() async throws {
    try await scenario { s in
      let (peer, clock, _) = try await start(s)
      for (number, step) in [0, 0, -3600, -3600, 0].enumerated() {
        try clock.set(seconds: step)
        try await s.backend.send(["title": .text("\(number)")])
      }
      let tokens = try peer.requests().map { $0.header("authorization") ?? "" }
      try #require(tokens.count == 5)
      #expect(tokens[0] == tokens[1])
      #expect(tokens[1] != tokens[2])
      #expect(tokens[2] == tokens[3])
    }
  }

  @Test("the time zone of the worker changes nothing", arguments: ["Asia/Kolkata", "America/St_Johns"])
  func timeZone(_ zone: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.start(["run"] + s.settings(production: peer), environment: ["TZ": zone])
      let due = now(plus: 1500)
      let later = try s.backend.nudge(["title": "later", "not_before_at": .integer(due)])
      let old = try s.backend.nudge(["title": "old", "created_at": .integer(now(plus: -hour - 60_000))])
      let first = try s.backend.nudge(["title": "first"])
      for id in [first, later] { try await s.backend.settled(id) }
      try await s.backend.settled(old, as: "expired")
      #expect(try peer.titles() == ["first", "later"])
      let attempt = try #require(try s.backend.attempts(later).first)
      let started = try #require(attempt["started_at"].integer)
      #expect(started >= due && started < due + 10_000)
      let time = try #require(
        try s.backend.value(
          "select unixepoch(time) from nudge_audit where nudge_id = \(later)"
        ).integer)
      #expect(time == started / 1000)
      #expect(worker.isRunning)
    }
  }
}

/// How much processor time a process has used, from `/proc/PID/stat`.
func processorTime(_ pid: pid_t) throws -> Duration {
  let text = try String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)
  let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
  guard fields.count > 12, let user = Int(fields[11]), let system = Int(fields[12]) else {
    throw Failure("no times in /proc/\(pid)/stat: \(text)")
  }
  return .milliseconds((user + system) * 1000 / sysconf(Int32(_SC_CLK_TCK)))
}

/// The largest resident memory that a process has had, in bytes (`VmHWM`).
func peakMemory(_ pid: pid_t) throws -> Int {
  let text = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
  let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
  guard let kilobytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) }) else {
    throw Failure("no VmHWM in /proc/\(pid)/status")
  }
  return kilobytes * 1024
}
