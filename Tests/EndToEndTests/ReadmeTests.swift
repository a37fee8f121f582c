import Foundation
import Testing

/// The README is run as a reader would run it, and its tables are held against the program and the schema.
///
/// What a reader has at the start is given: an empty folder with the backend's database `app.db` and its table
/// `message`, Apple's key `AuthKey_ABC123DEFG.p8`, and `deploy/` of the source tree; `nudged` is installed. The blocks
/// run in their order: `sh` in one shell session (exports last), `sql` in the `sqlite3` shell with a busy timeout,
/// `python` in Python. Of `swift`, which is for the app, the compiler reads the syntax. A `text` block is the output of
/// the block before it. Only this differs from a real machine:
///
/// - `NUDGED_PRODUCTION_URL`, `NUDGED_SANDBOX_URL` and `NUDGED_CA_FILE` lead to scripted peers instead of Apple.
/// - `make` and `sudo make` are not run but asked whether they have the target (`make -n`): the tests would run
///   themselves.
/// - `nudged run` without `--drain` runs beside the blocks that follow; each of them waits until nothing is due, and
///   the worker is stopped, as the text says, before `nudged migrate --remove`.
@Suite("README")
struct ReadmeTests {
  private let readme: Readme

  init() throws {
    readme = try Readme()
  }

  @Test("every command and snippet runs in its order and does what the text says")
  func blocks() async throws {
    try await scenario(migrated: false) { s in
      let reader = try await Reader(s)
      var last = ""
      for block in readme.blocks where block.language != "console" {
        if block.language == "text" {
          #expect(comparable(last) == comparable(block.text))
        } else {
          if block.text.contains("migrate --remove") { try await checkEnd(s, reader) }
          last = try await reader.run(block)
        }
      }
      #expect(try s.backend.count("select count(*) from sqlite_master where name glob 'nudge_*'") == 0)
      #expect(try s.backend.count("select count(*) from message") == 4)
    }
  }

