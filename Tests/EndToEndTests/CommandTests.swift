import Foundation
import Testing

@Suite("Commands")
struct CommandTests {
  @Test("wrong usage ends with 64 and says what is wrong")
  func usage() async throws {
    try await scenario { s in
      let cases: [([String], String)] = [
        ([], "command"), (["fly"], "fly"), (["run", "--datbase", s.database], "--datbase"),
        (["run", "--database"], "--database"), (["migrate", "--database", s.database, "extra"], "extra"),
        (["send", "--database", s.database, "--titel", "x"], "--titel"),
      ]
      for (arguments, word) in cases {
        let result = try await s.nudged(arguments)
        #expect(result.exit == .code(64), "\(arguments): \(result.exit)")
        #expect(result.errors.contains(word), "\(arguments): \(result.errors)")
        #expect(!result.errors.isEmpty)
      }
      let help = try await s.nudged(["--help"])
      #expect(help.exit == .code(0))
      for command in [
        "migrate", "run", "send", "register", "devices", "audit", "metrics", "settle", "doctor",
      ] {
        #expect((help.output + help.errors).contains(command))
      }
    }
  }

  @Test(
    "no database, a foreign file, a newer schema and a missing one end with their codes and touch nothing")
  func databases() async throws {
    try await scenario(migrated: false) { s in
      let peer = try await s.peer()
      func run(_ path: String) async throws -> (exit: Exit, output: String, errors: String) {
        try await s.nudged(
          ["run", "--drain"] + s.settings(production: peer).map { $0 == s.database ? path : $0 })
      }
      let absent = try await run(s.path("absent.db"))
      #expect(absent.exit == .code(66))
      #expect(absent.errors.contains("absent.db"))
      for command in ["migrate", "send", "register", "devices", "audit", "metrics", "settle"] {
        let more =
          [
            "send": ["--title", "T"], "register": ["--device", "d", "--token", "ab"],
            "settle": ["--before", "1h"],
          ][command] ?? []
        let result = try await s.nudged([command, "--database", s.path("absent.db")] + more)
        #expect(result.exit == .code(66), "\(command): \(result.exit) \(result.errors)")
      }
      #expect(!FileManager.default.fileExists(atPath: s.path("absent.db")))

      let noise = s.path("noise.db")
      let bytes = Data((0..<8192).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ 7) })
      try bytes.write(to: URL(filePath: noise))
      #expect(try await run(noise).exit == .code(65))
      #expect(FileManager.default.contents(atPath: noise) == bytes)

      let bare = try await run(s.database)
      #expect(bare.exit != .code(0))
      #expect(bare.errors.contains("migrate"), "\(bare.errors)")
      #expect(try s.backend.count("select count(*) from sqlite_master where name like 'nudge%'") == 0)

