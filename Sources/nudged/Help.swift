import Relay

/// The texts of `nudged --help` and `nudged help ...`, made from the tables of commands and options.
enum Help {
  static func parse(_ topics: [String]) throws(Failure) -> any Command {
    guard let topic = topics.first else { return Show(text: overview) }
    guard topics.count == 1 else { throw Failure(.usage, "one topic at a time: `nudged help \(topic)`") }
    if topic == "settings" { return Show(text: settingsTable) }
    guard let command = CommandName(rawValue: topic) else {
      let known = CommandName.allCases.map(\.rawValue) + ["settings"]
      let hint = Spelling.suggestion(for: topic, among: known)
      throw Failure(
        .usage,
        "no help on \(topic)\(hint.map { "; did you mean \($0)?" } ?? "")\n"
          + "topics: \(known.joined(separator: ", "))")
    }
    return Show(text: text(of: command))
  }

  static var overview: String {
    """
    nudged sends what a SQLite outbox holds to Apple's push service, each nudge at most once.

    usage: nudged COMMAND [--flag value ...]

    \(aligned(CommandName.allCases.map { ($0.rawValue, $0.summary) }))
    `nudged help COMMAND` lists the flags of a command, `nudged help settings` the settings with
    their variables; `nudged --version` prints the version.

    Exit codes: 0 done, 64 wrong arguments, 65 database malformed or of another schema, 66 no such
    database, 69 a host refuses or cannot be reached, or rows are due and no worker runs, 74 input
    or output failed, 75 another worker holds the database, 78 settings wrong or incomplete.

    """
  }

  /// The help of one command.
  static func text(of command: CommandName) -> String {
    let options = Option.of(command)
    let lines = options.map { option in
      (
        option.flag + (option.value.map { " " + $0 } ?? ""),
        option.help + (option.initial.map { " [\($0)]" } ?? "")
      )
    }
    let settings = options.filter(\.isSetting)
    let others = options.filter { !$0.isSetting }.map(\.flag).joined(separator: ", ")
    let variables =
      settings.count > 1
      ? "Each may be a variable instead, except \(others): --ca-file is NUDGED_CA_FILE, and so on.\n"
      : "--database may be a variable instead: NUDGED_DATABASE.\n"
    return """
      usage: nudged \(command.rawValue) [--flag value ...]

      \(command.explanation)

      \(aligned(lines))
      \(variables)
      """
  }

  /// The settings as a table in Markdown, as it stands in the README.
  static var settingsTable: String {
    var text = "| flag | variable | default | meaning |\n| --- | --- | --- | --- |\n"
    for option in Option.all {
      guard let variable = option.variable, let value = option.value else { continue }
      text +=
        "| `\(option.flag) \(value)` | `\(variable)` | \(initial(option)) | \(option.help) |\n"
    }
    return text
  }

  /// A default as code, unless it is a sentence.
  private static func initial(_ option: Option) -> String {
    guard let initial = option.initial else { return "" }
    return initial.contains(" ") ? initial : "`\(initial)`"
  }

  private static func aligned(_ lines: [(String, String)]) -> String {
    let width = lines.map(\.0.count).max() ?? 0
    return lines.map { name, help in
      "  " + name + String(repeating: " ", count: width - name.count + 2) + help + "\n"
    }.joined()
  }
}
