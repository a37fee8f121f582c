import Foundation
import Glibc
import Testing

@Suite("Key reload")
struct KeyReloadTests {
  private func copy(_ from: String, to: String) throws {
    // Written beside and renamed, as deployment tools do.
    try FileManager.default.copyItem(atPath: from, toPath: to + ".new")
    guard rename(to + ".new", to) == 0 else { throw Failure("rename: \(errno)") }
  }

  private func write(_ from: String, over path: String) throws {
    let handle = try #require(FileHandle(forWritingAtPath: path))
    try handle.truncate(atOffset: 0)
    try handle.write(contentsOf: try #require(FileManager.default.contents(atPath: from)))
    try handle.close()
  }

  private func link(_ target: String, at path: String) throws {
    guard symlink(target, path + ".new") == 0, rename(path + ".new", path) == 0 else {
      throw Failure("link: \(errno)")
    }
  }

  @Test(
    "a file that is renamed over the old one, written over, or reread at SIGHUP signs the next request",
    arguments: ["rename", "write", "signal"])
  func replaced(how: String) async throws {
    try await scenario { s in
      let signing = try await Signing(s)
      let (file, worker) = (signing.file, signing.worker)
      try await signing.send()
      switch how {
      case "write":
        try write(s.credentials.secondProviderKey, over: file)
      case "signal":
        // Through another name of the file, which no watch of ours sees.
        let elsewhere = s.path("elsewhere")
        try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: false)
        try FileManager.default.linkItem(atPath: file, toPath: "\(elsewhere)/key")
        try await signing.send()
        #expect(!worker.errors.contains("signing key"))
        try write(s.credentials.secondProviderKey, over: "\(elsewhere)/key")
        worker.signal(SIGHUP)
      default: try copy(s.credentials.secondProviderKey, to: file)
      }
      try await signing.takesNewKey()
      try await signing.send()
      let requests = try signing.peer.requests()
      try signing.verify(requests[0], by: s.credentials.providerPublicKey)
      try signing.verifyLast(by: s.credentials.secondProviderPublicKey)
      // A connection belongs to one key.
      #expect(requests[0].connection != requests.last?.connection)
      #expect(worker.lines("new signing key").count == 1, "\(worker.errors)")
    }
  }

  @Test("a link that is set to another key changes the key id with it, through a link to a folder as well")
  func links() async throws {
    try await scenario { s in
      let files = FileManager.default
      for (folder, key) in [("1", s.credentials.providerKey), ("2", s.credentials.secondProviderKey)] {
        try files.createDirectory(atPath: s.path("release-\(folder)"), withIntermediateDirectories: true)
        try files.copyItem(
          atPath: key, toPath: s.path("release-\(folder)/\(URL(filePath: key).lastPathComponent)"))
        try link(URL(filePath: key).lastPathComponent, at: s.path("release-\(folder)/key.p8"))
      }
      try link("release-1", at: s.path("current"))
      let signing = try await Signing(s, file: s.path("current/key.p8"), keyID: nil)
      try await signing.send()
      #expect(try signing.verifyLast(by: s.credentials.providerPublicKey) == Credentials.keyID)
      try link("release-2", at: s.path("current"))
      try await signing.takesNewKey()
      try await signing.send()
      #expect(try signing.verifyLast(by: s.credentials.secondProviderPublicKey) == Credentials.secondKeyID)
      // And back, within the new folder.
      try files.copyItem(atPath: s.credentials.providerKey, toPath: s.path("AuthKey_\(Credentials.keyID).p8"))
      try link("../AuthKey_\(Credentials.keyID).p8", at: s.path("release-2/key.p8"))
      try await signing.worker.says("new signing key in use", times: 2)
      try await signing.send()
      #expect(try signing.verifyLast(by: s.credentials.providerPublicKey) == Credentials.keyID)
    }
  }