      #expect(try await s.nudged(["migrate", "--database", s.database]).exit == .code(0))
      try s.backend.run("insert into nudge_schema (version) values (99)")
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      for arguments in [
        ["run", "--drain"] + s.settings(production: peer), ["migrate", "--database", s.database],
      ] {
        let newer = try await s.nudged(arguments)
        #expect(newer.exit == .code(65), "\(arguments[0]): \(newer.exit) \(newer.errors)")
        #expect(newer.errors.contains("99"), "\(newer.errors)")
      }
      #expect(try s.backend.state(id) == "pending")
      #expect(try peer.events("connected").isEmpty)
    }
  }

  @Test("--drain with nothing to do exits 0, and 69 when a host cannot be reached")
  func drain() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try await s.drain(production: peer)
      #expect(try peer.events("connected").isEmpty)
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      let later = try s.backend.nudge(["title": "later", "not_before_at": .integer(now(plus: 3_600_000))])
      peer.end()
      let errors = try await s.drain(production: peer, exit: 69)
      #expect(!errors.isEmpty)
      #expect(try s.backend.state(id) == "pending")
      #expect(try s.backend.attempts(id).isEmpty)
      let again = try await s.peer()
      try await s.drain(production: again)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try s.backend.state(later) == "pending")
    }
  }

  @Test("migrate is a guest: it can be repeated and taken back, and leaves everything else as it was")
  func migrate() async throws {
    try await scenario(migrated: false, journal: "delete") { s in
      try s.backend.script(
        """
        pragma user_version = 7;
        pragma application_id = 99;
        create index message_text on message (text);
        create trigger message_kept before delete on message begin select raise(abort, 'kept'); end;
        insert into message (text) values ('first');
        """)
      let schema =
        "select type, name, tbl_name, sql from sqlite_master where name not like 'sqlite_%' order by name"
      let before = try s.backend.run(schema)
      for _ in 1...2 {
        let result = try await s.nudged(["migrate", "--database", s.database])
        #expect(result.exit == .code(0), "\(result.errors)")
      }
      let foreign = try s.backend.run(schema).filter { !($0["name"].text ?? "").hasPrefix("nudge_") }
      #expect(foreign == before)
      #expect(try s.backend.count("select count(*) from nudge_schema") == 1)
      try s.backend.run("alter table message add column author text")
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge()
      let removed = try await s.nudged(["migrate", "--remove", "--database", s.database])
      #expect(removed.exit == .code(0), "\(removed.errors)")
      #expect(try s.backend.run(schema).map { $0["name"] } == before.map { $0["name"] })
      #expect(try s.backend.value("pragma user_version") == 7)
      #expect(try s.backend.value("pragma application_id") == 99)
      #expect(try s.backend.value("pragma journal_mode") == "delete")
      #expect(try s.backend.value("select text from message") == "first")
      #expect(try s.backend.value("pragma integrity_check") == "ok")
      #expect(try await s.nudged(["migrate", "--remove", "--database", s.database]).exit == .code(0))
      #expect(try await s.nudged(["migrate", "--database", s.database]).exit == .code(0))
      try s.backend.nudge()
    }
  }

  @Test("the SQL files fed to the sqlite3 shell by hand give the same schema, and nudged runs on it")
  func byHand() async throws {
    try await scenario(migrated: false) { s in
      let peer = try await s.peer()
      let folder = "\(Paths.package)/migrations"
      let files = try FileManager.default.contentsOfDirectory(atPath: folder).filter {
        $0.contains(/^\d{4}_.*\.sql$/)
      }
      let shell = try Paths.program("sqlite3")
      for file in files.sorted() {
        let result = try runToEnd(
          ["/bin/sh", "-c", "'\(shell)' -bail '\(s.database)' < '\(folder)/\(file)'"], folder: s.folder)
        #expect(result.exit == .code(0), "\(result.errors)")
      }
      let schema = "select type, name, sql from sqlite_master where name like 'nudge_%' order by name"
      let byHand = try s.backend.run(schema)
      #expect(!byHand.isEmpty)
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      let other = s.path("other.db")
      let backend = try Backend(database: other, folder: s.folder)
      defer { backend.end() }
      try backend.run("create table message (id integer primary key)")
      #expect(try await s.nudged(["migrate", "--database", other]).exit == .code(0))
      #expect(try backend.run(schema) == byHand)
    }
  }

  @Test("register, devices and send do from a shell what a backend does in SQL")
  func shells() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let registered = try await s.nudged([
        "register", "--database", s.database, "--device", "phone-1", "--token", "<\(token(1).uppercased())>",
        "--topic", Backend.topic, "--recipient", "anna", "--surface", "tablet", "--environment", "production",
      ])
      #expect(registered.exit == .code(0), "\(registered.errors)")
      let scoped = try await s.nudged([
        "register", "--database", s.database, "--device", "phone-1", "--token", token(2), "--kind",
        "activity_start",
        "--scope", "Delivery",
      ])
      #expect(scoped.exit == .code(0), "\(scoped.errors)")
      let device = try #require(try s.backend.run("select * from nudge_device").first)
      #expect(device["recipient"] == "anna")
      #expect(device["surface"] == "tablet")
      #expect(device["topic"] == .text(Backend.topic))
      let tokens = try s.backend.tokens("phone-1")
      #expect(tokens.map { $0["token"].text } == [token(1), token(2)])
      #expect(tokens.map { $0["environment"] } == ["production", nil])
      #expect(tokens.map { $0["scope"] } == ["", "Delivery"])

      let devices = try await s.nudged(["devices", "--database", s.database])
      #expect(devices.exit == .code(0))
      for word in ["phone-1", "anna", "tablet", Backend.topic, "production", "activity_start", "Delivery"] {
        #expect(devices.output.contains(word), "\(word) in \(devices.output)")
      }
      #expect(!devices.output.contains(token(1)))

      let sent = try await s.nudged([
        "send", "--database", s.database, "--title", "Hello", "--subtitle", "from a shell", "--body",
        "It's done; \"ok\"",
        "--recipient", "anna", "--surface", "*", "--event", "turn_finished", "--record-id", "m-1",
        "--conversation-id", "c-1", "--data", #"{"n":1.0}"#, "--aps", #"{"sound":"default"}"#,
        "--collapse-id", "k",
        "--priority", "5", "--dedupe-key", "d-1",
      ])
      #expect(sent.exit == .code(0), "\(sent.errors)")
      let row = try s.backend.row(1)
      #expect(row["event"] == "turn_finished")
      #expect(row["record_id"] == "m-1")
      #expect(row["dedupe_key"] == "d-1")
      try await s.drain(production: peer)
      let request = try #require(try peer.requests().first)
      #expect(request.token == token(1))
      #expect(
        request.alert as NSDictionary == [
          "title": "Hello", "subtitle": "from a shell", "body": "It's done; \"ok\"",
        ])
      #expect(request.body?.contains(#""n":1.0"#) == true)
      #expect(request.header("apns-collapse-id") == "k")
      #expect(request.header("apns-priority") == "5")
    }
  }

  @Test("a registration that the schema refuses is an error that names the column")
  func refusedRegistration() async throws {
    try await scenario { s in
      let cases: [([String], String)] = [
        (["--device", "d", "--token", "xyz"], "token"), (["--device", "d", "--token", "abc"], "token"),
        (["--device", "", "--token", "abcd"], "device"),
        (["--device", "d", "--token", "abcd", "--kind", "fax"], "kind"),
        (["--device", "d", "--token", "abcd", "--environment", "moon"], "environment"),
        (["--device", "d", "--token", "abcd", "--scope", "x"], "scope"), (["--token", "abcd"], "device"),
      ]
      for (arguments, word) in cases {
        let result = try await s.nudged(["register", "--database", s.database] + arguments)
        #expect(result.exit != .code(0), "\(arguments)")
        #expect(result.errors.contains(word), "\(arguments): \(result.errors)")
      }
      let nearly = token(1) + "g"
      let result = try await s.nudged([
        "register", "--database", s.database, "--device", "d", "--token", nearly,
      ])
      #expect(result.exit != .code(0))
      #expect(!result.errors.contains(token(1)))
      #expect(try s.backend.count("select count(*) from nudge_device") == 0)
    }
  }

  @Test("a column, an index and a trigger that somebody added to the tables do no harm; a missing table does")
  func drift() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.script(
        """
        alter table nudge_outbox add column note text default 'x';
        alter table nudge_token add column note text;
        create index mine on nudge_outbox (note);
        create table seen (nudge_id);
        create trigger mine_too after insert on nudge_attempt begin insert into seen values (new.nudge_id); end;
        """)
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge(["title": "T", "note": "mine"])
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(id) == ["accepted"])
      #expect(try s.backend.count("select count(*) from seen") == 1)
      try s.backend.run("drop trigger mine_too")
      try s.backend.run("alter table nudge_attempt rename to elsewhere")
      let next = try s.backend.nudge()
      let result = try await s.nudged(["run", "--drain"] + s.settings(production: peer))
      #expect(result.exit == .code(65), "\(result.exit) \(result.errors)")
      #expect(result.errors.split(separator: "\n").count <= 3, "\(result.errors)")
      #expect(try s.backend.state(next) == "pending")
      #expect(try peer.requests().count == 1)
    }
  }
}