  /// What must have come of all the blocks before the tables are taken out again.
  private func checkEnd(_ s: Scenario, _ reader: Reader) async throws {
    try await reader.settle()
    #expect(try s.backend.states() == ["attempted": 9, "cancelled": 1, "superseded": 1])
    #expect(try s.backend.count("select count(*) from nudge_attempt where outcome = 'accepted'") == 9)
    #expect(try reader.production.requests().count == 9)
    #expect(try reader.sandbox.requests().isEmpty)
    #expect(
      try reader.production.requests().prefix(3).map { $0.alert["body"] as? String } == [
        "The report is ready.", "Two questions are open.", "It works.",
      ])
    #expect(try s.backend.count("select count(*) from nudge_device") == 1)
  }

  /// Output with what differs from run to run made equal: times, durations, and the width of columns.
  private func comparable(_ output: String) -> [String] {
    output.split(separator: "\n").map { line in
      String(line).replacing(/\d{4}-\d\d-\d\dT[0-9:.]+Z/, with: "TIME").replacing(#/ \d+ *$/#, with: " MS")
        .replacing(#/ after \d+ ms/#, with: "")
        .replacing(/by nudge \d+/, with: "by nudge N")
        .replacing(/-+/, with: "-").replacing(#/ +/#, with: " ").trimmingCharacters(in: .whitespaces)
    }
  }

  @Test("the settings are those of the program, and no other flag or variable is named")
  func settings() async throws {
    try await scenario(migrated: false) { s in
      let table = try await s.nudged(["help", "settings"]).output
      #expect(table.contains("| `--database FILE` |"))
      #expect(readme.text.contains("\n\n" + table + "\n"), "the table is not `nudged help settings`")

      var help = table
      for command in try await commands(s) { help += try await s.nudged(["help", command]).output }
      let products = URL(filePath: try Paths.nudged()).deletingLastPathComponent().path
      let bench = try s.run("bench", ["\(products)/nudged-bench", "--help"])
      #expect(try await bench.wait() == .code(0), "\(bench.errors)")
      help += bench.output
      let known = Set(help.matches(of: /--[a-z][a-z-]*|NUDGED_[A-Z_]+/).map { String($0.output) })
      // The benchmark is another program with flags of its own.
      let text = readme.text.replacing(/BENCH_FLAGS=[^`]*/, with: "")
      for word in text.matches(of: /--[a-z][a-z-]*|NUDGED_[A-Z_]+/).map({ String($0.output) }) {
        #expect(known.contains(word) || word == "--version", "no \(word)")
      }
    }
  }

  @Test("commands and exit codes are those of the program")
  func commandsAndCodes() async throws {
    try await scenario(migrated: false) { s in
      #expect(
        readme.table(under: "## Commands").map { $0.replacing("nudged ", with: "") }
          == (try await commands(s)))
      let help = try await s.nudged(["--help"]).output
      let codes = help.split(separator: "Exit codes:").last ?? ""
      #expect(
        readme.table(under: "### Exit codes") == codes.matches(of: /\b\d+\b/).map { String($0.output) })
    }
  }

  @Test("states, outcomes and columns are those of the schema, and so is every name in it")
  func schema() async throws {
    try await scenario { s in
      func columns(_ name: String) throws -> [String] {
        try s.backend.run("select name from pragma_table_info('\(name)')").compactMap { $0["name"].text }
      }
      let daily = try columns("nudge_daily")
      let states = daily.drop { $0 != "pending" }.prefix { $0 != "attempts" }
      let outcomes = daily.drop { $0 != "accepted" }.prefix { $0 != "mean_latency_ms" }
      #expect(readme.table(under: "## States") == Array(states))
      #expect(readme.table(under: "## Outcomes") == Array(outcomes))
      #expect(readme.table(under: "## Writing nudges") == (try columns("nudge_outbox")))
      #expect(
        readme.table(under: "## Registering tokens").sorted() == (try columns("nudge_registration")).sorted())

      let names = Set(try s.backend.run("select name from sqlite_master").compactMap { $0["name"].text })
        .union(try columns("nudge_audit"))
      for word in readme.text.matches(of: /\bnudge_[a-z_]+/).map({ String($0.output) }) {
        #expect(names.contains(word), "no \(word)")
      }
      for (kind, word) in [("table", "seven tables"), ("view", "six views"), ("trigger", "four triggers")] {
        let count = try s.backend.count(
          "select count(*) from sqlite_master where type = '\(kind)' and name glob 'nudge_*'")
        #expect(
          [4: "four", 6: "six", 7: "seven"][count].map { word.hasPrefix($0) } == true, "\(count) \(kind)s")
        #expect(readme.text.contains(word))
      }
    }
  }

  @Test("figures and alerts are those of the program and of deploy/metrics")
  func watching() async throws {
    try await scenario { s in
      let text = try await s.nudged(["metrics", "--database", s.database]).output
      let names = text.matches(of: #/# TYPE (\w+) /#).map { String($0.1) }
      let listed = readme.table(under: "## Watching it")
      #expect(listed.filter { $0 != "nudged_last_accepted_timestamp_seconds" } == names)
      let rules = try String(contentsOfFile: "\(Paths.package)/deploy/metrics/alerts.yml", encoding: .utf8)
      for alert in rules.matches(of: /- alert: (\w+)/) { #expect(readme.text.contains("| `\(alert.1)` |")) }
    }
  }

  @Test("every audit query has its line, every link leads somewhere, and the changelog is kept")
  func links() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: "\(Paths.package)/deploy/audit")
    let listed = readme.text.matches(of: /\n\| [^|]+ \| \[`([a-z-]+\.sql)`\]/).map { String($0.1) }
    #expect(listed.sorted() == files.sorted())
    for link in readme.text.matches(of: /\]\(([^)#]*)#?([^)]*)\)/) where !link.1.hasPrefix("https:") {
      if !link.1.isEmpty {
        #expect(FileManager.default.fileExists(atPath: "\(Paths.package)/\(link.1)"), "\(link.1)")
      } else {
        #expect(readme.anchors.contains(String(link.2)), "#\(link.2)")
      }
    }
    #expect(FileManager.default.fileExists(atPath: "\(Paths.package)/CHANGELOG.md"))
  }

  @Test("CONTRIBUTING cites files, symbols and make targets that are there")
  func contributing() throws {
    let text = try String(contentsOfFile: "\(Paths.package)/CONTRIBUTING.md", encoding: .utf8)
    for path in text.matches(of: /`((?:Sources|Tests|scripts|migrations|deploy|\.ci)\/[\w.\/-]*)`/).map(\.1) {
      #expect(FileManager.default.fileExists(atPath: "\(Paths.package)/\(path)"), "\(path)")
    }
    // `file`: `symbol`, `symbol`   or   `Type.symbol` in `file`
    var cited = text.matches(of: /`([\w.\/-]+)`: ((?:`\w+`(?:, )?)+)/).flatMap { match in
      match.2.matches(of: /\w+/).map { (file: match.1, symbol: $0.output) }
    }
    cited += text.matches(of: /`\w+\.(\w+)` in `([\w.\/-]+)`/).map { (file: $0.2, symbol: $0.1) }
    #expect(cited.count >= 30)
    for (file, symbol) in cited {
      let content = try String(contentsOfFile: "\(Paths.package)/\(file)", encoding: .utf8)
      let words = content.split { !($0.isLetter || $0.isNumber || $0 == "_") }
      #expect(words.contains(symbol), "no \(symbol) in \(file)")
    }
    let folder = try temporaryFolder("make")
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let help = try runToEnd(
      [try Paths.program("make"), "--no-print-directory", "-C", Paths.package, "help"],
      folder: folder)
    let targets = help.output.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
    #expect(targets.contains("test"))
    for target in targets { #expect(text.contains("| `make \(target)` |"), "\(target)") }
    for target in text.matches(of: /\| `make ([a-z]+)` \|/).map({ String($0.1) }) {
      #expect(targets.contains(target), "\(target)")
    }
  }

  /// The commands as `nudged --help` lists them.
  private func commands(_ s: Scenario) async throws -> [String] {
    try await s.nudged(["--help"]).output.matches(of: #/\n  ([a-z]+) /#).map { String($0.1) }
  }
}
