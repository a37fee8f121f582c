import Foundation
import Glibc
import Testing

@Suite("One worker")
struct OneWorkerTests {
  /// Commits `count` rows for one phone.
  private func backlog(_ count: Int, _ s: Scenario) throws {
    try s.backend.register("phone-1", token: token(1))
    try s.backend.script(
      """
      with recursive n(i) as (select 1 union all select i + 1 from n where i < \(count))
      insert into nudge_outbox (title) select 'row ' || i from n;
      """)
  }

  @Test(
    "of two that start at once over 500 rows one exits 75 naming the other; killed, it leaves the rest to a new one"
  )
  func race() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.wait(milliseconds: 15), .answer()])], maxConcurrentStreams: 8))
      try backlog(500, s)
      let pair = try [s.worker(production: peer), s.worker(production: peer)]
      try await eventually("one of them leaves") { !pair.allSatisfy(\.isRunning) }
      let loser = try #require(pair.first { !$0.isRunning })
      let winner = try #require(pair.first { $0.pid != loser.pid })
      #expect(loser.exit == .code(75))
      #expect(loser.errors.contains("pid \(winner.pid)"), "\(loser.errors)")

      let start = try peer.requests().count
      try await peer.waitForRequests(start + 60)
      #expect(winner.isRunning)
      winner.kill()
      let claimed = try s.backend.count("select count(*) from nudge_attempt")
      #expect(claimed < 500)
      let open = try s.backend.count("select count(*) from nudge_attempt where outcome is null")

      try await s.drain(production: peer)
      let titles = try peer.requests().compactMap { $0.alert["title"] as? String }
      #expect(Set(titles).count == titles.count, "a row was asked for twice")
      #expect(try s.backend.states() == ["attempted": 500])
      // The new one took what was not claimed: one attempt a row, and those in flight at the kill are interrupted.
      #expect(try s.backend.count("select count(*) from nudge_attempt") == 500)
      #expect(
        try s.backend.count("select count(*) from nudge_attempt where outcome = 'interrupted'") == open)
      #expect(
        try s.backend.count(
          "select count(*) from nudge_attempt where id > \(claimed) and outcome = 'accepted'")
          == 500 - claimed)
    }
  }

  @Test("every other path of the same file leads to the same lock")
  func otherPaths() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let first = try s.worker(production: peer)
      try await s.backend.settled(try s.backend.nudge())
      let files = FileManager.default
      let name = URL(filePath: s.database).lastPathComponent
      let elsewhere = try temporaryFolder("elsewhere")
      defer { try? files.removeItem(atPath: elsewhere) }
      try files.createSymbolicLink(atPath: "\(elsewhere)/link.db", withDestinationPath: s.database)
      try files.createSymbolicLink(atPath: "\(elsewhere)/folder", withDestinationPath: s.folder)
      try files.createSymbolicLink(atPath: "\(elsewhere)/chain.db", withDestinationPath: "link.db")
      let paths = [
        "\(elsewhere)/link.db", "\(elsewhere)/chain.db", "\(elsewhere)/folder/\(name)",
        "\(elsewhere)/folder/./\(name)", "\(s.folder)//\(name)",
        "\(s.folder)/../\(URL(filePath: s.folder).lastPathComponent)/\(name)",
      ]
      for path in paths {
        let settings = s.settings(production: peer).map { $0 == s.database ? path : $0 }
        let second = try await s.nudged(["run", "--drain"] + settings)
        #expect(second.exit == .code(75), "\(path): \(second.errors)")
        #expect(second.errors.contains("pid \(first.pid)"), "\(path): \(second.errors)")
      }
      #expect(first.isRunning)
      #expect(try peer.requests().count == 1)
    }
  }

  @Test("the lock of a killed worker is free at once, and its file is used again")
  func stale() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      for title in ["one", "two", "three"] {
        let worker = try s.worker(production: peer)
        try await s.backend.settled(try s.backend.nudge(["title": .text(title)]))
        worker.kill()
      }
      let locks = try FileManager.default.contentsOfDirectory(atPath: s.folder).filter { $0.contains("lock") }
      #expect(locks.count == 1, "\(locks)")
    }
  }

  @Test("a lock file that cannot be written: exit 74, naming the file and the reason, and nothing is sent")
  func unwritable() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let lock = try #require(realpath(s.database, nil).map { String(cString: $0) }) + "-nudged.lock"
      try Data().write(to: URL(filePath: lock))
      chmod(lock, 0)
      // Permissions do not bind root, so then it is somebody else who tries.
      var command = [try Paths.nudged(), "run", "--drain"] + s.settings(production: peer)
      if geteuid() == 0 {
        for path in [s.folder, s.database, s.database + "-wal", s.database + "-shm"] { chmod(path, 0o777) }
        chmod(s.credentials.folder, 0o755)
        // A copy: the key is every test's, and its mode is looked at by some.
        let key = "\(s.folder)/AuthKey_\(Credentials.keyID).p8"
        try FileManager.default.copyItem(atPath: s.credentials.providerKey, toPath: key)
        chmod(key, 0o644)
        command =
          ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
          + command.map { $0 == s.credentials.providerKey ? key : $0 }
      }
      let refused = try s.run("refused", command)
      #expect(try await refused.wait() == .code(74), "\(refused.errors)")
      #expect(refused.errors.contains(lock), "\(refused.errors)")
      #expect(refused.errors.contains("Permission denied"), "\(refused.errors)")
      #expect(refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")

      unlink(lock)
      mkdir(lock, 0o700)
      let folder = try await s.nudged(["run", "--drain"] + s.settings(production: peer))
      #expect(folder.exit == .code(74), "\(folder.errors)")
      #expect(folder.errors.contains(lock), "\(folder.errors)")
      #expect(try peer.events("connected").isEmpty)

      rmdir(lock)
      _ = try s.worker(production: peer)
      try await s.backend.settled(id)
    }
  }

  @Test(
    "even if the lock is taken away, one of two notices the other and leaves, and no row is asked for twice")
  func withoutLock() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.wait(milliseconds: 10), .answer()])], maxConcurrentStreams: 8))
      try backlog(1500, s)
      let first = try s.worker(production: peer)
      try await peer.waitForRequests(20)
      unlink(try #require(realpath(s.database, nil).map { String(cString: $0) }) + "-nudged.lock")
      let second = try s.worker(production: peer)
      let errors = { "\(first.errors.suffix(500)) \(second.errors.suffix(500))" }
      try await eventually("every row has ended", state: errors) {
        try s.backend.count("select count(*) from nudge_outbox where state = 'pending'") == 0
      }
      try await eventually("one has left", state: errors) { !first.isRunning || !second.isRunning }
      let (loser, winner) = first.isRunning ? (second, first) : (first, second)
      #expect(loser.exit == .code(75), "\(loser.errors.suffix(500))")
      #expect(loser.errors.contains("pid \(winner.pid)"), "\(loser.errors.suffix(500))")
      #expect(winner.isRunning)
      let titles = try peer.requests().compactMap { $0.alert["title"] as? String }
      #expect(Set(titles).count == titles.count, "a row was asked for twice")
      #expect(try s.backend.value("pragma integrity_check") == "ok")
    }
  }
}
