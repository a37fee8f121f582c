import Foundation
import Testing

/// The README's text, its fenced blocks and its tables.
struct Readme {
  struct Block {
    let language: String
    let text: String
  }

  let text: String
  let blocks: [Block]

  init() throws {
    text = try String(contentsOfFile: "\(Paths.package)/README.md", encoding: .utf8)
    var blocks: [Block] = []
    var open: (language: String, lines: [Substring])?
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if let block = open {
        if line == "```" {
          blocks.append(Block(language: block.language, text: block.lines.joined(separator: "\n") + "\n"))
          open = nil
        } else {
          open?.lines.append(line)
        }
      } else if line.hasPrefix("```") {
        let language = String(line.dropFirst(3))
        guard ["sh", "sql", "python", "swift", "text", "console"].contains(language) else {
          throw Failure("a block of the unknown language \"\(language)\" would not be tested")
        }
        // A transcript of the demo: DemoTests compares it.
        open = (language, [])
      } else if line.contains("```") {
        throw Failure("a block that does not begin at its line would not be tested: \(line)")
      }
    }
    guard open == nil else { throw Failure("a block is not closed") }
    self.blocks = blocks
  }

  /// The first column of the first table below a heading, without backquotes.
  func table(under heading: String) -> [String] {
    guard let start = text.range(of: "\n\(heading)\n") else { return ["no heading \(heading)"] }
    let lines = text[start.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
      .drop { !$0.hasPrefix("| ") }.prefix { $0.hasPrefix("| ") }
    return lines.dropFirst(2).map {
      $0.dropFirst(2).prefix { $0 != "|" }.replacing("`", with: "").trimmingCharacters(in: .whitespaces)
    }
  }

  /// The headings as links name them.
  var anchors: Set<String> {
    Set(
      text.matches(of: /\n#+ ([^\n]+)/).map {
        $0.1.lowercased().replacing(" ", with: "-").filter { $0.isLetter || $0.isNumber || $0 == "-" }
      })
  }
}

/// Who reads the README and types it in.
final class Reader {
  let production: TestPeer
  let sandbox: TestPeer
  private let scenario: Scenario
  private let variables: [String: String]
  /// Where the compiler is, which the tests were built with.
  private let compilers = ProcessInfo.processInfo.environment["PATH"] ?? ""
  private var worker: Child?
  private var count = 0

  init(_ scenario: Scenario) async throws {
    self.scenario = scenario
    production = try await scenario.peer()
    sandbox = try await scenario.peer()
    let files = FileManager.default
    let key = "AuthKey_\(Credentials.keyID).p8"
    try files.copyItem(atPath: scenario.credentials.providerKey, toPath: scenario.path(key))
    try files.createDirectory(atPath: scenario.path("bin"), withIntermediateDirectories: true)
    try files.createSymbolicLink(atPath: scenario.path("bin/nudged"), withDestinationPath: Paths.nudged())
    try files.createSymbolicLink(
      atPath: scenario.path("deploy"), withDestinationPath: "\(Paths.package)/deploy")
    try scenario.backend.run("drop table message")
    try scenario.backend.run(
      "create table message (id text primary key, conversation_id text, text text not null)")
    variables = [
      "PATH": "\(scenario.path("bin")):/usr/local/bin:/usr/bin:/bin", "HOME": scenario.folder,
      "NUDGED_PRODUCTION_URL": production.url, "NUDGED_SANDBOX_URL": sandbox.url,
      "NUDGED_CA_FILE": scenario.credentials.authority,
    ]
  }

  /// Runs a block and returns what it printed; throws unless it ended well.
  func run(_ block: Readme.Block) async throws -> String {
    if worker != nil { try await settle() }
    count += 1
    let name = "block-\(count)"
    try block.text.write(toFile: scenario.path(name), atomically: true, encoding: .utf8)
    switch block.language {
    case "sql":
      return try await shell(name, "sqlite3 -bail -header -column -cmd '.timeout 5000' app.db < \(name)")
    case "python":
      return try await shell(name, "\(Paths.python) \(name)")
    case "swift":
      return try await shell(name, "PATH='\(compilers)' swiftc -parse - < \(name)")
    default:
      if block.text.contains(#/(?m)^(sudo )?make /#) {
        try await checkTargets(block, name)
        return ""
      }
      if block.text.contains(#/(?m)^nudged run(?!.*--drain)/#) {
        try await start(block, name)
        return ""
      }
      if block.text.contains("migrate --remove") { try await stop() }
      return try await shell(name, ". ./\(name)")
    }
  }

  /// Waits until nothing is due or in flight.
  func settle() async throws {
    try await eventually("nothing is due", state: { self.worker?.errors ?? "" }) {
      try scenario.backend.count(
        "select count(*) from nudge_outbox where state = 'pending' and coalesce(not_before_at, 0) < ?",
        [.integer(now())]) == 0
        && scenario.backend.count("select count(*) from nudge_attempt where outcome is null") == 0
    }
  }

  /// One shell session: what a block exports is there in the next.
  private func shell(_ name: String, _ command: String) async throws -> String {
    let script = """
      cd '\(scenario.folder)'
      if [ -e exported ]; then . ./exported; fi
      set -e
      \(command)
      export -p > exported
      """
    let child = try Child(
      "\(name)-shell", ["/bin/sh", "-c", script], folder: scenario.folder, environment: variables)
    child.endInput()
    let exit = try await child.wait()
    guard exit == .code(0) else {
      let text = try String(contentsOfFile: scenario.path(name), encoding: .utf8)
      throw Failure("\(exit) from\n\(text)\(child.output)\(child.errors)")
    }
    return child.output
  }

  private func checkTargets(_ block: Readme.Block, _ name: String) async throws {
    for line in block.text.split(separator: "\n") {
      guard let target = line.firstMatch(of: /^(sudo )?make ([a-z]+)( *#.*)?$/)?.2 else {
        throw Failure("beside make, nothing of a block is tested: \(line)")
      }
      _ = try await shell(name, "make -n -C '\(Paths.package)' \(target)")
    }
  }

  private func start(_ block: Readme.Block, _ name: String) async throws {
    guard block.text.split(separator: "\n").count == 1, worker == nil else {
      throw Failure("the worker stands alone in its block, once: \(block.text)")
    }
    let script = "cd '\(scenario.folder)' && . ./exported && exec \(block.text)"
    let child = try Child(
      name, ["/bin/sh", "-c", script], folder: scenario.folder, environment: variables)
    worker = child
    try await eventually("the worker has started", state: { child.errors }) {
      child.errors.contains("worker started")
    }
  }

  private func stop() async throws {
    guard let worker else { throw Failure("no worker was started") }
    worker.signal(SIGTERM)
    #expect(try await worker.wait() == .code(0), "\(worker.errors)")
    self.worker = nil
  }
}
