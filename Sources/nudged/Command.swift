import Outbox
import Relay

/// One command of `nudged`, told everything that it needs.
protocol Command: Sendable {
  /// Reads the command's own flags and settings; touches no file and no clock.
  static func parse(_ given: Given) throws(Failure) -> Self
  /// Does it.
  func run() throws(Failure) -> Outcome
}

/// What a command prints to standard output, and how it ends.
struct Outcome: Equatable, Sendable {
  var text = ""
  var exitCode = ExitCode.success
}

/// The commands by name; `options` says which flags each takes.
enum CommandName: String, CaseIterable, Sendable {
  case migrate, run, send, register, devices, audit, metrics, settle, doctor

  var type: any Command.Type {
    switch self {
    case .migrate: Migrate.self
    case .run: Run.self
    case .send: Send.self
    case .register: Register.self
    case .devices: Devices.self
    case .audit: Audit.self
    case .metrics: Metrics.self
    case .settle: Settle.self
    case .doctor: Doctor.self
    }
  }

  /// What it does, in a line of `nudged --help`.
  var summary: String {
    switch self {
    case .migrate: "create or upgrade the nudge_ tables, or take them out again"
    case .run: "the worker: send what the outbox holds"
    case .send: "insert a nudge, as a backend would, and print its id"
    case .register: "register a device and one of its tokens"
    case .devices: "list devices and their tokens"
    case .audit: "say what became of nudges, and why a phone stayed silent"
    case .metrics: "print figures in Prometheus' text format"
    case .settle: "end what an old copy of the database would send again"
    case .doctor: "check everything from the file to Apple's hosts, and say how to put it right"
    }
  }

  /// What it does, for `nudged help COMMAND`.
  var explanation: String {
    switch self {
    case .migrate:
      """
      Creates or upgrades the nudge_ tables in a database that exists; running it again changes nothing.
      Everything else in the database is left alone.
      """
    case .run:
      """
      Sends nudges to Apple's push service until it is told to stop (SIGTERM, SIGINT).
      Each setting may be given as a flag or as a variable; the flag wins.
      """
    case .send:
      """
      Inserts one row into nudge_outbox and prints its id. The worker judges the row:
      whether it was sent, and if not why, stands in its state and detail, and in nudge_audit.
      TIME is milliseconds since 1970 UTC, or +DURATION from now, as in +10m.
      """
    case .register:
      """
      Inserts one row into nudge_registration: creates or updates the device, and creates or replaces
      just the token of that kind and scope. What is not given stays as it is.
      TIME is milliseconds since 1970 UTC, or +DURATION from now.
      """
    case .devices:
      """
      Lists every device with its tokens. Tokens are secrets of a kind: only their first digits are shown.
      """
    case .audit:
      """
      Lists what became of nudges, a line for each request and for each nudge without one, the newest last,
      and behind them what is still open and why. The database is only read.
      TIME is how long ago (24h), a date or time (2026-11-30, 2026-11-30T08:00, UTC unless it says otherwise),
      or milliseconds since 1970 UTC.
      """
    case .metrics:
      """
      Prints figures in Prometheus' text format, for node_exporter's textfile collector. The database is only read.
      Pauses are in the worker's memory: here they show as a due nudge that grows old while a worker runs.
      """
    case .settle:
      """
      Settles the pending and waiting nudges that were written before a time, so that they are not sent: after
      an old copy of the database was restored. They end as cancelled, those that have attempts as attempted.
      TIME is how long ago (2h), a date or time (2026-11-30, 2026-11-30T08:00, UTC unless it says otherwise),
      or milliseconds since 1970 UTC.
      """
    case .doctor:
      """
      Checks the database, its permissions, the keys, the way to each host that has a key, the queue, and
      what Apple last said. Each line is ok (✓), a warning (!) or a fault (✗), with what puts it right.
      Nothing is written or sent. Run it as the worker's user, with the worker's settings.
      The exit code is 0 without a fault, else that of the first one: 66, 65 or 74 the database, 78 or 64 the
      settings, 69 a host that cannot be reached or refuses, or due nudges and no worker.
      """
    }
  }
}

/// Reads the command line as a whole: which command, or help, or the version.
enum Invocation {
  static func parse(
    _ arguments: [String], environment: [String: String]
  ) throws(Failure) -> any Command {
    guard let first = arguments.first else {
      throw Failure(.usage, "which command? \(names)\n`nudged --help` explains them")
    }
    let rest = Array(arguments.dropFirst())
    switch first {
    case "--version", "version": return Show(text: "nudged \(Program.version)\n")
    case "--help", "-h": return Show(text: Help.overview)
    case "help": return try Help.parse(rest)
    default: break
    }
    guard let name = CommandName(rawValue: first) else {
      let kind = first.hasPrefix("-") ? "flag (the command comes first)" : "command"
      let hint = Spelling.suggestion(for: first, among: CommandName.allCases.map(\.rawValue))
      throw Failure(
        .usage,
        "unknown \(kind) \(first)\(hint.map { "; did you mean \($0)?" } ?? "")\n"
          + "`nudged --help` lists the commands")
    }
    // Further on, -h may be a value, as in `send --body -h`; a value with two dashes stands behind its flag.
    if rest.contains("--help") || rest.first == "-h" { return Show(text: Help.text(of: name)) }
    return try name.type.parse(Given(name, arguments: rest, environment: environment))
  }

  private static var names: String {
    CommandName.allCases.map(\.rawValue).joined(separator: ", ")
  }
}

/// Prints a text that was known from the start: help and version.
struct Show: Command {
  var text: String

  static func parse(_ given: Given) -> Show { Show(text: "") }
  func run() -> Outcome { Outcome(text: text) }
}

extension Failure {
  /// Runs `body`; a fault of the database becomes a failure of the command.
  static func wrap<Value>(
    _ body: () throws(DatabaseFault) -> Value
  ) throws(Failure) -> Value {
    do throws(DatabaseFault) { return try body() } catch { throw Failure(error) }
  }
}
