import Foundation
import SQLite
import Testing

@Suite("Adopter, with the built program and a real database")
struct AdopterTests {
  /// A backend's database with a phone in it, and a simulator that plays the app.
  private final class Backend {
    let folder: Folder
    let path: String
    let simulator: SimulatorProcess
    let jwt: String

    init(_ arguments: [String] = ["--adopt-after", "1ms"], migrated: Bool = true) throws {
      folder = try Folder()
      path = folder.file("app.db")
      let made = try run(
        try Programs.named("sqlite3"),
        [path, migrated ? "pragma journal_mode = wal" : "create table other (a)"],
        in: folder)
      guard made.code == 0 else { throw TestFailure(made.errors) }
      if migrated {
        try Database(path: path).execute(
          String(contentsOfFile: Programs.package + "/migrations/0001_initial.sql", encoding: .utf8))
      }
      simulator = try SimulatorProcess(
        ["--adopt", path, "--unknown-tokens", "reject"] + arguments, folder: folder,
        tokens: #"{"tokens": [{"token": "aa", "kind": "activity_start"}, {"token": "bb"}]}"#, quiet: false)
      jwt = try simulator.jwt()
    }

    /// The app hands over its start token, under which name the phone is known.
    func register(_ device: String, recipient: String = "owner", token: String = "aa") throws {
      try Database(path: path).execute(
        """
        insert into nudge_registration (device_id, recipient, topic, kind, scope, token)
        values ('\(device)', '\(recipient)', 'com.example.app', 'activity_start', 'TurnAttributes', '\(token)')
        """)
    }

    func push(_ body: ActivityBody, token: String = "aa", host: String = "production") throws
      -> NodeAnswer.Result
    {
      try simulator.node(host, [TestPush(activity: body, token: token, jwt: jwt)]).results[0]
    }

    func start(_ changes: [String: String?] = [:], host: String = "production", token: String = "aa") throws {
      let body = ActivityBody("start", timestamp: ActivityTests.now, changes)
      #expect(try push(body, token: token, host: host).status == 200)
    }

    func text(_ sql: String) throws -> String? {
      try Database(path: path, access: .readOnly, busyTimeout: .seconds(10)).text(sql)
    }

    static let token = "select token from nudge_token where kind = 'activity_update' and scope = 'turn-7'"

    /// The update token, once it is registered.
    func updateToken() throws -> String {
      var token: String?
      #expect(
        eventually {
          token = (try? text(Self.token)) ?? nil; return token != nil
        })
      return try #require(token)
    }

    func says(_ words: String) -> Bool { eventually { simulator.output.contains(words) } }
  }

