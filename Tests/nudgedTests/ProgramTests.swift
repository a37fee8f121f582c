import Foundation
import Testing

@testable import nudged

/// What only the real program shows: streams, exit codes, the environment.
@Suite("Program")
struct ProgramTests {
  private let folder: TemporaryFolder
  private let variables: [String: String]

  init() throws {
    folder = try TemporaryFolder()
    let path = try folder.database()
    try nudged(["migrate", "--database", path])
    variables = ["NUDGED_DATABASE": path]
  }

  @Test("results go to standard output, faults to standard error, with their exit code")
  func streams() throws {
    let good = try Child.shell("\"$nudged\" send --title a", environment: variables)
    #expect((good.status, good.output, good.errors) == (0, "1\n", ""))
    let bad = try Child.shell("\"$nudged\" send --titel a", environment: variables)
    #expect((bad.status, bad.output) == (64, ""))
    #expect(bad.errors.hasPrefix("nudged: unknown flag --titel; did you mean --title?\n"))
    let help = try Child.shell("\"$nudged\" --help")
    #expect((help.status, help.errors) == (0, ""))
    #expect(help.output == Help.overview)
    let missing = try Child.shell("\"$nudged\" run", environment: variables)
    #expect((missing.status, missing.output) == (78, ""))
    #expect(!missing.errors.contains("NUDGED_DATABASE"), "the variable is read from the environment")
  }

  @Test("a variable's value is everything after the first equals sign")
  func variableValues() throws {
    let child = try Child.shell("\"$nudged\" devices", environment: ["NUDGED_DATABASE": "\u{301}=b"])
    #expect(child.status == 66)
    #expect(child.errors.contains("there is no database \u{301}=b:"))
  }

  @Test("what was given is repeated without its control characters")
  func controlCharacters() throws {
    let child = try Child.shell("\"$nudged\" run $'--x\\e[31m\\r'")
    #expect(child.errors.hasPrefix("nudged: unknown flag --x\\u{1b}[31m\\u{d}\n"), "\(child.errors)")
  }

  @Test("a reader that has gone is no fault, and the row is written")
  func closedPipe() throws {
    let child = try Child.shell(
      """
      exec 3> >(exec true); wait $!
      "$nudged" send --title a >&3
      """, environment: variables)
    #expect((child.status, child.errors) == (0, ""))
    #expect(try nudged(["send"], environment: variables).text == "2\n")
  }

  @Test("a full disk behind standard output is said, and that the work was done")
  func fullOutput() throws {
    let child = try Child.shell("\"$nudged\" send --title a > /dev/full", environment: variables)
    #expect(child.status == 74)
    #expect(child.errors.contains("the command was carried out, but standard output"))
  }

  @Test("closed standard streams harm neither the program nor the database")
  func closedStreams() throws {
    let child = try Child.shell(
      """
      "$nudged" send --title a <&- >&- 2>&-; echo $?
      "$nudged" send --nonsense 2>&-; echo $?
      """, environment: variables)
    #expect(child.output == "0\n64\n")
    #expect(try nudged(["send"], environment: variables).text == "2\n")
  }

  @Test("under the journal a fault has the priority of an error")
  func journal() throws {
    // Standard error is a file here; its device and inode are what systemd would pass for its socket.
    let child = try Child.shell(
      """
      touch "$folder/log"
      JOURNAL_STREAM=$(stat -c %d:%i "$folder/log") "$nudged" run --nonsense 2> "$folder/log"
      JOURNAL_STREAM=1:2 "$nudged" run --nonsense 2>> "$folder/log"
      cat "$folder/log"
      """, environment: ["folder": folder.path])
    let lines = child.output.split(separator: "\n")
    #expect(lines.count == 4)
    #expect(lines.prefix(2).allSatisfy { $0.hasPrefix("<3>") })
    #expect(lines.suffix(2).allSatisfy { !$0.hasPrefix("<") })
  }

  @Test("a file that its user may not write is named with owner and mode", .enabled(if: geteuid() == 0))
  func permissions() throws {
    let child = try Child.shell(
      """
      chmod 755 "$folder"; chmod 644 "$NUDGED_DATABASE"; cp "$nudged" "$folder/nudged"
      cd /; setpriv --reuid 65534 --clear-groups "$folder/nudged" send --title a
      """, environment: variables.merging(["folder": folder.path]) { $1 })
    #expect(child.status == 74)
    #expect(child.errors.contains("app.db, owner root, mode 0644: Permission denied for user "))
    #expect(try nudged(["send"], environment: variables).text == "1\n", "nothing was written")
  }
}

@Suite("check-imports")
struct CheckImportsTests {
  @Test("names each broken arrow by file and line, and nothing else")
  func badTree() throws {
    let folder = try TemporaryFolder()
    let manifest = """
      // swift-tools-version: 6.3
      import PackageDescription
      let package = Package(
        name: "tree",
        targets: [
          .systemLibrary(name: "CSQLite"),
          .target(name: "SQLite", dependencies: ["CSQLite"]),
          .target(name: "Outbox", dependencies: ["SQLite"]),
          .target(name: "Relay", dependencies: ["Outbox", "CSQLite"]),
          .testTarget(name: "RelayTests", dependencies: ["Relay"]),
        ])
      """
    let files = [
      "Package.swift": manifest,
      "Sources/SQLite/Good.swift": "import CSQLite\npackage import Glibc\n",
      "Sources/Outbox/Good.swift": """
      // import Foundation
      /* import Relay
      import CSQLite */
      import struct SQLite.Database
      let text = \"\"\"
        import Foundation
        \"\"\"
      let word = "import Foundation"
      """,
      "Sources/Outbox/Bad.swift":
        "import SQLite\nimport Foundation; import Relay\n@_spi(x) public import CSQLite\n",
      "Sources/Relay/Bad.swift":
        "@preconcurrency import FoundationEssentials\nimport class SQLite.Statement\n",
      "Tests/RelayTests/Bad.swift":
        "import Testing\nimport Foundation\n@testable import Relay\n  @testable import Outbox\n",
      "Tests/Peers/Peer.swift": "import Anything\n",
    ]
    for (name, content) in files {
      let url = URL(filePath: folder.file(name))
      try FileManager.default.createDirectory(
        at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data(content.utf8).write(to: url)
    }
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let child = try Child.shell(
      "\"$script\" \"$folder\"",
      environment: [
        "script": root.appending(path: "scripts/check-imports").path, "folder": folder.path,
        "HOME": folder.path, "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "",
      ])
    #expect(child.status == 1, "\(child.errors)")
    #expect(
      child.output.split(separator: "\n").map {
        $0.prefix { $0 != " " } + $0.drop { $0 != " " }.prefix { $0 != ":" }
      }
        == [
          "Package.swift: Relay -> CSQLite", "Sources/Outbox/Bad.swift:2: Outbox -> Foundation",
          "Sources/Outbox/Bad.swift:2: Outbox -> Relay", "Sources/Outbox/Bad.swift:3: Outbox -> CSQLite",
          "Sources/Relay/Bad.swift:1: Relay -> FoundationEssentials",
          "Sources/Relay/Bad.swift:2: Relay -> SQLite", "Tests/RelayTests/Bad.swift:4: RelayTests -> Outbox",
        ])
  }
}
