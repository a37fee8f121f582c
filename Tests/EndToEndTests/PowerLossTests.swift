import Foundation
import Glibc
import Testing

@Suite("Power loss")
struct PowerLossTests {
  static let rows = 60

  /// A backlog that takes several turns: few streams, and the first request alone on its connection.
  private func backlog(_ s: Scenario) async throws -> TestPeer {
    let peer = try await s.peer(.python, PeerScript(maxConcurrentStreams: 10))
    try s.backend.register("phone-1", token: token(1))
    try s.backend.script(
      """
      with recursive n(i) as (select 1 union all select i + 1 from n where i < \(Self.rows))
      insert into nudge_outbox (title) select 'row ' || i from n;
      """)
    return peer
  }

  @Test(
    "no byte goes to a host while the database has written what it has not synced",
    arguments: ["wal", "delete"])
  func order(journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await backlog(s)
      let log = s.path("strace.log")
      let calls = "write,writev,sendto,sendmsg,pwrite64,pwritev,ftruncate,fdatasync,fsync,unlink"
      let worker = try s.run(
        "traced",
        Strace.recording(
          calls, to: log,
          [try Paths.nudged(), "run", "--drain"] + s.settings(production: peer) + ["--connections", "1"]))
      #expect(try await worker.wait() == .code(0))
      #expect(try peer.requests().count == Self.rows)
      try await eventually("strace has written its log") {
        try String(contentsOfFile: log, encoding: .utf8).contains("<TCP")
      }

      let trace = SyncOrder(try String(contentsOfFile: log, encoding: .utf8), database: s.database)
      let violations = trace.violations
      #expect(violations.isEmpty)
      // The first request and six times ten: as many commits, each before the bytes that it allows.
      let commits = trace.commitsBeforeWrites
      #expect(commits >= 7)
      let name = URL(filePath: s.database).lastPathComponent
      let folder = "folder"
      let claim =
        journal == "wal"
        ? ["sync \(name)-wal"]
        : [
          "sync \(name)-journal", "sync \(folder)", "sync \(name)-journal", "sync \(name)",
          "unlink \(name)-journal",
          "sync \(folder)",
        ]
      let hasClaim = trace.contains(claim + ["to the host"])
      #expect(hasClaim, "\(trace.steps.prefix(60))")
    }
  }

  @Test("the reader of the system calls notices each kind of broken order")
  func controlOfOrder() {
    let good = """
      7 pwrite64(5</d/app.db-wal>, ""..., 24, 0) = 24
      7     fdatasync(5</d/app.db-wal>) = 0
      7 write(9<TCP:[1->2]>, ""..., 100) = 100
      """
    #expect(SyncOrder(good, database: "/d/app.db").violations.isEmpty)
    let bad = [
      "7 pwrite64(5</d/app.db-wal>, \"\"..., 24, 0) = 24",
      "7 pwrite64(5</d/app.db-wal>, \"\"..., 24, 0) = 24\n7 fdatasync(5</d/app.db-wal>) = -1 EIO (error)",
      "7 pwrite64(5</d/app.db-wal>, \"\"..., 24, 0) = 24\n7 fdatasync(5</d/app.db-wal> <unfinished ...>",
      "7 pwrite64(5</d/app.db-wal>, \"\"..., 24, 0) = 24\n7 fdatasync(6</d/app.db>) = 0",
      "7 unlink(\"/d/app.db-journal\") = 0",
    ]
    for lines in bad {
      let trace = SyncOrder(lines + "\n7 write(9<TCP:[1->2]>, \"\"..., 100) = 100", database: "/d/app.db")
      #expect(trace.violations.count == 1, "\(lines)")
    }
  }

  @Test(
    "what survives a power loss at the first byte of any request holds its attempt, and it is not asked again",
    arguments: ["wal", "delete"])
  func survivors(journal: String) async throws {
    try await scenario(journal: journal) { s in
      let peer = try await backlog(s)
      let images = try await runOnPower(s, peer, dropped: false)
      #expect(try peer.requests().count == Self.rows)
      #expect(images.keys.max() == Self.rows)
      #expect(images.count >= 6, "\(images.keys.sorted())")
      for (requests, image) in images {
        #expect(try attempts(image, s) >= requests, "before request \(requests)")
      }

      // The machine comes up again with what was left before the request in the middle.
      let asked = try peer.requests().compactMap { $0.alert["title"] as? String }
      let middle = try #require(images.keys.sorted().first { $0 > Self.rows / 3 })
      let image = try #require(images[middle])
      let settings = s.settings(production: peer).map { $0 == s.database ? image : $0 }
      let again = try await s.nudged(["run", "--drain"] + settings)
      #expect(again.exit == .code(0), "\(again.errors)")
      let askedAgain = try peer.requests().dropFirst(Self.rows).compactMap { $0.alert["title"] as? String }
      #expect(Set(askedAgain).isDisjoint(with: asked.prefix(middle)))
      #expect(!askedAgain.isEmpty)
      #expect(try attempts(image, s) == Self.rows)
    }
  }

  @Test("the image notices when a sync is not one", arguments: ["wal", "delete"])
  func controlOfSurvivors(journal: String) async throws {
    try await scenario(journal: journal) { s in
      let images = try await runOnPower(s, try await backlog(s), dropped: true)
      for (_, image) in images { #expect(try attempts(image, s) == 0) }
      #expect(!images.isEmpty)
    }
  }

  /// Drains with the library of `power.c` in the worker, and returns what would have survived before the first byte of
  /// each request, by number of requests that had begun.
  private func runOnPower(_ s: Scenario, _ peer: TestPeer, dropped: Bool) async throws -> [Int: String] {
    let library = s.path("power.so")
    let compiled = try runToEnd(
      [
        try Paths.program("cc"), "-shared", "-fPIC", "-O1", "-o", library, "\(Paths.peers)/power.c", "-ldl",
      ], folder: s.folder)
    #expect(compiled.exit == .code(0), "\(compiled.errors)")
    let folder = s.path("images")
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let path = try #require(realpath(s.database, nil))
    defer { free(path) }
    var environment = [
      "LD_PRELOAD": library, "POWER_DATABASE": String(cString: path), "POWER_IMAGES": folder,
    ]
    if dropped { environment["POWER_DROP"] = "1" }
    let worker = try s.start(
      ["run", "--drain"] + s.settings(production: peer) + ["--connections", "1"], environment: environment)
    #expect(try await worker.wait() == .code(0), "\(worker.errors.suffix(2000))")
    var images: [Int: String] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
      guard name.hasPrefix("before-"), let number = Int(name.dropFirst("before-".count)) else { continue }
      images[number] = "\(folder)/\(name)/\(URL(filePath: s.database).lastPathComponent)"
    }
    return images
  }

  /// How many attempts an image holds, once SQLite has recovered it.
  private func attempts(_ image: String, _ s: Scenario) throws -> Int {
    let backend = try Backend(database: image, folder: s.folder)
    defer { backend.end() }
    #expect(try backend.value("pragma integrity_check") == "ok")
    return try backend.count("select count(*) from nudge_attempt")
  }
}

