import Foundation
import Testing

@testable import APNsSimulator

@Suite("Program")
struct ProgramTests {
  @Test(
    "wrong arguments are named and end with 64",
    arguments: [
      (["--what"], "unknown flag --what"), (["what"], "unexpected argument what"),
      (["-q"], "unexpected argument -q"),
      (["--quiet=1"], "--quiet takes no value"), (["--quiet", "--quiet"], "--quiet is given twice"),
      (["--log"], "--log needs a value (FILE)"), (["--log", "--quiet"], "--log needs a value (FILE)"),
      (["--log="], "--log has an empty value"),
      (["--production-port", "65536"], "--production-port is a number from 0 to 65535"),
      (["--sandbox-port", "x"], "--sandbox-port is a number"),
      (["--streams", "-1"], "--streams is a number"),
      (["--production-port", "7000", "--sandbox-port", "7000"], "are the same"),
      (["--team-id", "short"], "--team-id: team id is 5 bytes"),
      (["--unknown-tokens", "maybe"], "--unknown-tokens is accept, reject, production or sandbox"),
      (["--adopt-after", "2s"], "--adopt-after needs --adopt"),
      (["--adopt", "a.db", "--adopt-after", "2"], "--adopt-after is a duration such as 200ms, 2s or 1m"),
      (["--directory", "/dev/null"], "/dev/null: is not a directory"),
    ])
  func usage(_ arguments: [String], _ words: String) throws {
    let ran = try run(try Programs.simulator(), arguments, in: try Folder())
    #expect(ran.code == 64 && ran.errors.hasPrefix("apns-simulator: ") && ran.output.isEmpty)
    #expect(ran.errors.contains(words), "\(ran.errors)")
  }

  @Test("files that are wrong at the start end it with 78, named with their place")
  func configuration() throws {
    let folder = try Folder()
    let simulator = try Programs.simulator()
    let missing = try run(simulator, ["--directory", "d", "--script", folder.file("none")], in: folder)
    #expect(missing.code == 78 && missing.errors.contains("none: no such file"))
    try folder.write("{\"rules\": 1}", to: "script")
    let script = try run(simulator, ["--directory", "d", "--script", "script"], in: folder)
    #expect(script.code == 78 && script.errors.contains("script: line 1, column 11: \"rules\""))
    try folder.write("x", to: "d/tokens.json")
    let tokens = try run(simulator, ["--directory", "d"], in: folder)
    #expect(tokens.code == 78 && tokens.errors.contains("/d/tokens.json: line 1, column 1"))
    try folder.write("{\"tokens\": []}", to: "d/tokens.json")
    try folder.write("no key", to: "d/AuthKey_ABCDEFGHIJ.p8")
    let key = try run(simulator, ["--directory", "d"], in: folder)
    #expect(key.code == 78 && key.errors.contains("/d/AuthKey_ABCDEFGHIJ.p8: not a private key"))
    #expect(!FileManager.default.fileExists(atPath: folder.file("d/settings.env")))
  }

