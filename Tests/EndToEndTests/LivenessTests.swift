import Foundation
import Testing

/// Paths that are lost without a word, and peers that keep silent.
@Suite("Liveness")
struct LivenessTests {
  @Test("a half-open connection costs what was written into it: the next is there within the PING time-out")
  func halfOpen() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let path = try await PathBetween(to: peer, in: s)
      let settings = s.settings(production: peer).map { $0 == peer.url ? path.url : $0 }
      let worker = try s.start(["run"] + settings + ["--answer-timeout", "60s"])
      try await s.backend.settled(try s.backend.nudge())
      try await path.stall()
      let hole = try (1...3).map { _ in try s.backend.nudge(["title": "into the hole"]) }
      let lost = ContinuousClock.now
      try await eventually("they are in the hole") {
        try s.backend.count("select count(*) from nudge_attempt where outcome is null") == 3
      }
      // 10 s of silence while answers are due, then a PING that has 5 s; rows of that time wait for its answer.
      try await Task.sleep(for: .seconds(11))
      let behind = try (1...5).map { _ in try s.backend.nudge(["title": "behind it"]) }
      for id in behind { try await s.backend.settled(id) }
      #expect(ContinuousClock.now - lost < .seconds(20))
      for id in hole { #expect(try s.backend.outcomes(id) == ["unanswered"]) }
      for id in behind { #expect(try s.backend.outcomes(id) == ["accepted"]) }
      #expect(path.count("forwarded") == 2)
      #expect(try peer.requests().map(\.connection) == [1, 2, 2, 2, 2, 2])
      #expect(!worker.errors.contains("pause="), "\(worker.errors)")
    }
  }

  @Test(
    "after a minute of silence a connection has to answer a PING before a row relies on it",
    arguments: [true, false])
  func silentForAMinute(_ isLost: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let path = try await PathBetween(to: peer, in: s)
      let settings = s.settings(production: peer).map { $0 == peer.url ? path.url : $0 }
      let clock = try ShiftedClock(in: s)
      let worker = try clock.worker(settings)
      try await s.backend.settled(try s.backend.nudge())
      try clock.set(seconds: 90)
      if isLost { try await path.stall() }
      let id = try s.backend.nudge(["title": "T", "not_before_at": .integer(now())])
      try await eventually("it is settled", within: .seconds(20), state: { worker.errors }) {
        try s.backend.outcomes(id) == ["accepted"]
      }
      // Nothing was written into the hole, and a path that works is kept.
      #expect(try peer.requests().map(\.connection) == (isLost ? [1, 2] : [1, 1]))
      #expect(try peer.events("ping").count == (isLost ? 0 : 1))
    }
  }

  @Test("a path that stalls and goes on loses nothing and doubles nothing")
  func stalls() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let path = try await PathBetween(to: peer, in: s)
      let settings = s.settings(production: peer).map { $0 == peer.url ? path.url : $0 }
      _ = try s.start(["run"] + settings)
      try await s.backend.settled(try s.backend.nudge())
      for round in 1...3 {
        try await path.stall()
        let ids = try (1...20).map { try s.backend.nudge(["title": .text("\(round)-\($0)")]) }
        try await eventually("they are on their way") {
          try s.backend.count("select count(*) from nudge_attempt where outcome is null") == 20
        }
        try await path.resume()
        for id in ids { try await s.backend.settled(id) }
        for id in ids { #expect(try s.backend.outcomes(id) == ["accepted"]) }
      }
      #expect(try peer.requests().count == 61)
      #expect(path.count("forwarded") == 1)
    }
  }

  @Test("an answer that comes while the connection's PING is out counts, and the connection lives on")
  func slowAnswer() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule(request: 2, [.wait(milliseconds: 11_000), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      let slow = try s.backend.nudge()
      try await s.backend.settled(slow, within: .seconds(20))
      #expect(try s.backend.outcomes(slow) == ["accepted"])
      #expect(try peer.events("ping").count == 1)
      #expect(try peer.events("connected").count == 1)
    }
  }
}
