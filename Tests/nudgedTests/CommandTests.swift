import Foundation
import Outbox
import Relay
import SQLite
import Testing

@testable import nudged

@Suite("Migrate, Send, Register, Devices")
struct CommandTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
  }

  private func migrated() throws -> Database {
    try nudged(["migrate", "--database", path])
    return try Database(path: path)
  }

  @Test("migrate says what it did")
  func migrate() throws {
    #expect(try nudged(["migrate", "--database", path]).text == "\(path) now has schema version 1\n")
    #expect(try nudged(["migrate", "--database", path]).text == "\(path) is up to date: schema version 1\n")
    #expect(try nudged(["migrate", "--remove", "--database", path]).text.hasPrefix("removed"))
    #expect(try nudged(["migrate", "--remove", "--database", path]).text.contains("nothing to remove"))
  }

  @Test("every command has the exit code for a database that it cannot use")
  func databaseFaults() throws {
    let noise = try folder.write("noise.db", String(repeating: "noise ", count: 1000))
    let commands = [
      ["migrate"], ["send"], ["register"], ["devices"], ["audit"], ["metrics"], ["settle", "--before", "1h"],
    ]
    for command in commands {
      expectFailure(command, .configuration, "--database (or NUDGED_DATABASE)")
      expectFailure(command + ["--database", folder.file("no.db")], .noDatabase, "no.db")
      expectFailure(command + ["--database", noise], .malformedDatabase, "noise.db", "not a database")
      expectFailure(command + ["--database", folder.path], .inputOutput, "is a directory", "owner", "mode")
      guard command != ["migrate"] else { continue }
      expectFailure(command + ["--database", path], .malformedDatabase, "nudged migrate --database \(path)")
    }
    try migrated().execute("insert into nudge_schema values (99, 0)")
    for command in commands {
      expectFailure(
        command + ["--database", path], .malformedDatabase, "version 99 is newer", "upgrade nudged")
    }
  }

  @Test("what only reads leaves no file beside the database", arguments: ["audit", "metrics", "doctor"])
  func noTrace(_ command: String) throws {
    do { _ = try migrated().text("pragma journal_mode = wal") }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["app.db"])
    try nudged([command, "--database", path])
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["app.db"])
  }

  @Test("send has a flag for each of the outbox's columns and writes just what was given")
  func sendColumns() throws {
    let database = try migrated()
    for column in Backend.OutboxColumn.allCases {
      let value: String? =
        switch column.form {
        case .text: "some text"
        case .json: #"{"a":1.0}"#
        case .number: "7"
        case .flag: nil
        case .time: "1790000000000"
        }
      let id = try nudged(["send", "--database", path, "--" + column.flag] + (value.map { [$0] } ?? [])).text
      #expect(
        try database.text("select \(column.rawValue) from nudge_outbox where id = \(id)") == value ?? "1")
    }
    #expect(try database.integer("select count(*) from nudge_outbox where title is not null") == 1)
  }

  @Test("send prints the id, and takes a row that the worker will not send")
  func send() throws {
    let database = try migrated()
    #expect(
      try nudged(["send", "--database", path, "--kind", "nonsense", "--aps", "["]) == Outcome(text: "1\n"))
    #expect(try nudged(["send"], environment: ["NUDGED_DATABASE": path]) == Outcome(text: "2\n"))
    #expect(try database.text("select aps from nudge_outbox where id = 1") == "[")
  }

  @Test("a time may be given from now")
  func relativeTime() throws {
    let database = try migrated()
    let before = Clock.system.wall()
    try nudged(["send", "--database", path, "--expires-at", "+10m"])
    let time = try database.integer("select expires_at from nudge_outbox")
    #expect((before + 600_000...Clock.system.wall() + 600_000).contains(time ?? 0))
  }

  @Test("bad input inserts nothing")
  func badInput() throws {
    let database = try migrated()
    expectFailure(
      ["send", "--database", path, "--title", "a", "--priority", "high"], .usage, "no whole number")
    expectFailure(
      ["send", "--database", path, "--title", "a", "--not-before-at", "soon"], .usage, "is no time")
    expectFailure(["send", "--database", path, "--title", "a", "--nonsense"], .usage)
    expectFailure(
      ["register", "--database", path, "--device", "d", "--registered-at", "soon"], .usage, "is no time")
    #expect(try database.integer("select count(*) from nudge_outbox") == 0)
    #expect(try database.integer("select count(*) from nudge_device") == 0)
  }

  @Test("register passes on what the schema says")
  func register() throws {
    let database = try migrated()
    #expect(
      try nudged([
        "register", "--database", path, "--device", "d", "--recipient", "r", "--surface", "watch", "--topic",
        "com.example", "--kind", "activity_update", "--scope", "ride", "--token", "AB12", "--environment",
        "sandbox", "--registered-at", "1790000000000",
      ]) == Outcome())
    #expect(
      try database.text(
        """
        select device_id || recipient || surface || topic || kind || scope || token || environment || registered_at
        from nudge_registration
        """) == "drwatchcom.exampleactivity_updaterideab12sandbox1790000000000")
    expectFailure(["register", "--database", path], .malformedDatabase, "nudge_registration.device_id")
    expectFailure(
      ["register", "--database", path, "--device", "d", "--token", "xyz"], .malformedDatabase,
      "nudge_registration.token")
  }

  @Test("devices is an aligned table with shortened tokens")
  func devices() throws {
    let database = try migrated()
    #expect(
      try nudged(["devices", "--database", path]).text == "no devices are registered in \(path)\n")
    let token = "0123456789abcdef"
    try nudged([
      "register", "--database", path, "--device", "phone-1", "--topic", "com.example", "--token", token,
      "--registered-at", "1790000000000",
    ])
    try nudged(["register", "--database", path, "--device", "p\u{1b}[2J", "--recipient", "guest"])
    try database.execute(
      "update nudge_token set environment = 'sandbox', proven_at = 0, rejected_at = 1790000000999")
    let text = try nudged(["devices", "--database", path]).text
    #expect(
      text == """
        DEVICE      RECIPIENT  SURFACE  TOPIC        KIND      SCOPE  ENVIRONMENT  PROVEN                REGISTERED            SET ASIDE             TOKEN
        p\\u{1b}[2J  guest      phone    -            no token  -      -            -                     -                     -                     -
        phone-1     owner      phone    com.example  alert     -      sandbox      1970-01-01T00:00:00Z  2026-09-21T14:13:20Z  2026-09-21T14:13:20Z  01234567...

        """)
    #expect(!text.contains(token))
    #expect(try nudged(["devices", "--database", path, "--show-tokens"]).text.contains("  \(token)\n"))
  }
}

