import APNs

/// Everything that the simulator was told.
package struct Options: Sendable {
  package var directory: String?
  package var productionPort: UInt16 = 0
  package var sandboxPort: UInt16 = 0
  package var teamID = "SIMULATOR1"
  package var script: String?
  package var log: String?
  package var unknownTokens: Set<Environment> = [.production, .sandbox]
  package var topics: [String] = []
  package var streams: UInt32 = 1_000
  package var firstStreams: UInt32 = 1
  package var isQuiet = false
  /// The backend's database, where cards that were started by push get their update tokens.
  package var adopt: String?
  package var adoptAfter: Duration?
  /// Not to serve, but to print a provider token.
  package var printsToken = false

  package init() {}
}

/// What the command line asks for.
package enum Invocation: Sendable {
  case run(Options)
  case show(String)

  package static let version = "0.1.0"

  /// Reads the arguments behind the program's name.
  package static func parse(_ arguments: [String]) throws(SimulatorFault) -> Invocation {
    if arguments.contains("--help") || arguments.contains("-h") { return .show(help) }
    if arguments.contains("--version") { return .show("apns-simulator \(version)\n") }
    var options = Options()
    var seen: Set<String> = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("--") else {
        throw fault("unexpected argument \(argument): a value follows its flag")
      }
      let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
        String.init)
      guard let flag = Flag.all.first(where: { $0.name == parts[0] }) else {
        throw fault("unknown flag \(parts[0])")
      }
      guard seen.insert(flag.name).inserted else { throw fault("\(flag.name) is given twice") }
      guard flag.value != nil else {
        guard parts.count == 1 else { throw fault("\(flag.name) takes no value") }
        try flag.set(&options, "")
        continue
      }
      if parts.count == 1, rest.first?.hasPrefix("--") ?? true {
        throw fault("\(flag.name) needs a value (\(flag.value ?? ""))")
      }
      let value = parts.count == 2 ? parts[1] : rest.popFirst() ?? ""
      guard !value.isEmpty else { throw fault("\(flag.name) has an empty value") }
      try flag.set(&options, value)
    }
    if options.productionPort != 0, options.productionPort == options.sandboxPort {
      throw fault("--production-port and --sandbox-port are the same: the two hosts need one each")
    }
    guard options.adoptAfter == nil || options.adopt != nil else {
      throw fault("--adopt-after needs --adopt with the database")
    }
    guard !options.printsToken || options.directory != nil else {
      throw fault("--print-token needs the --directory with the key")
    }
    return .run(options)
  }

  static func fault(_ words: String) -> SimulatorFault {
    SimulatorFault(.usage, "\(words)\n`apns-simulator --help` lists the flags")
  }

  private static var help: String {
    let names = Flag.all.map { $0.name + ($0.value.map { " " + $0 } ?? "") }
    let width = (names.map(\.count).max() ?? 0) + 2
    let lines = zip(names, Flag.all).map { name, flag in
      "  " + name + String(repeating: " ", count: width - name.count) + flag.help
    }
    return """
      apns-simulator is a local APNs: both hosts, with real TLS and HTTP/2, on this machine only.

      usage: apns-simulator [--flag value ...]

      \(lines.joined(separator: "\n"))
        --help, --version

      It prints the settings that point nudged to it, writes them to settings.env in its directory once it
      listens, and shows on standard output what the phone would show. It reads tokens.json in its directory,
      and the script, again whenever they change. SIGINT or SIGTERM end it.

      Exit codes: 0 ended by a signal, 64 wrong arguments, 74 input or output failed, 78 a file is wrong.

      """
  }
}

/// One flag: how it is typed, what it is for, and what it sets.
struct Flag: Sendable {
  let name: String
  /// What stands for the value in the help; nil for a flag that takes none.
  let value: String?
  let help: String
  let set: @Sendable (inout Options, String) throws(SimulatorFault) -> Void

