import Outbox

/// One flag: parsing, variables, help and the table in the README all come from `Option.all`.
struct Option: Sendable {
  /// The flag without its dashes.
  let name: String
  /// What stands for the value in the help; nil for a flag that takes none.
  let value: String?
  /// What it is for, one line.
  let help: String
  /// What holds when it is not given; nil when there is no such thing.
  let initial: String?
  /// The commands that take it.
  let commands: [CommandName]
  /// Whether it may also be given as a variable.
  let isSetting: Bool

  /// `expire-after` is `NUDGED_EXPIRE_AFTER`; nil for what belongs to one call of a command.
  var variable: String? {
    isSetting ? "NUDGED_" + name.uppercased().map { $0 == "-" ? "_" : String($0) }.joined() : nil
  }

  /// The flag as it is typed.
  var flag: String { "--" + name }

  /// Every flag there is, in the order of the help.
  static let all =
    settings + own + Send.options + Register.options + Audit.options + Settle.options + Doctor.options

  /// The flags that `command` takes.
  static func of(_ command: CommandName) -> [Option] {
    all.filter { $0.commands.contains(command) }
  }

  private static func setting(
    _ name: String, _ value: String, _ help: String, initial: String? = nil,
    commands: [CommandName] = [.run]
  ) -> Option {
    Option(
      name: name, value: value, help: help, initial: initial, commands: commands, isSetting: true)
  }

  /// A setting of keys and hosts, which `doctor` checks.
  private static func access(
    _ name: String, _ value: String, _ help: String, initial: String? = nil
  ) -> Option {
    setting(name, value, help, initial: initial, commands: [.run, .doctor])
  }

  /// The settings: flags of `run`, or variables.
  private static let settings = [
    setting("database", "FILE", "the backend's SQLite file", commands: CommandName.allCases),
    access("key-file", "FILE", "Apple's signing key (.p8), for both hosts"),
    access("key-id", "ID", "id of that key", initial: "from the file name"),
    access("team-id", "ID", "Apple's team id"),
    access("production-key-file", "FILE", "a key for the production host only", initial: "--key-file"),
    access("production-key-id", "ID", "id of that key", initial: "from the file name"),
    access("sandbox-key-file", "FILE", "a key for the sandbox host only", initial: "--key-file"),
    access("sandbox-key-id", "ID", "id of that key", initial: "from the file name"),
    access("production-url", "URL", "the production host", initial: "https://api.push.apple.com"),
    access("sandbox-url", "URL", "the sandbox host", initial: "https://api.sandbox.push.apple.com"),
    access("ca-file", "FILE", "a further trust root (PEM), as for a local test server"),
    setting(
      "expire-after", "DURATION", "how long a nudge without an expiry may still be sent", initial: "1h"),
    setting(
      "store-for", "DURATION", "how long Apple may keep a nudge for a phone that is off", initial: "24h"),
    setting("retain", "DURATION", "how long settled nudges are kept", initial: "30d"),
    setting("poll-interval", "DURATION", "how often to look without a sign of change", initial: "1s"),
    setting("answer-timeout", "DURATION", "how long Apple's answer may take", initial: "30s"),
    setting("stop-timeout", "DURATION", "how long to wait for answers when stopping", initial: "5s"),
    setting("connections", "N", "connections to a host at once, 1 to 64", initial: "4"),
    setting("log-level", "LEVEL", "error, warning, notice, info or debug", initial: "info"),
  ]

  /// What belongs to one call.
  private static let own = [
    Option(
      name: "remove", value: nil, help: "drop the nudge_ tables and all they hold", initial: nil,
      commands: [.migrate], isSetting: false),
    Option(
      name: "drain", value: nil, help: "send what is due, wait for the answers, and end", initial: nil,
      commands: [.run], isSetting: false),
    Option(
      name: "show-tokens", value: nil, help: "show whole tokens", initial: nil,
      commands: [.devices], isSetting: false),
  ]
}
