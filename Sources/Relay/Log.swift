import Glibc

/// The worker's log: one line an event on standard error, `key=value`, control characters escaped.
///
/// Device tokens, provider tokens, keys and message texts are never passed to it, at any level.
package struct Log: Sendable {
  /// How urgent a line is; the raw value is syslog's priority (`man 3 syslog`).
  package enum Level: Int, Sendable, Comparable, CaseIterable {
    case error = 3
    case warning = 4
    case notice = 5
    case info = 6
    case debug = 7

    /// The word that stands for the level in a line and in `--log-level`.
    package var word: String {
      switch self {
      case .error: "error"
      case .warning: "warning"
      case .notice: "notice"
      case .info: "info"
      case .debug: "debug"
      }
    }

    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// Lines less urgent than this are dropped.
  package let threshold: Level
  /// Whether lines begin with `<N>`, as the journal reads priorities (`man 3 sd-daemon`).
  package let hasPriorityPrefix: Bool

  package init(threshold: Level, hasPriorityPrefix: Bool) {
    self.threshold = threshold
    self.hasPriorityPrefix = hasPriorityPrefix
  }

  package func error(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.error, event, fields)
  }

  package func warning(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.warning, event, fields)
  }

  package func notice(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.notice, event, fields)
  }

  package func info(_ event: String, _ fields: KeyValuePairs<String, String> = [:]) {
    write(.info, event, fields)
  }

  package func debug(_ event: @autoclosure () -> String, _ fields: KeyValuePairs<String, String> = [:]) {
    guard threshold >= .debug else { return }
    write(.debug, event(), fields)
  }

  private func write(_ level: Level, _ event: String, _ fields: KeyValuePairs<String, String>) {
    guard level <= threshold else { return }
    var line = Log.line(level, event, fields)
    if hasPriorityPrefix { line = "<\(level.rawValue)>" + line }
    line += "\n"
    // One write a line: lines of two processes on one pipe stay whole.
    line.withUTF8 { bytes in _ = Glibc.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
  }

  /// The line without prefix and line end: `level=... event=... key=value ...`.
  static func line(_ level: Level, _ event: String, _ fields: KeyValuePairs<String, String>) -> String {
    var line = "level=\(level.word) event=\(quoted(event))"
    for (key, value) in fields { line += " \(key)=\(quoted(value))" }
    return line
  }

  /// A value as it stands in a line: bare when it is plain, else in quotes with escapes.
  static func quoted(_ value: String) -> String {
    let isPlain =
      !value.isEmpty
      && value.utf8.allSatisfy {
        $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=")
      }
    if isPlain { return value }
    return "\"" + escaped(value) + "\""
  }

  /// A text with quotes, backslashes and everything that may steer a terminal or end a line escaped.
  static func escaped(_ value: String) -> String {
    var text = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\t": text += "\\t"
      case "\r": text += "\\r"
      case _
      where scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value)
        || (0x2028...0x202e).contains(scalar.value) || (0x2066...0x2069).contains(scalar.value)
        || scalar.value == 0x200e || scalar.value == 0x200f || scalar.value == 0x061c:
        text += "\\u{" + String(scalar.value, radix: 16) + "}"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}