  @Test("what cannot be written or listened on ends it with 74")
  func inputOutput() throws {
    let folder = try Folder()
    let log = try run(try Programs.simulator(), ["--directory", "d", "--log", "/nowhere/log"], in: folder)
    #expect(log.code == 74 && log.errors.contains("/nowhere/log: No such file or directory"))
    let made = try run(try Programs.simulator(), ["--directory", "/proc/x"], in: folder)
    #expect(made.code == 74 && made.errors.contains("/proc/x"))
    let first = try SimulatorProcess()
    let port = first.url("sandbox").split(separator: ":").last.map(String.init) ?? ""
    let second = try run(
      try Programs.simulator(), ["--directory", "d", "--production-port", port], in: folder)
    #expect(
      second.code == 74 && second.errors.contains("cannot listen on port \(port): Address already in use"))
  }

  @Test("--help names every flag, --version the version; both end with 0")
  func help() throws {
    let help = try run(try Programs.simulator(), ["--quiet", "--help"], in: try Folder())
    #expect(help.code == 0 && help.errors.isEmpty)
    for flag in Flag.all { #expect(help.output.contains(flag.name)) }
    #expect(help.output.split(separator: "\n").allSatisfy { $0.count <= 110 })
    let version = try run(try Programs.simulator(), ["--version"], in: try Folder())
    #expect(version.code == 0 && version.output == "apns-simulator \(Invocation.version)\n")
  }

  @Test("SIGINT and SIGTERM end it with 0, also while a client is connected", arguments: [SIGINT, SIGTERM])
  func signals(_ signal: Int32) throws {
    let simulator = try SimulatorProcess()
    _ = try simulator.node([TestPush(jwt: try simulator.jwt())])
    #expect(simulator.end(signal) == 0)
    #expect(simulator.errors.isEmpty)
  }

  @Test("the settings that it prints are those in settings.env, and a shell can read them")
  func settings() throws {
    let simulator = try SimulatorProcess()
    let path = simulator.directory + "/settings.env"
    let text = try String(contentsOfFile: path, encoding: .utf8)
    #expect(eventually { simulator.output == text })
    let shell = try run(
      "/bin/sh", ["-c", "set -a; . '\(path)'; env | grep ^NUDGED_ | sort"], in: simulator.folder)
    let names = shell.output.split(separator: "\n").map { $0.prefix { $0 != "=" } }
    #expect(
      names == [
        "NUDGED_CA_FILE", "NUDGED_KEY_FILE", "NUDGED_PRODUCTION_URL", "NUDGED_SANDBOX_URL", "NUDGED_TEAM_ID",
      ])
    #expect(shell.output.contains("NUDGED_TEAM_ID=SIMULATOR1\n"))
    #expect(shell.output.contains("NUDGED_CA_FILE=\(simulator.directory)/ca.pem\n"))
  }

  @Test("certificates and key are used again, and nobody else may read the keys")
  func reuse() throws {
    let folder = try Folder()
    let names = ["ca.pem", "server.pem", "server.key", "AuthKey_LOCALKEY01.p8"]
    func contents() throws -> [Data] {
      try names.map { try Data(contentsOf: URL(fileURLWithPath: folder.file("sim/\($0)"))) }
    }
    let first = try SimulatorProcess(folder: folder)
    let made = try contents()
    #expect(first.end(SIGTERM) == 0)
    let second = try SimulatorProcess(folder: folder)
    #expect(try contents() == made)
    #expect(try second.node([TestPush(jwt: try second.jwt())]).results[0].status == 200)
    for name in names.suffix(2) + ["settings.env"] {
      let mode = try FileManager.default.attributesOfItem(atPath: folder.file("sim/\(name)"))[
        .posixPermissions]
      #expect(mode as? Int == 0o600, "\(name)")
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("sim/ca.key")))
  }

  @Test("a key of the user's own is taken instead of making one")
  func ownKey() throws {
    let folder = try Folder()
    try FileManager.default.createDirectory(atPath: folder.file("sim"), withIntermediateDirectories: true)
    let key = try TestKey()
    try Data(try key.key.pem()).write(to: URL(fileURLWithPath: folder.file("sim/AuthKey_ABCDEFGHIJ.p8")))
    let simulator = try SimulatorProcess(["--team-id", "ABCDEFGHIK"], folder: folder)
    #expect(simulator.keyFile.hasSuffix("/AuthKey_ABCDEFGHIJ.p8"))
    #expect(simulator.settings["NUDGED_TEAM_ID"] == "ABCDEFGHIK")
    let now = Int64(Date().timeIntervalSince1970)
    let good = try key.jwt(kid: "ABCDEFGHIJ", iss: "ABCDEFGHIK", issuedAt: now)
    #expect(try simulator.node([TestPush(jwt: good)]).results[0].status == 200)
  }

  @Test("values are quoted for a shell where they have to be")
  func quoting() {
    #expect(Material.quoted("/tmp/a-b_c/d.pem") == "/tmp/a-b_c/d.pem")
    #expect(Material.quoted("/tmp/my dir") == "'/tmp/my dir'")
    #expect(Material.quoted("it's $HOME") == "'it'\\''s $HOME'")
    #expect(Material.quoted("") == "''")
  }

  @Test("on a pipe the lock screen is one line a push")
  func plainLines() throws {
    let simulator = try SimulatorProcess(quiet: false)
    let jwt = try simulator.jwt()
    _ = try simulator.node([
      TestPush(
        jwt: jwt, body: #"{"aps":{"alert":{"title":"Done","body":"It is \u001b[2J ready"},"badge":2}}"#),
      TestPush(
        jwt: jwt, ["apns-push-type": "background", "apns-priority": "5"],
        body: #"{"aps":{"content-available":1}}"#),
      TestPush(jwt: jwt, ["apns-topic": nil]),
    ])
    #expect(eventually { simulator.output.split(separator: "\n").count == 8 })
    let lines = simulator.output.split(separator: "\n").suffix(3).map { String($0.dropFirst(9)) }
    #expect(lines[0] == "com.example.app: Done | It is [2J ready (badge 2)")
    #expect(lines[1] == "com.example.app: silent")
    #expect(lines[2].hasSuffix("refused: 400 MissingTopic, production, token 0a1b2c3d…"))
    #expect(!simulator.output.contains("\u{1B}"))
  }

  @Test("in a terminal it draws in place, and leaves the terminal as it was")
  func terminal() throws {
    let folder = try Folder()
    // script(1) gives the program a terminal of its own.
    let command = """
      '\(try Programs.simulator())' --directory d & while [ ! -e d/settings.env ]; do sleep 0.05; done; kill -INT $!; wait $!
      """
    let ran = try run(try Programs.named("script"), ["-qec", command, "typescript"], in: folder)
    #expect(ran.code == 0)
    #expect(ran.output.contains("NUDGED_CA_FILE="))
    #expect(ran.output.contains("lock screen: nothing yet"))
    let off = ran.output.components(separatedBy: "\u{1B}[?7l").count
    #expect(off > 1 && ran.output.components(separatedBy: "\u{1B}[?7h").count == off)
  }
}