  static let all: [Flag] = [
    Flag(name: "--directory", value: "DIR", help: "certificates, keys, settings.env, tokens.json [a new one]")
    {
      (options, value) throws(SimulatorFault) in options.directory = value
    },
    Flag(name: "--production-port", value: "PORT", help: "port of the production host [any free one]") {
      (options, value) throws(SimulatorFault) in
      options.productionPort = try number("--production-port", value, 0...65_535)
    },
    Flag(name: "--sandbox-port", value: "PORT", help: "port of the sandbox host [any free one]") {
      (options, value) throws(SimulatorFault) in
      options.sandboxPort = try number("--sandbox-port", value, 0...65_535)
    },
    Flag(name: "--team-id", value: "ID", help: "the team whose provider tokens are good [SIMULATOR1]") {
      (options, value) throws(SimulatorFault) in
      do throws(KeyIdentity.Fault) {
        options.teamID = try KeyIdentity(keyID: Material.keyID, teamID: value).teamID
      } catch { throw Invocation.fault("--team-id: \(error.words)") }
    },
    Flag(
      name: "--unknown-tokens", value: "WHERE",
      help: "accept, reject, production or sandbox: where tokens that\n"
        + String(repeating: " ", count: 26) + "tokens.json does not list are good [accept]"
    ) { (options, value) throws(SimulatorFault) in
      switch value {
      case "accept": options.unknownTokens = [.production, .sandbox]
      case "reject": options.unknownTokens = []
      case "production": options.unknownTokens = [.production]
      case "sandbox": options.unknownTokens = [.sandbox]
      default: throw Invocation.fault("--unknown-tokens is accept, reject, production or sandbox")
      }
    },
    Flag(name: "--topics", value: "LIST", help: "bundle ids that may be used, with commas between [all]") {
      (options, value) throws(SimulatorFault) in
      options.topics = value.split(separator: ",").map(String.init)
    },
    Flag(name: "--script", value: "FILE", help: "scripted answers (JSON)") {
      (options, value) throws(SimulatorFault) in options.script = value
    },
    Flag(name: "--log", value: "FILE", help: "append every request and its answer as a line of JSON") {
      (options, value) throws(SimulatorFault) in options.log = value
    },
    Flag(
      name: "--streams", value: "N", help: "MAX_CONCURRENT_STREAMS after the first good provider token [1000]"
    ) {
      (options, value) throws(SimulatorFault) in
      options.streams = try number("--streams", value, 0...1_000_000)
    },
    Flag(name: "--first-streams", value: "N", help: "and before it [1]") {
      (options, value) throws(SimulatorFault) in
      options.firstStreams = try number("--first-streams", value, 0...1_000_000)
    },
    Flag(
      name: "--adopt", value: "DATABASE",
      help: "register the update token of each Live Activity that a push\n"
        + String(repeating: " ", count: 26) + "has started there, as the app's backend would"
    ) {
      (options, value) throws(SimulatorFault) in options.adopt = value
    },
    Flag(name: "--adopt-after", value: "DURATION", help: "so long after the start, such as 200ms or 1m [2s]")
    {
      (options, value) throws(SimulatorFault) in
      guard let delay = Duration(spelled: value) else {
        throw Invocation.fault("--adopt-after is a duration such as 200ms, 2s or 1m")
      }
      options.adoptAfter = delay
    },
    Flag(name: "--quiet", value: nil, help: "no lock screen: print nothing but the settings") {
      (options, _) throws(SimulatorFault) in options.isQuiet = true
    },
    Flag(
      name: "--print-token", value: nil,
      help: "print an authorization value for curl, good for an hour, and end"
    ) {
      (options, _) throws(SimulatorFault) in options.printsToken = true
    },
  ]

  private static func number<Value: FixedWidthInteger>(
    _ name: String, _ text: String, _ range: ClosedRange<Int>
  ) throws(SimulatorFault) -> Value {
    guard let number = Int(text), range.contains(number), let value = Value(exactly: number) else {
      throw Invocation.fault("\(name) is a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }
}
