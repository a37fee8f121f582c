import Foundation
import Outbox
import Relay
import SQLite
import Testing

@testable import nudged

@Suite("Doctor")
struct DoctorTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    _ = try Database(path: path).text("pragma journal_mode = wal")
  }

  private struct Line: Decodable {
    let check: String
    let status: String
    let detail: String
    let fix: String?
  }

  /// The lines as a program reads them.
  private func doctor(
    _ more: [String] = [], database: String? = nil, environment: [String: String] = [:]
  ) throws -> (lines: [Line], exitCode: ExitCode) {
    let outcome = try nudged(
      ["doctor", "--json", "--database", database ?? path] + more, environment: environment)
    let lines = try outcome.text.split(separator: "\n").map {
      try JSONDecoder().decode(Line.self, from: Data($0.utf8))
    }
    return (lines, outcome.exitCode)
  }

  private func migrate() throws { try nudged(["migrate", "--database", path]) }

  /// An unusable key has no host that answers, so nothing beyond this machine is asked.
  private let nowhere = ["--production-url", "https://127.0.0.1:1", "--sandbox-url", "https://127.0.0.1:1"]

  @Test("a healthy database without settings: no fault, and it says what was not looked at")
  func healthy() throws {
    try migrate()
    let before = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    let (lines, exitCode) = try doctor()
    #expect(exitCode == .success, "\(lines)")
    #expect(
      lines.map(\.check) == [
        "database", "schema", "journal", "permissions", "file system", "disk", "settings", "clock", "worker",
        "queue", "devices",
      ])
    #expect(lines.first { $0.check == "settings" }?.fix?.contains("--key-file") == true)
    #expect(lines.allSatisfy { ($0.fix == nil) == ($0.status == "ok") })
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == before)
  }

  @Test("a database that cannot be used: the exit code, the line and what puts it right")
  func databaseFaults() throws {
    expectFailure(["doctor"], .configuration, "--database (or NUDGED_DATABASE)")
    func expect(
      _ database: String, _ code: ExitCode, _ check: String, _ detail: String, _ fix: String,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let (lines, exitCode) = try doctor(database: database)
      #expect(exitCode == code, "\(lines)", sourceLocation: sourceLocation)
      let line = try #require(lines.first { $0.status == "fault" }, sourceLocation: sourceLocation)
      #expect(line.check == check, sourceLocation: sourceLocation)
      #expect(line.detail.contains(detail), "\(line)", sourceLocation: sourceLocation)
      #expect(line.fix?.contains(fix) == true, "\(line)", sourceLocation: sourceLocation)
    }
    try expect(folder.file("no.db"), .noDatabase, "database", "there is no database", "correct --database")
    let noise = try folder.write("noise.db", String(repeating: "noise ", count: 1000))
    try expect(noise, .malformedDatabase, "database", "not a database", "restore a copy")
    try expect(folder.path, .inputOutput, "database", "is a directory", "correct --database")
    try expect(path, .malformedDatabase, "schema", "no nudge tables", "nudged migrate --database \(path)")
    try migrate()
    let database = try Database(path: path)
    try database.execute("drop index nudge_attempt_device")
    try expect(path, .malformedDatabase, "schema", "nudge_attempt_device", "migrations/")
    try database.execute("insert into nudge_schema values (99, 0)")
    try expect(path, .malformedDatabase, "schema", "version 99 is newer", "install the newer nudged")
  }

  @Test("a rollback journal is a warning with the statement that changes it")
  func journal() throws {
    try migrate()
    _ = try Database(path: path).text("pragma journal_mode = delete")
    let (lines, exitCode) = try doctor()
    #expect(exitCode == .success)
    let line = try #require(lines.first { $0.check == "journal" })
    #expect(line.status == "warning")
    #expect(line.fix == "sqlite3 \(path) 'pragma journal_mode = wal'")
  }

  @Test("settings: all that is wrong or missing at once, and what is there is checked all the same")
  func settings() throws {
    try migrate()
    let key = try makeKey("AuthKey_ABC123DEFG.p8")
    let (lines, exitCode) = try doctor(
      nowhere + ["--production-key-file", key, "--sandbox-key-file", folder.file("x.pem")],
      environment: ["NUDGED_KEY_ID": "short"])
    #expect(exitCode == .configuration)
    let faults = lines.filter { $0.check == "settings" && $0.status == "fault" }.map(\.detail)
    #expect(faults.count == 3, "\(faults)")
    for word in ["NUDGED_KEY_ID: short is no key id", "--team-id", "--sandbox-key-id"] {
      #expect(faults.contains { $0.contains(word) }, "\(faults)")
    }
    #expect(lines.first { $0.check == "production key" }?.status == "ok")
    #expect(lines.contains { $0.check == "production tcp" && $0.status == "fault" })

    let swapped = try doctor(nowhere + ["--key-file", key, "--team-id", "ABC123DEFG"])
    #expect(
      swapped.lines.contains {
        $0.check == "settings" && $0.detail.contains("ABC123DEFG is given as team id")
      })
    let badTeam = try doctor(nowhere + ["--key-file", key, "--team-id", "abc"])
    #expect(badTeam.lines.contains { $0.detail.contains("abc is no team id") })
    #expect(badTeam.exitCode == .usage)
    let badURL = try doctor(["--key-file", key, "--team-id", "TEAM123456", "--sandbox-url", "http://h"])
    #expect(badURL.lines.contains { $0.detail.contains("--sandbox-url") && $0.status == "fault" })
    let badRoots = try doctor(
      nowhere + ["--key-file", key, "--team-id", "TEAM123456", "--ca-file", "/no/ca.pem"])
    #expect(badRoots.lines.contains { $0.check == "trust roots" && $0.detail.contains("/no/ca.pem") })
  }

  private func makeKey(_ name: String, _ options: String = "-algorithm EC -pkeyopt ec_paramgen_curve:P-256")
    throws
    -> String
  {
    let made = try Child.shell("openssl genpkey \(options) -out '\(folder.file(name))'")
    try #require(made.status == 0, "\(made.errors)")
    return folder.file(name)
  }

  @Test(
    "key files: unreadable, of another kind or curve, open to others, under another name; never their content"
  )
  func keys() throws {
    try migrate()
    func line(_ file: String, _ more: [String] = []) throws -> Line {
      let (lines, _) = try doctor(nowhere + ["--key-file", file, "--team-id", "TEAM123456"] + more)
      let content = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
      for secret in content.split(separator: "\n") where !secret.hasPrefix("-") {
        #expect(!lines.contains { $0.detail.contains(secret) || $0.fix?.contains(secret) == true })
      }
      return try #require(lines.first { $0.check == "key" })
    }
    let good = try makeKey("AuthKey_ABC123DEFG.p8")
    #expect(try line(good).status == "ok")
    #expect(try line(good).detail.contains("key id ABC123DEFG, team id TEAM123456"))
    let other = try line(good, ["--key-id", "ZYX987WVUT"])
    #expect(
      other.status == "warning" && other.detail.contains("ABC123DEFG") && other.detail.contains("ZYX987WVUT"))
    #expect(chmod(good, 0o644) == 0)
    let open = try line(good)
    #expect(open.status == "warning" && open.detail.contains("0644") && open.fix == "chmod 600 \(good)")
    let rsa = try line(makeKey("AuthKey_RSA0000000.p8", "-algorithm RSA -pkeyopt rsa_keygen_bits:2048"))
    #expect(rsa.status == "fault" && rsa.detail.contains("RSA"))
    let curve = try line(makeKey("AuthKey_P384000000.p8", "-algorithm EC -pkeyopt ec_paramgen_curve:P-384"))
    #expect(curve.status == "fault" && curve.detail.contains("curve is secp384r1"))
    let absent = try line(folder.file("AuthKey_ABSENT0000.p8"))
    #expect(absent.status == "fault" && absent.detail.contains("No such file"))
  }

  @Test("no worker: a warning while nothing is due, a fault with the age of the oldest row otherwise")
  func worker() throws {
    try migrate()
    #expect(try doctor().lines.first { $0.check == "worker" }?.status == "warning")
    let database = try Database(path: path)
    try database.execute(
      "insert into nudge_outbox (title, created_at) values ('Secret text', \(Clock.system.wall() - 200_000))")
    let (lines, exitCode) = try doctor()
    #expect(exitCode == .unavailable)
    let line = try #require(lines.first { $0.check == "worker" })
    #expect(line.status == "fault" && line.detail == "none runs, and 1 nudge due")
    #expect(line.fix?.contains("systemctl status nudged") == true)
    #expect(lines.first { $0.check == "queue" }?.detail == "1 nudge due, the oldest for 3m")
    #expect(!lines.contains { $0.detail.contains("Secret") })
  }

  @Test(
    "as a user who may not use the files: names path, owner, mode and user, and nothing is made",
    .enabled(if: geteuid() == 0))
  func otherUser() throws {
    try migrate()
    let script = """
      set -e
      cp "$nudged" '\(folder.path)/nudged'
      chmod 755 '\(folder.path)' '\(folder.path)/nudged'
      cd /; set +e
      setpriv --reuid 65534 --clear-groups '\(folder.path)/nudged' doctor --database '\(path)'
      echo "exit $?"
      chmod 600 '\(path)'
      setpriv --reuid 65534 --clear-groups '\(folder.path)/nudged' doctor --database '\(path)'
      echo "exit $?"
      ls '\(folder.path)'
      """
    let child = try Child.shell(script)
    #expect(child.output.contains("✓ schema"), "\(child.output)\(child.errors)")
    #expect(
      child.output.contains(
        "✗ permissions  \(path), owner root, mode 0644: Permission denied for user nobody; "
          + "\(folder.path), owner root, mode 0755: Permission denied for user nobody"), "\(child.output)")
    #expect(child.output.components(separatedBy: "exit 74\n").count == 3, "\(child.output)")
    #expect(child.output.contains("✗ database"))
    #expect(child.output.contains("sudo -u root nudged doctor"))
    #expect(!child.output.contains("app.db-shm\n"))
  }

  @Test("a sign for each line, what puts it right below it, colour only when asked for, and a count")
  func text() {
    let report = Report(checks: [
      .ok("one", "good"), .warning("second", "odd\u{1b}[31m", fix: "do this"),
      .fault("three", .unavailable, "bad", fix: "do that"),
      .fault("four", .configuration, "worse", fix: "and that"),
    ])
    #expect(
      report.text(inColour: false) == """
        ✓ one     good
        ! second  odd\\u{1b}[31m
                  → do this
        ✗ three   bad
                  → do that
        ✗ four    worse
                  → and that

        2 faults, 1 warning

        """)
    #expect(
      report.text(inColour: true).hasPrefix("\u{1b}[32m✓\u{1b}[0m one     good\n\u{1b}[33m!\u{1b}[0m second"))
    #expect(report.exitCode == .unavailable)
    #expect(Report(checks: [.warning("a", "b", fix: "c")]).exitCode == .success)
  }

  @Test("little room is a warning, none a fault; a network file system a warning")
  func volume() {
    func status(_ type: Int64, _ free: Int64) -> [String] {
      DatabaseChecks.volume(Volume(type: type, freeBytes: free), path: "/srv/app.db").map(\.status.word)
    }
    #expect(status(0xEF53, 1 << 40) == ["ok", "ok"])
    #expect(status(0xEF53, 50 << 20) == ["ok", "warning"])
    #expect(status(0xEF53, 4096) == ["ok", "fault"])
    #expect(status(0x6969, 1 << 40) == ["warning", "ok"])
  }
}
