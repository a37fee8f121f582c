import Relay

/// What a command was told: flags from its arguments, the rest from `NUDGED_` variables.
struct Given: Sendable {
  /// A value and the name that it came under, for messages.
  struct Value: Equatable, Sendable {
    var text: String
    /// `--team-id` or `NUDGED_TEAM_ID`.
    var origin: String
    /// A wrong value is a usage error in a flag and a configuration error in a variable.
    var exitCode: ExitCode

    /// A failure about this value.
    func fault(_ words: String) -> Failure { Failure(exitCode, "\(origin): \(words)") }
  }

  let command: CommandName
  private var values: [String: Value] = [:]

  /// Reads both sources; every flag and every `NUDGED_` variable must be known.
  init(
    _ command: CommandName, arguments: [String], environment: [String: String]
  ) throws(Failure) {
    self.command = command
    try readVariables(environment)
    try readFlags(arguments)
  }

  /// The value of an option; nil when it was not given.
  subscript(_ name: String) -> Value? { values[name] }

  /// Whether a flag without a value was given.
  func has(_ name: String) -> Bool { values[name] != nil }

  // MARK: Variables

  private mutating func readVariables(_ environment: [String: String]) throws(Failure) {
    let known = Option.all.filter(\.isSetting)
    // Sorted, so that of several faults always the same one is named.
    for (name, text) in environment.sorted(by: { $0.key < $1.key })
    where name.uppercased().hasPrefix("NUDGED_") && !text.isEmpty {
      guard let option = known.first(where: { $0.variable == name }) else {
        throw Given.unknownVariable(name, known: known.compactMap(\.variable))
      }
      // The other commands run beside the worker, in its environment.
      guard option.commands.contains(command) else { continue }
      values[option.name] = Value(text: text, origin: name, exitCode: .configuration)
    }
  }

  private static func unknownVariable(_ name: String, known: [String]) -> Failure {
    let hint = Spelling.suggestion(for: name, among: known)
    return Failure(
      .configuration,
      "unknown variable \(name)\(hint.map { "; did you mean \($0)?" } ?? "")\n"
        + "`nudged help settings` lists the settings")
  }

  // MARK: Flags

  private mutating func readFlags(_ arguments: [String]) throws(Failure) {
    var seen: Set<String> = []
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      guard argument.hasPrefix("-"), argument != "-" else {
        throw fault("unexpected argument \(argument): a value follows its flag")
      }
      let parts = Pair.split(argument)
      let flag = parts.name
      guard let option = Option.of(command).first(where: { $0.flag == flag }) else {
        throw unknownFlag(flag)
      }
      guard seen.insert(flag).inserted else { throw fault("\(flag) is given twice") }
      values[option.name] = Value(
        text: try value(of: option, attached: parts.value, rest: &rest), origin: flag, exitCode: .usage)
    }
  }

  private func value(
    of option: Option, attached: String?, rest: inout ArraySlice<String>
  ) throws(Failure) -> String {
    guard let word = option.value else {
      guard attached == nil else { throw fault("\(option.flag) takes no value") }
      return ""
    }
    if attached == nil, let next = rest.first, next.hasPrefix("--") {
      throw fault(
        "\(option.flag) needs a value (\(word)); one that begins with dashes is written \(option.flag)=...")
    }
    guard let text = attached ?? rest.popFirst() else {
      throw fault("\(option.flag) needs a value (\(word))")
    }
    guard !text.isEmpty || !option.isSetting else { throw fault("\(option.flag) has an empty value") }
    return text
  }

  private func unknownFlag(_ flag: String) -> Failure {
    let elsewhere = Option.all.filter { $0.flag == flag }.flatMap(\.commands)
    let flags = Option.of(command).map(\.flag) + ["--help"]
    if let hint = Spelling.suggestion(for: flag, among: flags) {
      return fault("unknown flag \(flag); did you mean \(hint)?")
    }
    guard elsewhere.isEmpty else {
      let names = elsewhere.map { "`nudged \($0.rawValue)`" }.joined(separator: " and ")
      return fault("\(flag) is a flag of \(names), not of `nudged \(command.rawValue)`")
    }
    return fault("unknown flag \(flag)")
  }

  private func fault(_ words: String) -> Failure {
    Failure(.usage, "\(words)\n`nudged help \(command.rawValue)` lists the flags")
  }
}

/// A name and a value with an equals sign between them.
enum Pair {
  /// Splits at the first equals sign; the value is nil without one.
  ///
  /// By scalars: an equals sign and a combining mark at the start of the value are one Character.
  static func split(_ text: String) -> (name: String, value: String?) {
    let scalars = text.unicodeScalars
    guard let sign = scalars.firstIndex(of: "=") else { return (text, nil) }
    return (String(scalars[..<sign]), String(scalars[scalars.index(after: sign)...]))
  }
}
