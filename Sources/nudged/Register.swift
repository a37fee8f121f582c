import Outbox
import Relay

/// `nudged register`: a device, and one of its tokens.
struct Register: Command {
  var database: String
  var row: [Backend.RegistrationColumn: Backend.Value]
  var registeredAt: Moment?

  /// A flag a column, in the order of the view.
  static let options = Backend.RegistrationColumn.allCases.map { column in
    Option(
      name: column.flag, value: column == .registeredAt ? "TIME" : "TEXT", help: column.help,
      initial: nil, commands: [.register], isSetting: false)
  }

  static func parse(_ given: Given) throws(Failure) -> Register {
    var register = Register(database: try Missing.requireDatabase(given), row: [:])
    for column in Backend.RegistrationColumn.allCases {
      guard let value = given[column.flag] else { continue }
      if column == .registeredAt {
        register.registeredAt = try value.moment()
      } else {
        register.row[column] = .text(value.text)
      }
    }
    return register
  }

  func run() throws(Failure) -> Outcome {
    var complete = row
    if let registeredAt {
      complete[.registeredAt] = .integer(registeredAt.resolved(now: Clock.system.wall()))
    }
    try Failure.wrap { () throws(DatabaseFault) in
      try Backend.register(complete, databaseAt: database)
    }
    return Outcome()
  }
}

extension Backend.RegistrationColumn {
  /// The column with dashes; the device's id is just `--device`, since it is the one thing always given.
  var flag: String {
    self == .deviceID ? "device" : rawValue.map { $0 == "_" ? "-" : String($0) }.joined()
  }

  var help: String {
    switch self {
    case .deviceID: "the app's installation id"
    case .recipient: "whose device it is; owner for a new one"
    case .surface: "what kind of device; phone for a new one"
    case .topic: "the app's bundle id"
    case .kind: "what the token is for: alert, activity_start, activity_update, ..."
    case .scope: "attributes type (activity_start) or activity id (activity_update)"
    case .token: "the token in hexadecimal digits"
    case .environment: "production or sandbox, if the app knows"
    case .registeredAt: "when the app got the token; now unless given"
    }
  }
}