  @Test(
    "the card gets a token in the database, on the host of the start, and is found by it",
    arguments: ["production", "sandbox"])
  func adopts(_ host: String) throws {
    let backend = try Backend()
    try backend.register("phone-1", recipient: "anna")
    try backend.register("phone-2", token: "cc")
    try backend.start(host: host)
    let token = try backend.updateToken()
    #expect(token.count == 160)
    #expect(
      try backend.text(
        """
        select device_id || ' ' || recipient || ' ' || topic || ' ' || environment from nudge_registration
        where kind = 'activity_update'
        """) == "phone-1 anna com.example.app \(host)")
    #expect(backend.says("Live Activity 1 adopted by phone-1, token \(token.prefix(8))…\n"))
    let update = ActivityBody("update", timestamp: ActivityTests.now + 1)
    // Good there and nowhere else, and not for another topic.
    #expect(try backend.push(update, token: token, host: host).status == 200)
    let other = host == "sandbox" ? "production" : "sandbox"
    #expect(try backend.push(update, token: token, host: other).reason == "BadDeviceToken")
    let alert = TestPush(token: token, jwt: backend.jwt)
    #expect(try backend.simulator.node(host, [alert]).results[0].reason == "DeviceTokenNotForTopic")
    let end = ActivityBody("end", timestamp: ActivityTests.now + 2)
    #expect(try backend.push(end, token: token.uppercased(), host: host).status == 200)
    // What came to the start token and what came to the update token is one card.
    let cards = backend.simulator.log.compactMap { ($0["phone"] as? [String: Any])?["card"] as? Int }
    #expect(cards == [1, 1, 1])
    // The content of the start counts as the last one applied.
    #expect(try backend.push(update, token: token, host: host).status == 200)
    #expect(backend.says("update dropped (inference): the activity has ended"))
    #expect(backend.simulator.errors.isEmpty)
  }

  @Test("an update that is not newer than the start is dropped")
  func older() throws {
    let backend = try Backend()
    try backend.register("phone-1")
    try backend.start()
    let token = try backend.updateToken()
    let update = ActivityBody("update", timestamp: ActivityTests.now)
    #expect(try backend.push(update, token: token).status == 200)
    #expect(backend.says("update dropped (inference): timestamp \(ActivityTests.now) is not newer"))
  }

  @Test("nothing is registered before the delay is over")
  func delay() throws {
    let backend = try Backend(["--adopt-after", "1500ms"])
    try backend.register("phone-1")
    let clock = ContinuousClock()
    let before = clock.now
    try backend.start()
    _ = try backend.updateToken()
    #expect(clock.now - before >= .milliseconds(1_500))
  }

  @Test("what was waiting for the token is pending again")
  func wakes() throws {
    let backend = try Backend(["--adopt-after", "10ms"])
    try backend.register("phone-1")
    try Database(path: backend.path, busyTimeout: .seconds(5)).execute(
      """
      insert into nudge_outbox (kind, activity_id) values ('activity_update', 'turn-7');
      update nudge_outbox set state = 'waiting'
      """)
    try backend.start()
    _ = try backend.updateToken()
    #expect(try backend.text("select state from nudge_outbox") == "pending")
  }

  @Test("a locked database is tried again, while requests are answered")
  func locked() throws {
    let backend = try Backend()
    try backend.register("phone-1")
    let holder = try Database(path: backend.path, busyTimeout: .seconds(5))
    try holder.execute("begin immediate")
    try backend.start()
    for _ in 0..<3 {
      #expect(try backend.simulator.node([TestPush(token: "bb", jwt: backend.jwt)]).results[0].status == 200)
    }
    #expect(try backend.text(Backend.token) == nil)
    try holder.execute("rollback")
    _ = try backend.updateToken()
    #expect(backend.simulator.errors.isEmpty)
  }

  @Test("a database that stays locked is given up, and said so")
  func lockedForGood() throws {
    let backend = try Backend()
    try backend.register("phone-1")
    let holder = try Database(path: backend.path, busyTimeout: .seconds(5))
    try holder.execute("begin immediate")
    try backend.start()
    #expect(backend.says("Live Activity 1 not adopted: \(backend.path): database is locked\n"))
    try holder.execute("rollback")
  }

  @Test("a faulty database is said plainly, and the simulator goes on")
  func faulty() throws {
    let backend = try Backend(migrated: false)
    try backend.start()
    #expect(backend.says("Live Activity 1 not adopted: \(backend.path): no such table: nudge_token\n"))
    try FileManager.default.removeItem(atPath: backend.path)
    try backend.start()
    #expect(backend.says("Live Activity 2 not adopted: \(backend.path): unable to open database file\n"))
    try backend.folder.write(String(repeating: "no database ", count: 100), to: "app.db")
    try backend.start()
    #expect(backend.says("Live Activity 3 not adopted: \(backend.path): file is not a database\n"))
    #expect(eventually { backend.simulator.errors.split(separator: "\n").count == 3 })
    #expect(backend.simulator.errors.hasPrefix("apns-simulator: Live Activity 1 not adopted: "))
  }

  @Test("what cannot be adopted says why")
  func cannot() throws {
    let backend = try Backend()
    try backend.start()
    #expect(backend.says("Live Activity 1 not adopted: \(backend.path): no device has this start token\n"))
    try backend.register("phone-1")
    try backend.start(["attributes": #"{"chat":"turn-7"}"#])
    #expect(
      backend.says(
        "Live Activity 2 not adopted: attributes has no text activityId, activity_id, activityID, id with the activity's id\n"
      ))
    try backend.start(["input-push-token": nil])
    #expect(backend.says("Live Activity 3 not adopted: the start has no \"input-push-token\": 1"))
    // What the phone drops makes no card.
    try backend.start(["alert": nil])
    try backend.start()
    _ = try backend.updateToken()
    #expect(backend.says("Live Activity 4 adopted by phone-1"))
  }

  @Test("an adopted token that is marked dead is answered 410, and the card goes")
  func swiped() throws {
    let backend = try Backend()
    try backend.register("phone-1")
    try backend.start()
    let token = try backend.updateToken()
    // The guide's own lines.
    let guide = try String(contentsOfFile: Programs.package + "/deploy/apns-simulator.md", encoding: .utf8)
    let blocks = guide.components(separatedBy: "```sh\n").map { $0.components(separatedBy: "```")[0] }
    let lines = try #require(blocks.first { $0.contains("from nudge_token") })
    #expect(try run("/bin/sh", ["-ec", lines], in: backend.folder).code == 0)
    #expect(backend.says("Live Activity 1 swiped away\n"))
    let end = ActivityBody("end", timestamp: ActivityTests.now + 1)
    #expect(try backend.push(end, token: token).reason == "Unregistered")
  }
}
