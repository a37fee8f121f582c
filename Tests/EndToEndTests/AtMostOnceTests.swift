import Foundation
import Glibc
import Testing

@Suite("At most once")
struct AtMostOnceTests {
  @Test("kill -9 between claim and answer: one request, and interrupted after the restart")
  func killed() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(rules: [Rule(request: 1, [])]))
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge(["title": "once"])
      let worker = try s.worker(production: peer)
      try await peer.waitForRequests(1)
      // The attempt was on disk before the first byte left.
      #expect(try s.backend.outcomes(id) == ["open"])
      worker.kill()
      #expect(try s.backend.outcomes(id) == ["open"])
      _ = try s.worker(production: peer)
      let after = try s.backend.nudge(["title": "after"])
      try await s.backend.settled(after)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["interrupted"])
      #expect(try s.backend.attempts(id).first?["may_have_buzzed"] == 1)
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["once", "after"])
    }
  }

  @Test("killed again and again over a backlog: no row is requested twice, none is lost")
  func killedOften() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.wait(milliseconds: 10), .answer()])], maxConcurrentStreams: 8))
      try s.backend.register("phone-1", token: token(1))
      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 300)
        insert into nudge_outbox (title) select 'row ' || i from n;
        """)
      for target in [20, 75, 150] {
        let worker = try s.worker(production: peer, ["--connections", "1"])
        try await peer.waitForRequests(target)
        worker.kill()
      }
      try await s.drain(production: peer)
      #expect(try s.backend.states() == ["attempted": 300])
      let titles = try peer.requests().compactMap { $0.alert["title"] as? String }
      #expect(Set(titles).count == titles.count)
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 300)
      let interrupted = try s.backend.count(
        "select count(*) from nudge_attempt where outcome = 'interrupted'")
      let accepted = try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'")
      #expect(interrupted + accepted == 300)
      #expect(interrupted <= 24)
    }
  }

  @Test("a token that changes between the pieces of a fan-out makes no second buzz")
  func changedBetweenPieces() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(
        PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      for number in 1...5 { try s.backend.register("phone-\(number)", token: token(number)) }
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      let device = try #require(try s.backend.attempts(id).first?["device_id"].text)
      try s.backend.register(device, token: token(50))
      try s.release("go")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == Array(repeating: "accepted", count: 5))
      #expect(try Set(s.backend.attempts(id).compactMap { $0["device_id"].text }).count == 5)
      #expect(try peer.requests().count == 5)
      #expect(try !peer.requests().contains { $0.token == token(50) })
    }
  }

  @Test("a token that moves to another device between the pieces of a fan-out is not asked twice")
  func movedBetweenPieces() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule(request: 1, [.hold(s.path("go")), .answer()])]))
      for number in 1...3 { try s.backend.register("phone-\(number)", token: token(number)) }
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      let moved = try #require(try await peer.waitForRequests(1).first?.token)
      try s.backend.register("phone-9", token: moved)
      try s.release("go")
      try await s.backend.settled(id)
      #expect(try peer.requests().filter { $0.token == moved }.count == 1)
      #expect(try peer.requests().count == 3)
      #expect(try s.backend.outcomes(id) == ["accepted", "accepted", "accepted"])
    }
  }

  @Test("a token that changes after unsent: the new one is asked, one buzz")
  func changedAfterUnsent() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule(token: token(1), [.hold(s.path("go")), .reset(.refused)])]))
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      try s.backend.register("phone-1", token: token(2))
      try s.release("go")
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["unsent", "accepted"])
      #expect(try peer.requests().map(\.token) == [token(1), token(2)])
      #expect(try s.backend.count("select count(*) from nudge_attempt where may_have_buzzed = 1") == 1)
    }
  }

  @Test("a token that changes across a crash in the middle of a fan-out makes no second buzz")
  func changedAcrossRestart() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule(request: 3, [])], maxConcurrentStreams: 1))
      for number in 1...5 { try s.backend.register("phone-\(number)", token: token(number)) }
      let id = try s.backend.nudge()
      let worker = try s.worker(production: peer, ["--connections", "1"])
      try await peer.waitForRequests(3)
      worker.kill()
      let touched = try s.backend.attempts(id).compactMap { $0["device_id"].text }
      for (index, device) in touched.enumerated() { try s.backend.register(device, token: token(60 + index)) }
      _ = try s.worker(production: peer)
      try await s.backend.settled(id)
      let requests = try peer.requests()
      #expect(requests.count == 5)
      #expect(Set(requests.compactMap(\.token)) == Set((1...5).map(token)))
      let attempts = try s.backend.attempts(id)
      #expect(Set(attempts.compactMap { $0["device_id"].text }).count == 5)
      #expect(attempts.filter { $0["outcome"] == "interrupted" }.count == 1)
      #expect(attempts.filter { $0["outcome"] == "accepted" }.count == 4)
    }
  }

  @Test("BadDeviceToken once, a crash, and a changed token: the second host is asked with the token of then")
  func discoveryAcrossRestart() async throws {
    try await scenario { s in
      let production = try await s.peer(.python, PeerScript(tokens: [token(1): .wrong]))
      let sandbox = try await s.peer(.python, PeerScript(rules: [Rule([])]))
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let worker = try s.worker(production: production, sandbox: sandbox)
      try await sandbox.waitForRequests(1)
      worker.kill()
      try s.backend.register("phone-1", token: token(2))
      try await s.drain(production: production, sandbox: sandbox)
      #expect(try s.backend.outcomes(id) == ["wrong_host", "interrupted"])
      #expect(try production.requests().count == 1)
      #expect(try sandbox.requests().count == 1)
    }
  }

  @Test("a second worker exits 75 naming the first, and takes over when it is gone")
  func twoWorkers() async throws {
    try await scenario { s in
      let peer = try await s.peer(.python, PeerScript(maxConcurrentStreams: 4))
      try s.backend.register("phone-1", token: token(1))
      let first = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge(["title": "row 0"]))
      let second = try await s.nudged(["run"] + s.settings(production: peer))
      #expect(second.exit == .code(75))
      #expect(second.errors.contains("\(first.pid)"), "\(second.errors)")
      // The lock is on the real path: another name for the database changes nothing.
      try FileManager.default.createSymbolicLink(atPath: s.path("alias.db"), withDestinationPath: s.database)
      let settings = s.settings(production: peer).map { $0 == s.database ? s.path("alias.db") : $0 }
      let third = try await s.nudged(["run", "--drain"] + settings)
      #expect(third.exit == .code(75))

      try s.backend.script(
        """
        with recursive n(i) as (select 1 union all select i + 1 from n where i < 500)
        insert into nudge_outbox (title) select 'row ' || i from n;
        """)
      try await peer.waitForRequests(50)
      first.kill()
      try await s.drain(production: peer)
      let titles = try peer.requests().compactMap { $0.alert["title"] as? String }
      #expect(Set(titles).count == titles.count)
      #expect(try s.backend.states() == ["attempted": 501])
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 501)
    }
  }

  @Test("an answer that meets a locked database is recorded when the lock goes, and nothing is sent again")
  func locked() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try peer.script(PeerScript(rules: [Rule([.hold(s.path("go")), .answer()])]))
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let id = try s.backend.nudge()
      try await peer.waitForRequests(1)
      try s.backend.run("begin immediate")
      try s.release("go")
      try await eventually("the answer is out") { try peer.events("answer").count == 1 }
      try s.backend.run("insert into nudge_outbox (title) values ('behind the lock')")
      // Long enough for a busy time-out of a library's default to run out in the worker's hands.
      try await Task.sleep(for: .seconds(1))
      #expect(worker.isRunning)
      #expect(try s.backend.outcomes(id) == ["open"])
      try s.backend.run("commit")
      try await s.backend.settled(id + 1)
      try await s.backend.settled(id)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try peer.requests().count == 2)
    }
  }

  @Test("a database that is replaced under the worker is noticed: nothing of the old file is sent")
  func replaced() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge(["title": "old"]))
      let other = s.path("new.db")
      let backend = try Backend(database: other, folder: s.folder)
      try backend.run("create table message (id integer primary key, text text not null)")
      #expect(try await s.nudged(["migrate", "--database", other]).exit == .code(0))
      try backend.register("phone-1", token: token(2))
      try backend.nudge(["title": "new"])
      backend.end()
      for suffix in ["", "-wal", "-shm"] { unlink(s.database + suffix) }
      try FileManager.default.moveItem(atPath: other, toPath: s.database)
      try s.backend.nudge(["title": "into the deleted file"])
      try await eventually("it sends from the new file or leaves", state: { worker.errors }) {
        try !worker.isRunning || peer.requests().count == 2
      }
      if !worker.isRunning {
        #expect(worker.exit != .code(0))
        try await s.drain(production: peer)
      }
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["old", "new"])
      #expect(try peer.requests().map(\.token) == [token(1), token(2)])
    }
  }

  @Test("a database that is deleted under the worker ends it with a clear code, and nothing more is sent")
  func deleted() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge(["title": "before"]))
      for suffix in ["", "-wal", "-shm"] { unlink(s.database + suffix) }
      try s.backend.nudge(["title": "into the deleted file"])
      let exit = try await worker.wait(within: .seconds(10))
      #expect(exit == .code(66) || exit == .code(74), "\(exit)")
      #expect(worker.errors.contains(s.database))
      #expect(try peer.requests().count == 1)
    }
  }

  @Test("without the unique indexes that are the guarantee nothing is sent", arguments: ["device", "token"])
  func withoutIndex(_ name: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      try s.backend.run("drop index nudge_attempt_\(name)")
      let result = try await s.nudged(["run", "--drain"] + s.settings(production: peer))
      #expect(result.exit == .code(65), "\(result.exit)")
      #expect(result.errors.contains("nudge_attempt_\(name)"), "\(result.errors)")
      #expect(try s.backend.state(id) == "pending")
      #expect(try peer.events("connected").isEmpty)
    }
  }
}
