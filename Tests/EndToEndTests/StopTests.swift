import Foundation
import Glibc
import Testing

@Suite("Stopping")
struct StopTests {
  @Test("SIGTERM and SIGINT wait for the answers and exit 0", arguments: [SIGTERM, SIGINT])
  func drains(_ signal: Int32) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule([.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "20s"])
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      worker.signal(signal)
      let late = try s.backend.nudge(["title": "late"])
      try s.release("go")
      #expect(try await worker.wait(within: .seconds(10)) == .code(0))
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try s.backend.state(late) == "pending")
      #expect(try peer.requests().count == 1)
    }
  }

  @Test("what is unanswered at --stop-timeout is settled as interrupted, and the exit is 0")
  func stopTimeout() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule([])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "1s"])
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      let start = ContinuousClock.now
      worker.signal(SIGTERM)
      #expect(try await worker.wait(within: .seconds(10)) == .code(0))
      #expect(ContinuousClock.now - start < .seconds(4))
      #expect(try s.backend.outcomes(id) == ["interrupted"])
      #expect(try s.backend.state(id) == "attempted")
    }
  }

  @Test("a second signal stops at once")
  func secondSignal() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule([])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "10m"])
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      // Two signals sent together may arrive as one, so they are sent until it ends.
      try await eventually("it ends", within: .seconds(5)) {
        worker.signal(SIGTERM)
        return !worker.isRunning
      }
      _ = try await s.nudged(["run", "--drain"] + s.settings(production: peer))
      #expect(try s.backend.outcomes(id) == ["interrupted"])
      #expect(try peer.requests().count == 1)
    }
  }

  @Test(
    "an idle worker stops at once on SIGTERM, also while it cannot reach a host", arguments: [true, false])
  func idleStop(_ reachable: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      if !reachable { peer.end() }
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "10m"])
      if reachable {
        try await s.backend.settled(try s.backend.nudge())
      } else {
        try s.backend.nudge()
        try await s.backend.settled(
          try s.backend.nudge(["title": "T", "recipient": "nobody"]), as: "unaddressed")
      }
      worker.signal(SIGTERM)
      #expect(try await worker.wait(within: .seconds(3)) == .code(0))
    }
  }

  @Test(
    "SIGTERM is obeyed although another connection holds the write lock; the attempt is interrupted later")
  func stopsLocked() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(request: 1, [])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer, ["--stop-timeout", "1s"])
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      try s.backend.run("begin immediate")
      worker.signal(SIGTERM)
      #expect(try await worker.wait(within: .seconds(8)) == .code(0))
      try s.backend.run("commit")
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(id) == ["interrupted"])
      #expect(try peer.requests().count == 1)
    }
  }
}
