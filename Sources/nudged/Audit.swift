import Glibc
import Outbox
import Relay

/// `nudged audit`: what became of nudges, as a table for people or as JSON lines.
struct Audit: Command {
  var database: String
  var since: Moment
  /// `since` of the filter is filled in when the command runs.
  var filter: AuditLine.Filter
  var json: Bool

  static let options = [
    Option(
      name: "since", value: "TIME", help: "how far to look back", initial: "24h; all for --record",
      commands: [.audit],
      isSetting: false),
    Option(
      name: "recipient", value: "TEXT", help: "only nudges to this recipient", initial: nil,
      commands: [.audit], isSetting: false),
    Option(
      name: "record", value: "TEXT", help: "only nudges about this record", initial: nil,
      commands: [.audit], isSetting: false),
    Option(
      name: "device", value: "TEXT", help: "only what went to this device, or was meant for it", initial: nil,
      commands: [.audit], isSetting: false),
    Option(
      name: "json", value: nil, help: "JSON lines with all columns of nudge_audit", initial: nil,
      commands: [.audit], isSetting: false),
  ]

  static func parse(_ given: Given) throws(Failure) -> Audit {
    Audit(
      database: try Missing.requireDatabase(given),
      since: try given["since"]?.pastMoment()
        ?? (given["record"] == nil ? .fromNow(.seconds(-24 * 3600)) : .absolute(0)),
      filter: AuditLine.Filter(
        since: 0, recipient: given["recipient"]?.text, record: given["record"]?.text,
        device: given["device"]?.text),
      json: given.has("json"))
  }

  func run() throws(Failure) -> Outcome {
    let now = Clock.system.wall()
    var filter = filter
    filter.since = try since.resolvedInPast(now: now, flag: "--since")
    let lines = try Failure.wrap { () throws(DatabaseFault) in
      try AuditLine.read(filter, databaseAt: database)
    }
    if json { return Outcome(text: lines.map { $0.json + "\n" }.joined()) }
    guard !lines.isEmpty else { return Outcome(text: nothing(filter)) }
    let words = AuditWords(now: now, worker: WorkerLock.holder(databasePath: database))
    return Outcome(text: Audit.table(lines, words, inColour: Terminal.takesColour))
  }

  /// What to ask next when there is no line.
  private func nothing(_ filter: AuditLine.Filter) -> String {
    let asked = [
      filter.record.map { "record \($0)" }, filter.recipient.map { "recipient \($0)" },
      filter.device.map { "device \($0)" },
    ].compactMap(\.self)
    let since = filter.since > 0 ? " since \(WallTime.text(filter.since))" : ""
    let about = asked.isEmpty ? "" : " for " + asked.joined(separator: ", ")
    return """
      \(TextTable.printable("nothing in \(database)\(since)\(about)"))
      Further back: --since 30d (settled rows are kept for --retain). Who is registered: `nudged devices`.

      """
  }

  static func table(_ lines: [AuditLine], _ words: AuditWords, inColour: Bool) -> String {
    var table = TextTable(header: ["TIME", "NUDGE", "EVENT", "RECORD", "DEVICE", "HOST", "WHAT HAPPENED"])
    for line in lines {
      let (what, tone) = words.what(line)
      table.append(
        [
          line.text("time") ?? line.text("created") ?? "", line.text("nudge_id") ?? "",
          line.text("event") ?? "", line.text("record_id") ?? "", line.device,
          line.text("environment") ?? "", what,
        ], inColour ? tone : nil)
    }
    return table.text
  }
}

extension AuditLine {
  /// A column for people; nil for NULL.
  func text(_ column: String) -> String? {
    switch self[column] {
    case .null: nil
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): text
    }
  }

  /// A column that holds a number, in milliseconds or not; nil for anything else.
  func integer(_ column: String) -> Int64? {
    if case .integer(let number) = self[column] { number } else { nil }
  }

  /// The device, or whom the nudge was for in brackets.
  fileprivate var device: String {
    text("device_id") ?? "(\(text("recipient") ?? "owner"): \(text("surface") ?? "phone"))"
  }

  /// One object, a member for each column.
  var json: String {
    var text = ""
    for (name, value) in zip(columns, values) {
      text += text.isEmpty ? "{" : ","
      JSONText.append(name, to: &text)
      text += ":"
      switch value {
      case .null: text += "null"
      case .integer(let number): text += "\(number)"
      // JSON has no infinity; read as a number, this is one. SQLite keeps no NaN.
      case .real(let number): text += number.isFinite ? "\(number)" : number < 0 ? "-9e999" : "9e999"
      case .text(let string): JSONText.append(string, to: &text)
      }
    }
    return text + "}"
  }
}

/// Strings of JSON (RFC 8259, section 7).
enum JSONText {
  /// Appends `string` as a JSON string; what would move a terminal's cursor is escaped too.
  static func append(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      if scalar == "\"" || scalar == "\\" {
        text += "\\"
        text.unicodeScalars.append(scalar)
      } else if TextTable.isPrintable(scalar) {
        text.unicodeScalars.append(scalar)
      } else {
        for unit in UTF16.encode(scalar) ?? UTF16.encodedReplacementCharacter {
          let digits = String(unit, radix: 16)
          text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
      }
    }
    text += "\""
  }
}
