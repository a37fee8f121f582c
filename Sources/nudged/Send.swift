import Outbox
import Relay

/// `nudged send`: one row for the outbox.
struct Send: Command {
  var database: String
  /// What was given as text or number.
  var row: [Backend.OutboxColumn: Backend.Value]
  /// What was given as a time.
  var times: [Backend.OutboxColumn: Moment]

  /// A flag a column, in the order of the table.
  static let options = Backend.OutboxColumn.allCases.map { column in
    Option(
      name: column.flag, value: column.form.word, help: column.help, initial: nil,
      commands: [.send], isSetting: false)
  }

  static func parse(_ given: Given) throws(Failure) -> Send {
    var row: [Backend.OutboxColumn: Backend.Value] = [:]
    var times: [Backend.OutboxColumn: Moment] = [:]
    for column in Backend.OutboxColumn.allCases {
      guard let value = given[column.flag] else { continue }
      switch column.form {
      case .text, .json: row[column] = .text(value.text)
      case .number: row[column] = .integer(Int64(try value.integer(in: Int.min...Int.max)))
      case .flag: row[column] = .integer(1)
      case .time: times[column] = try value.moment()
      }
    }
    return Send(database: try Missing.requireDatabase(given), row: row, times: times)
  }

  func run() throws(Failure) -> Outcome {
    let now = Clock.system.wall()
    let complete = row.merging(times.mapValues { .integer($0.resolved(now: now)) }) { $1 }
    let id = try Failure.wrap { () throws(DatabaseFault) in
      try Backend.send(complete, databaseAt: database)
    }
    return Outcome(text: "\(id)\n")
  }
}

extension Backend.OutboxColumn {
  /// How the value of a column is given.
  enum Form {
    case text, json, number, flag, time

    var word: String? {
      switch self {
      case .text: "TEXT"
      case .json: "JSON"
      case .number: "N"
      case .flag: nil
      case .time: "TIME"
      }
    }
  }

  /// The column with dashes.
  var flag: String { rawValue.map { $0 == "_" ? "-" : String($0) }.joined() }

  var form: Form {
    switch self {
    case .aps, .data, .attributes, .contentState: .json
    case .priority: .number
    case .pushRequested: .flag
    case .staleAt, .dismissAt, .notBeforeAt, .expiresAt: .time
    default: .text
    }
  }

  var help: String {
    switch self {
    case .kind: "alert (unless given), background, activity_start, activity_update, activity_end, ..."
    case .event: "why: turn_finished, job_finished, failure, or a word of your own"
    case .recordID: "the record that this is about; kept for audits, not sent"
    case .recipient: "whose devices; owner unless given"
    case .surface: "which of them; phone unless given, * for all"
    case .deviceID: "one device only"
    case .conversationID: "sent as thread-id and as conversation_id"
    case .title: "first line of the alert"
    case .subtitle: "second line of the alert"
    case .body: "text of the alert"
    case .aps: "object with further members of aps (sound, badge, ...)"
    case .data: "object with further top-level members"
    case .activityID: "your own id of the Live Activity"
    case .attributesType: "start: name of its attributes type in the app"
    case .attributes: "start: object with the members of that type, your id among them"
    case .contentState: "object with the members of its ContentState"
    case .staleAt: "when that state is out of date"
    case .dismissAt: "end: when the card goes from the screen"
    case .collapseID: "a later nudge with the same id replaces this one on the phone"
    case .priority: "10 at once, 5 when it suits the phone, 1 lowest"
    case .deliveredBy: "job_finished only: heartbeat lets it fire"
    case .pushRequested: "job_finished only: it was asked for, so it fires"
    case .notBeforeAt: "do not send before"
    case .expiresAt: "do not send after"
    case .dedupeKey: "a second nudge with the same key is suppressed"
    }
  }
}