/// The order of syncs and of bytes to a host in a log of `strace -f -yy`.
struct SyncOrder {
  /// `sync NAME`, `unlink NAME`, `to the host`; the names of the database's own files, and `folder`.
  private(set) var steps: [String] = []
  private(set) var violations: [String] = []
  /// How many writes to a host were the first after a commit that was synced.
  private(set) var commitsBeforeWrites = 0

  init(_ log: String, database: String) {
    let folder = URL(filePath: database).deletingLastPathComponent().path
    let files = Set(["", "-wal", "-journal"].map { database + $0 })
    var unsynced: Set<String> = []
    var hasSynced = false
    // A call that another thread's call interrupts in the log: by thread, until it is resumed.
    var unfinished: [Substring: Substring] = [:]
    for line in log.split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: true)
      guard parts.count == 2 else { continue }
      // Short process ids are followed by more than one space.
      var call = parts[1].drop { $0 == " " }
      var hasReturned = true
      if let end = call.range(of: " <unfinished ...>") {
        call = call[..<end.lowerBound]
        unfinished[parts[0]] = call
        hasReturned = false
      } else if call.hasPrefix("<... ") {
        guard let begun = unfinished.removeValue(forKey: parts[0]) else { continue }
        call = begun + call
        // What is written counts from the beginning of the call, what is synced from its end.
        guard begun.hasPrefix("f") && begun.contains("sync(") else { continue }
      }
      let name = call.prefix { $0 != "(" }
      let path = call.split(separator: "<", maxSplits: 1).dropFirst().first?.prefix { $0 != ">" }
        .replacingOccurrences(of: " (deleted)", with: "")
      switch name {
      case "fdatasync", "fsync":
        guard hasReturned, call.hasSuffix("= 0"), let path else { continue }
        if files.contains(path) || path == folder {
          unsynced.remove(path)
          steps.append("sync \(path == folder ? "folder" : URL(filePath: path).lastPathComponent)")
          hasSynced = true
        }
      case "unlink":
        let target = String(call.split(separator: "\"").dropFirst().first ?? "")
        guard files.contains(target) else { continue }
        unsynced.insert(folder)
        unsynced.remove(target)
        steps.append("unlink \(URL(filePath: target).lastPathComponent)")
      case _ where path?.hasPrefix("TCP") == true || path?.hasPrefix("socket:") == true:
        if !unsynced.isEmpty { violations.append("\(unsynced.sorted()) before \(line)") }
        if hasSynced { commitsBeforeWrites += 1 }
        hasSynced = false
        steps.append("to the host")
      default:
        if let path, files.contains(path) { unsynced.insert(path) }
      }
    }
  }

  /// Whether `pattern` occurs without anything between.
  func contains(_ pattern: [String]) -> Bool {
    steps.indices.contains { steps[$0...].starts(with: pattern) }
  }
}