@Suite("Help")
struct HelpTests {
  @Test("the overview names every command and exit code")
  func overview() throws {
    for arguments in [["--help"], ["-h"], ["help"]] {
      let text = try nudged(arguments).text
      for command in CommandName.allCases { #expect(text.contains("\n  \(command.rawValue) ")) }
      for code in [0, 64, 65, 66, 69, 74, 75, 78] { #expect(text.contains("\(code) ")) }
    }
  }

  @Test(
    "the help of a command mentions every flag it takes, in lines of a terminal",
    arguments: CommandName.allCases)
  func commands(command: CommandName) throws {
    let text = try nudged(["help", command.rawValue]).text
    #expect(try nudged([command.rawValue, "--help"]).text == text)
    #expect(try nudged([command.rawValue, "--nonsense", "--help"]).text == text)
    for option in Option.of(command) {
      #expect(text.contains("\n  \(option.flag) "), "\(option.flag)")
      #expect(text.contains(option.help))
    }
    #expect(text.split(separator: "\n").filter { $0.hasPrefix("  --") }.count == Option.of(command).count)
    for line in text.split(separator: "\n") { #expect(line.count <= 110, "\(line)") }
  }

  @Test("the table of settings has every variable")
  func settings() throws {
    let text = try nudged(["help", "settings"]).text
    for option in Option.all.filter(\.isSetting) {
      #expect(text.contains("| `\(option.flag) "))
      #expect(text.contains("| `\(option.variable ?? "none")` |"))
    }
    #expect(text.split(separator: "\n").allSatisfy { $0.hasPrefix("| ") && $0.hasSuffix(" |") })
  }

  @Test("an unknown topic is an error")
  func unknownTopic() {
    expectFailure(["help", "rnu"], .usage, "did you mean run?", "settings")
    expectFailure(["help", "run", "send"], .usage, "one topic at a time")
  }

  @Test("a value that looks like a call for help is a value")
  func helpAsValue() throws {
    #expect(try Invocation.parse(["run", "-h"], environment: [:]) is Show)
    let command = try Invocation.parse(
      ["send", "--database", "a", "--body", "-h", "--title=--help"], environment: [:])
    #expect((command as? Send)?.row == [.body: .text("-h"), .title: .text("--help")])
  }

  @Test("help works in spite of wrong variables")
  func wrongVariables() throws {
    #expect(try nudged(["run", "--help"], environment: ["NUDGED_NONSENSE": "1"]).exitCode == .success)
  }

  @Test("the version is one line")
  func version() throws {
    #expect(try nudged(["--version"]).text == "nudged \(Program.version)\n")
  }
}
