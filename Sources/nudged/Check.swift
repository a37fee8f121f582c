import Relay

/// One line of `nudged doctor`: what was looked at, what came of it, and what puts it right.
struct Check: Equatable, Sendable {
  /// What came of it; the raw values are those of `--json`.
  enum Status: Equatable, Sendable {
    case ok, warning
    case fault(ExitCode)

    var word: String {
      switch self {
      case .ok: "ok"
      case .warning: "warning"
      case .fault: "fault"
      }
    }

    var sign: String {
      switch self {
      case .ok: "✓"
      case .warning: "!"
      case .fault: "✗"
      }
    }

    var tone: TextTable.Tone {
      switch self {
      case .ok: .good
      case .warning: .doubtful
      case .fault: .bad
      }
    }
  }

  var name: String
  var status: Status
  var detail: String
  /// A command or a setting; nil where there is nothing to do.
  var fix: String?

  static func ok(_ name: String, _ detail: String) -> Check {
    Check(name: name, status: .ok, detail: detail, fix: nil)
  }

  static func warning(_ name: String, _ detail: String, fix: String) -> Check {
    Check(name: name, status: .warning, detail: detail, fix: fix)
  }

  static func fault(_ name: String, _ code: ExitCode, _ detail: String, fix: String) -> Check {
    Check(name: name, status: .fault(code), detail: detail, fix: fix)
  }

  /// The fault of a setting, whose message says itself what to write.
  static func fault(_ name: String, _ failure: Failure, fix: String = "`nudged help settings`") -> Check {
    fault(name, failure.exitCode, failure.message, fix: fix)
  }
}

/// All lines, from what the others stand on to what stands on them.
struct Report: Equatable, Sendable {
  var checks: [Check] = []

  /// That of the first fault; success without one.
  var exitCode: ExitCode {
    for case .fault(let code) in checks.map(\.status) { return code }
    return .success
  }

  /// A line with a sign for each check, below it what puts it right, and a last line that counts.
  func text(inColour: Bool) -> String {
    let width = checks.map(\.name.count).max() ?? 0
    var text = ""
    for check in checks {
      let name = check.name + String(repeating: " ", count: width - check.name.count)
      let sign = inColour ? check.status.tone.colour(check.status.sign) : check.status.sign
      text += "\(sign) \(name)  \(TextTable.printable(check.detail))\n"
      if let fix = check.fix {
        text += String(repeating: " ", count: width + 4) + "→ \(TextTable.printable(fix))\n"
      }
    }
    let faults = count("fault", "fault")
    return text + "\n\(faults), \(count("warning", "warning"))\n"
  }

  private func count(_ word: String, _ name: String) -> String {
    let count = checks.count { $0.status.word == word }
    return count == 0 ? "no \(name)" : count == 1 ? "1 \(name)" : "\(count) \(name)s"
  }

  /// An object with `check`, `status`, `detail` and `fix` in each line.
  var json: String {
    checks.map { check in
      var line = ""
      for (member, value) in [
        ("check", check.name), ("status", check.status.word), ("detail", check.detail), ("fix", check.fix),
      ] {
        line += line.isEmpty ? "{" : ","
        JSONText.append(member, to: &line)
        line += ":"
        if let value { JSONText.append(value, to: &line) } else { line += "null" }
      }
      return line + "}\n"
    }.joined()
  }
}