  @Test("what is in flight when SIGHUP comes is answered, and only the next request has the new key")
  func inFlight() async throws {
    try await scenario { s in
      let signing = try await Signing(s)
      let (peer, worker) = (signing.peer, signing.worker)
      try await signing.send()
      try peer.script(PeerScript(rules: [Rule(connection: 1, [.hold(s.path("go")), .answer()])]))
      let held = try (1...20).map { try s.backend.nudge(["title": .text("held \($0)")]) }
      try await peer.waitForRequests(21)
      try copy(s.credentials.secondProviderKey, to: signing.file)
      worker.signal(SIGHUP)
      try await signing.takesNewKey()
      try await signing.send()
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome is null") == 20)
      try s.release("go")
      for id in held { try await s.backend.settled(id) }
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 22)
      let requests = try peer.requests()
      #expect(requests.count == 22)
      try signing.verify(requests[20], by: s.credentials.providerPublicKey)
      try signing.verify(requests[21], by: s.credentials.secondProviderPublicKey)
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
    }
  }

  @Test("a bad new key keeps the old one and is said once, with file and fault; a good one after it is taken")
  func bad() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let signing = try await Signing(s, environment: ["NOTIFY_SOCKET": manager.name])
      let (file, worker) = (signing.file, signing.worker)
      try await signing.send()
      let rsa = s.path("rsa.pem")
      _ = try runToEnd([try Paths.program("openssl"), "genrsa", "-out", rsa, "2048"], folder: s.folder)
      let faults: [(what: String, make: () throws -> Void)] = [
        ("P-256", { try copy(rsa, to: file) }),
        ("is empty", { try "".write(toFile: file, atomically: true, encoding: .utf8) }),
        ("No such file", { try FileManager.default.removeItem(atPath: file) }),
        (
          "is a directory",
          { try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false) }
        ),
      ]
      for (count, fault) in faults.enumerated() {
        try fault.make()
        try await signing.refuses(times: count + 1)
        let line = try #require(signing.refusals.last)
        #expect(line.contains(fault.what) && line.contains(file), "\(line)")
        try await signing.send()
      }
      // The same again says nothing; whoever asks is told.
      let reloads = manager.values("MONOTONIC_USEC").count
      try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: file)
      try await eventually("it has looked") { manager.values("MONOTONIC_USEC").count > reloads }
      try await signing.send()
      #expect(signing.refusals.count == faults.count)
      worker.signal(SIGHUP)
      try await signing.refuses(times: faults.count + 1)
      for request in try signing.peer.requests() {
        try signing.verify(request, by: s.credentials.providerPublicKey)
      }
      try FileManager.default.removeItem(atPath: file)
      try copy(s.credentials.secondProviderKey, to: file)
      try await signing.takesNewKey()
      try await signing.send()
      try signing.verifyLast(by: s.credentials.secondProviderPublicKey)
      for key in [s.credentials.providerKey, s.credentials.secondProviderKey, rsa] {
        for line in try String(contentsOfFile: key, encoding: .utf8).split(separator: "\n")
        where line.count == 64 {
          #expect(!worker.errors.contains(line))
        }
      }
    }
  }

  @Test(
    "a key that its file's name contradicts is not taken, nor one without an id", arguments: [true, false])
  func contradiction(isIDGiven: Bool) async throws {
    try await scenario { s in
      let file = s.path("key.p8")
      try link(s.credentials.providerKey, at: file)
      let signing = try await Signing(s, file: file, keyID: isIDGiven ? Credentials.keyID : nil)
      try await signing.send()
      if isIDGiven {
        try link(s.credentials.secondProviderKey, at: file)
      } else {
        try copy(s.credentials.secondProviderKey, to: file)
      }
      try await signing.refuses(times: 1)
      let words = isIDGiven ? "--production-key-id says \(Credentials.keyID)" : "--key-id"
      #expect(signing.refusals[0].contains(words))
      try await signing.send()
      try signing.verifyLast(by: s.credentials.providerPublicKey)
    }
  }

  @Test("the same content again is no new key, and its provider token stays")
  func same() async throws {
    try await scenario { s in
      let signing = try await Signing(s)
      try await signing.send()
      try copy(s.credentials.providerKey, to: signing.file)
      signing.worker.signal(SIGHUP)
      try await signing.worker.says("signing key is the same as before")
      try await signing.send()
      let requests = try signing.peer.requests()
      #expect(requests[0].header("authorization") == requests[1].header("authorization"))
      #expect(requests[0].connection == requests[1].connection)
    }
  }

  @Test("a pause for refused credentials ends with a new key")
  func pause() async throws {
    try await scenario { s in
      let signing = try await Signing(
        s, PeerScript(rules: [Rule(times: 3, [.answer(403, reason: "InvalidProviderToken")])]))
      // Three pauses in a row: 5, 10 and 20 s. The last would outlast the test's patience.
      for number in 1...3 {
        try s.backend.nudge()
        try await signing.worker.says("refuses our credentials", times: number, within: .seconds(30))
      }
      let id = try s.backend.nudge()
      let start = ContinuousClock.now
      try copy(s.credentials.secondProviderKey, to: signing.file)
      try await s.backend.settled(id, within: .seconds(18))
      #expect(ContinuousClock.now - start < .seconds(18))
      #expect(try s.backend.outcomes(id) == ["accepted"])
      try signing.verifyLast(by: s.credentials.secondProviderPublicKey)
    }
  }

  @Test("around a reload the service manager is told, with its clock")
  func notified() async throws {
    try await scenario { s in
      let manager = try ServiceManager(s.path("notify"))
      let worker = try s.start(
        ["run"] + s.settings(production: try await s.peer()), environment: ["NOTIFY_SOCKET": manager.name])
      try await eventually("it is ready") { manager.states == ["READY=1"] }
      worker.signal(SIGHUP)
      try await eventually("it has reloaded") { manager.states == ["READY=1", "RELOADING=1", "READY=1"] }
      let told = try #require(manager.values("MONOTONIC_USEC").first.flatMap(Int64.init))
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      let age = Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000 - told
      #expect((0..<30_000_000).contains(age))
    }
  }

  @Test("SIGHUP while the worker starts, at the moment when it reads its key, is no end, and is heard")
  func early() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let strace = [
        try Paths.program("strace"), "-D", "-f", "-qq", "-o", "/dev/null", "-P", s.credentials.providerKey,
        "-e", "trace=openat", "-e", "inject=openat:signal=SIGHUP:when=1",
      ]
      let worker = try s.run(
        "worker", strace + [try Paths.nudged(), "run"] + s.settings(production: peer))
      try await worker.says("signing key is the same as before")
      worker.signal(SIGTERM)
      #expect(try await worker.wait() == .code(0))
    }
  }
}
