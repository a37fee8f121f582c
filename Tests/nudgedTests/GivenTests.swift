import Relay
import Testing

@testable import nudged

@Suite("Given")
struct GivenTests {
  private func given(
    _ command: CommandName = .run, _ arguments: [String] = [], _ environment: [String: String] = [:]
  ) throws(Failure) -> Given {
    try Given(command, arguments: arguments, environment: environment)
  }

  @Test("a flag takes its value from the next argument or after an equals sign")
  func forms() throws {
    #expect(try given(.run, ["--database", "a.db"])["database"]?.text == "a.db")
    #expect(try given(.run, ["--database=a=b.db"])["database"]?.text == "a=b.db")
    #expect(try given(.send, ["--title", ""])["title"]?.text == "")
    #expect(try given(.send, ["--title="])["title"]?.text == "")
    #expect(try given(.send, ["--title=--body"])["title"]?.text == "--body")
    #expect(try given(.send, ["--title", "-", "--body", "-1"])["body"]?.text == "-1")
    #expect(try given(.send, ["--title=\u{301}=x"])["title"]?.text == "\u{301}=x")
    #expect(try given(.run, ["--drain"]).has("drain"))
    #expect(try !given().has("drain"))
  }

  @Test("every setting of run has its variable, and the flag wins", arguments: Option.of(.run))
  func precedence(option: Option) throws {
    guard let variable = option.variable else {
      #expect(option.name == "drain")
      return
    }
    let environment = [variable: "from variable"]
    let fromVariable = try given(.run, [], environment)[option.name]
    #expect(fromVariable?.text == "from variable")
    #expect(fromVariable?.origin == variable)
    #expect(fromVariable?.exitCode == .configuration)
    let fromFlag = try given(.run, [option.flag, "from flag"], environment)[option.name]
    #expect(fromFlag == Given.Value(text: "from flag", origin: option.flag, exitCode: .usage))
  }

  @Test("variables follow one pattern")
  func pattern() {
    let variables = Option.all.compactMap(\.variable)
    #expect(variables.contains("NUDGED_EXPIRE_AFTER"))
    #expect(variables.contains("NUDGED_PRODUCTION_KEY_FILE"))
    #expect(Set(variables).count == 19)
    #expect(Set(Option.of(.send).map(\.name)).count == Option.of(.send).count)
  }

  @Test("an empty variable counts as not set, an unknown one too")
  func emptyVariable() throws {
    let given = try given(.run, [], ["NUDGED_DATABASE": "", "NUDGED_DATABSE": ""])
    #expect(given["database"] == nil)
  }

  @Test("variables of run are no business of the other commands", arguments: CommandName.allCases)
  func otherCommands(command: CommandName) throws {
    let environment = ["NUDGED_POLL_INTERVAL": "nonsense", "NUDGED_DATABASE": "a.db", "OTHER": "x"]
    let given = try given(command, [], environment)
    #expect(given["database"]?.text == "a.db")
    #expect((given["poll-interval"] != nil) == (command == .run))
  }

  @Test(
    "an unknown variable is a configuration error, for every command",
    arguments: [
      ("NUDGED_DATABSE", "did you mean NUDGED_DATABASE?"),
      ("nudged_database", "did you mean NUDGED_DATABASE?"),
      ("NUDGED_POLL_INTERVALL", "did you mean NUDGED_POLL_INTERVAL?"), ("NUDGED_", "NUDGED_\n"),
      ("NUDGED_DRAIN", "unknown variable NUDGED_DRAIN"), ("NUDGED_SOMETHING_ELSE", "nudged help settings"),
    ])
  func unknownVariable(name: String, words: String) {
    for command in CommandName.allCases {
      expectFailure([command.rawValue], environment: [name: "x"], .configuration, words)
    }
  }

  @Test(
    "wrong arguments say what is wrong and where to look",
    arguments: [
      (["run", "--databse", "x"], "unknown flag --databse; did you mean --database?"),
      (["run", "--dat"], "unknown flag --dat"),
      (["run", "-v"], "unknown flag -v"),
      (["run", "--"], "unknown flag --"),
      (["run", "--Database", "x"], "did you mean --database?"),
      (["run", "--database", "a", "--database=a"], "--database is given twice"),
      (["run", "--drain", "--drain"], "--drain is given twice"),
      (["run", "--drain=yes"], "--drain takes no value"),
      (["run", "--database"], "--database needs a value (FILE)"),
      (["run", "--database", "--drain"], "--database needs a value (FILE)"),
      (["run", "--database="], "--database has an empty value"),
      (["run", "a.db"], "unexpected argument a.db"),
      (["send", "--drain"], "--drain is a flag of `nudged run`, not of `nudged send`"),
      (["devices", "--key-file", "k"], "--key-file is a flag of `nudged run`"),
      (["send", "--titel", "x"], "did you mean --title?"),
      (["send", "--conversation_id", "x"], "did you mean --conversation-id?"),
      (["register", "--device-id", "x"], "--device-id is a flag of `nudged send`"),
      (["migrate", "--remove", "now"], "unexpected argument now"),
    ])
  func usage(arguments: [String], words: String) {
    expectFailure(arguments, .usage, words, "nudged help \(arguments[0])")
  }
}

@Suite("Invocation")
struct InvocationTests {
  @Test("no command, a misspelt one, or a flag in its place")
  func commands() {
    expectFailure([], .usage, "which command?", "migrate, run, send, register, devices", "--help")
    expectFailure(["rnu"], .usage, "unknown command rnu; did you mean run?")
    expectFailure(["--database", "x"], .usage, "the command comes first")
    expectFailure([""], .usage, "unknown command")
  }
}

@Suite("Spelling")
struct SpellingTests {
  @Test(
    "distance counts letters put in, left out, changed and swapped",
    arguments: [
      ("", "", 0), ("abc", "abc", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "abd", 1), ("abc", "acb", 1),
      ("abc", "ab", 1), ("kitten", "sitting", 3), ("--dabatase", "--database", 2),
    ])
  func distance(left: String, right: String, distance: Int) {
    #expect(Spelling.distance(Array(left), Array(right)) == distance)
    #expect(Spelling.distance(Array(right), Array(left)) == distance)
  }

  @Test("nothing is suggested when nothing is near")
  func far() {
    #expect(Spelling.suggestion(for: "--banana", among: Option.all.map(\.flag)) == nil)
    #expect(Spelling.suggestion(for: "x", among: []) == nil)
  }
}
