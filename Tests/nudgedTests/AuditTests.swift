import Foundation
import Outbox
import Relay
import SQLite
import Testing

@testable import nudged

@Suite("Audit")
final class AuditTests {
  private let folder: TemporaryFolder
  private let path: String
  private let database: Database
  /// One moment for a whole test.
  private let now = Clock.system.wall()

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    try nudged(["migrate", "--database", path])
    database = try Database(path: path)
  }

  private func audit(_ arguments: String...) throws -> [String] {
    try nudged(["audit", "--database", path] + arguments).text.split(separator: "\n").map(String.init)
  }

  /// A nudge that was written `ago` milliseconds ago.
  @discardableResult
  private func nudge(
    _ record: String, _ state: String = "pending", detail: String? = nil, ago: Int64 = 60_000
  )
    throws -> Int64
  {
    let text = detail.map { "'\($0)'" } ?? "null"
    try database.execute(
      """
      insert into nudge_outbox (record_id, created_at) values ('\(record)', \(now - ago));
      update nudge_outbox set state = '\(state)', detail = \(text),
        settled_at = case when '\(state)' in ('pending', 'waiting') then null else created_at + 5 end
      where id = last_insert_rowid()
      """)
    return database.lastInsertedID
  }

  private func attempt(
    _ nudge: Int64, _ outcome: String?, _ status: Int? = nil, _ reason: String? = nil,
    device: String = "phone-1",
    ago: Int64 = 50_000
  ) throws {
    let insert = try database.prepare(
      """
      insert into nudge_attempt (nudge_id, device_id, token_hash, environment, started_at, finished_at, outcome,
        status, reason, may_have_buzzed)
      values (?1, ?2, ?2, 'production', ?3, case when ?4 is not null then ?3 + 61 end, ?4, ?5, ?6,
        case when ?4 in ('wrong_host', 'unsent') then null else 1 end)
      """)
    insert.bind(1, nudge)
    insert.bind(2, device)
    insert.bind(3, now - ago)
    insert.bind(4, outcome)
    insert.bind(5, status.map(Int64.init))
    insert.bind(6, reason)
    try insert.run()
  }

  @Test("each outcome is said in plain words, with Apple's own")
  func outcomes() throws {
    let cases: [(outcome: String?, status: Int?, reason: String?, words: String)] = [
      ("accepted", 200, nil, "accepted after 61 ms"),
      ("rejected", 403, "InvalidProviderToken", "refused by Apple: 403 InvalidProviderToken"),
      (
        "dead_token", 410, "Unregistered", "dead token (410 Unregistered): the app is gone or has another one"
      ),
      ("wrong_host", 400, "BadDeviceToken", "wrong host (400 BadDeviceToken): the token is not known there"),
      ("unanswered", nil, nil, "no answer came: it may have arrived"),
      ("interrupted", nil, nil, "the worker ended before the answer: it may have arrived"),
      ("unsent", nil, nil, "not taken: Apple's server never processed the request"),
      (nil, nil, nil, "open: the worker is gone; the next `nudged run` settles it as interrupted"),
    ]
    for (number, one) in cases.enumerated() {
      try attempt(try nudge("m-\(number)", "attempted"), one.outcome, one.status, one.reason)
    }
    let lines = try audit()
    #expect(lines.count == cases.count + 1)
    for (line, one) in zip(lines.dropFirst(), cases) {
      #expect(line.hasSuffix("  production  \(one.words)"), "\(line)")
    }
  }

  @Test("a nudge without a request says why, and what is open says what it waits for, last")
  func withoutAttempts() throws {
    try nudge("job", "suppressed", detail: "duplicate of nudge 1")
    try nudge("late", "expired")
    try nudge("bad", "invalid", detail: "aps is not a JSON object")
    try nudge("nobody", "unaddressed", detail: "recipient anna has no device")
    try nudge("due", ago: 3 * 24 * 3600 * 1000)
    try nudge("ride", "waiting", ago: 2 * 3600 * 1000)
    try nudge("later")
    try database.execute("update nudge_outbox set not_before_at = 1893456000000 where record_id = 'later'")
    let endings = [
      "suppressed: duplicate of nudge 1", "expired: its time ran out before it could be sent",
      "invalid: aps is not a JSON object", "unaddressed: recipient anna has no device",
      "pending: due for 3d, and no worker runs: start `nudged run`",
      "waiting for 2h: for the activity's update token", "pending: not due before 2030-01-01T00:00:00Z",
    ]
    for (line, ending) in zip(try audit("--since", "1h").dropFirst(), endings) {
      #expect(line.hasSuffix("  (owner: phone)  -     \(ending)"), "\(line)")
    }
    #expect(try audit("--since", "1h").count == endings.count + 1)
  }

  @Test("attempts of a nudge that is not through, or was cut short, say so")
  func partly() throws {
    let open = try nudge("open")
    try attempt(open, "unsent")
    let cut = try nudge("cut", "attempted", detail: "expired before 1 of 2 devices")
    try attempt(cut, "accepted", 200, ago: 40_000)
    #expect(
      try audit()[1...].map { $0.split(separator: "production  ").last ?? "" } == [
        "not taken: Apple's server never processed the request; more is still to be tried",
        "accepted after 61 ms (expired before 1 of 2 devices)",
      ])
  }

  @Test("it looks back 24 hours unless told otherwise, and for a record as far as there are rows")
  func since() throws {
    try attempt(try nudge("old", "attempted", ago: 90_000_000), "accepted", 200, ago: 90_000_000)
    try attempt(try nudge("new", "attempted"), "accepted", 200)
    func records(_ arguments: String...) throws -> [String] {
      try nudged(["audit", "--json", "--database", path] + arguments).text.split(separator: "\n").map {
        try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])["record_id"]
          as? String ?? ""
      }
    }
    #expect(try records() == ["new"])
    #expect(try records("--since", "30d") == ["old", "new"])
    #expect(try records("--since", "\(now - 90_000_001)") == ["old", "new"])
    #expect(try records("--since", WallTime.text(now - 80_000_000)) == ["new"])
    #expect(try records("--record", "old") == ["old"])
    #expect(try records("--record", "old", "--since", "24h").isEmpty)
  }

  @Test("recipient, record and device narrow it down; a device also sees what was meant for its like")
  func filters() throws {
    try nudged([
      "register", "--database", path, "--device", "tab-1", "--recipient", "anna", "--surface", "tablet",
    ])
    try attempt(try nudge("to-phone", "attempted"), "accepted", 200)
    try nudge("17", "expired")
    for (record, recipient, surface) in [
      ("hers", "anna", "tablet"), ("all", "anna", "*"), ("other", "anna", "phone"),
    ] {
      let id = try nudge(record, "expired")
      try database.execute(
        "update nudge_outbox set recipient = '\(recipient)', surface = '\(surface)' where id = \(id)")
    }
    func count(_ arguments: String...) throws -> Int {
      try nudged(["audit", "--json", "--database", path] + arguments).text.split(separator: "\n").count
    }
    #expect(try count() == 5)
    #expect(try count("--recipient", "owner") == 2)
    #expect(try count("--recipient", "anna") == 3)
    #expect(try count("--record", "17") == 1)
    #expect(try count("--device", "phone-1") == 1)
    #expect(try count("--device", "tab-1") == 2)
    #expect(try count("--device", "tab-1", "--recipient", "owner") == 0)
    // The backend deleted the nudge: its attempt still tells of the device.
    try database.execute("delete from nudge_outbox where record_id = 'to-phone'")
    #expect(try count("--device", "phone-1") == 1)
  }

  @Test("without a line it says where it looked and what else to ask")
  func nothing() throws {
    let text = try nudged(["audit", "--database", path, "--record", "m\u{1b}", "--device", "d"]).text
    #expect(text.hasPrefix("nothing in \(path) for record m\\u{1b}, device d\n"))
    #expect(text.contains("--since 30d") && text.contains("`nudged devices`"))
    #expect(
      try nudged(["audit", "--database", path]).text.hasPrefix("nothing in \(path) for since 20") == false)
    #expect(try nudged(["audit", "--json", "--database", path]).text.isEmpty)
  }

  @Test("columns stay aligned beside wide characters, and no text steers the terminal")
  func alignment() throws {
    for record in ["m-1", "日本語のレコード", "é👍🏽", "\u{1b}[31mred", "a\u{202e}b\r\n\tc"] {
      try nudge(record, "expired")
    }
    let lines = try audit()
    #expect(lines.count == 6)
    let columns = lines.map { line in
      line.components(separatedBy: "  (owner: phone)").first.map {
        $0.unicodeScalars.reduce(0) { $0 + Terminal.columns($1) }
      }
    }
    #expect(Set(columns.dropFirst()).count == 1, "\(lines)")
    #expect(Terminal.columns("日") == 2 && Terminal.columns("👍") == 2 && Terminal.columns("\u{301}") == 0)
    #expect(lines.joined().unicodeScalars.allSatisfy(TextTable.isPrintable))
    #expect(lines[4].contains("\\u{1b}[31mred") && lines[5].contains("a\\u{202e}b\\u{d}\\u{a}\\u{9}c"))
  }

  @Test("colour is for terminals: on the last cell only, and reset behind it")
  func colour() throws {
    try attempt(try nudge("m-1", "attempted"), "rejected", 400, "BadTopic")
    let lines = try AuditLine.read(AuditLine.Filter(since: 0), databaseAt: path)
    let words = AuditWords(now: now, worker: nil)
    let plain = Audit.table(lines, words, inColour: false)
    let colourful = Audit.table(lines, words, inColour: true)
    #expect(!plain.contains("\u{1b}"))
    #expect(colourful.hasSuffix("  \u{1b}[31mrefused by Apple: 400 BadTopic\u{1b}[0m\n"))
    #expect(colourful.replacing("\u{1b}[31m", with: "").replacing("\u{1b}[0m", with: "") == plain)
    let shown = try Child.shell(
      """
      for setting in TERM=xterm 'NO_COLOR=1 TERM=xterm' TERM=dumb; do
        env $setting script -qec "$nudged audit --database \(path)" /dev/null | grep -c $'\\e' || true
      done
      "$nudged" audit --database \(path) | grep -c $'\\e' || true
      """)
    #expect(shown.output == "1\n0\n0\n0\n", "\(shown)")
  }

  @Test("JSON lines have every column of the view with its exact type")
  func json() throws {
    try database.execute(
      """
      insert into nudge_outbox (record_id, event, title, created_at, recipient, surface)
      values (cast(x'6d2d31' as blob), char(34) || '\\' || char(10) || char(27) || char(8238) || '日', 'T', 1.5, 9e999, '')
      """)
    let text = try nudged(["audit", "--json", "--database", path]).text
    #expect(text.hasSuffix("}\n") && text.filter { $0 == "\n" }.count == 1)
    #expect(text.hasPrefix(#"{"nudge_id":1,"attempt_id":null,"at":null,"#))
    #expect(text.contains(#""event":"\"\\\u000a\u001b\u202e日","record_id":"m-1""#), "\(text)")
    #expect(text.contains(#""created_at":1.5,"created":null"#))
    #expect(text.contains(#""surface":"","#))
    let object = try #require(
      try JSONSerialization.jsonObject(with: Data(text.replacing("9e999", with: "0").utf8)) as? [String: Any])
    let names = try database.text(
      "select group_concat(name) from (select name from pragma_table_info('nudge_story'))")
    #expect(object.keys.sorted() == names?.split(separator: ",").map(String.init).sorted())
  }

  @Test("the database is only read: it is opened for nothing else, and no file appears beside it")
  func readOnly() throws {
    try nudge("m-1")
    let before = FileManager.default.contents(atPath: path)
    for command in ["audit", "audit --json", "metrics", "settle --before 0s --dry-run"] {
      let traced = try Child.shell(
        "strace -f -qq -e trace=openat \"$nudged\" \(command) --database '\(path)' 2>&1 >/dev/null | grep '/app.db\"'"
      )
      #expect(traced.output.contains("O_RDONLY"), "\(traced)")
      #expect(!traced.output.contains("O_RDWR"), "\(traced.output)")
    }
    #expect(FileManager.default.contents(atPath: path) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["app.db"])
  }

  @Test("what cannot be meant is refused, with what to write instead")
  func faults() {
    expectFailure(
      ["audit", "--database", path, "--since", "yesterday"], .usage, "--since", "write 24h (ago)")
    expectFailure(["audit", "--database", path, "--since", "1790000000"], .usage, "are these seconds?")
    expectFailure(["audit", "--database", path, "--since", "2099-01-01"], .usage, "is still to come", "UTC")
    expectFailure(["audit", "--database", path, "--since"], .usage, "needs a value (TIME)")
    expectFailure(
      ["audit", "--database", path, "m-81"], .usage, "unexpected argument m-81", "nudged help audit")
    expectFailure(["audit", "--database", path, "--recrod", "m"], .usage, "did you mean --record?")
    expectFailure(
      ["audit", "--database", path, "--before", "1h"], .usage, "--before is a flag of `nudged settle`")
  }
}
