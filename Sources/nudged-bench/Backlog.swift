import Glibc
import Outbox
import SQLite

/// Databases as a backend would fill them.
enum Backlog {
  static let topic = "com.example.chat"
  static let title = "Take your medication"
  static let body = "It is 08:00. Two tablets of Metformin with breakfast, please."
  static let aps = #"{"sound":"default","badge":1,"category":"NUDGE","interruption-level":"time-sensitive"}"#

  /// A token of 64 hex digits for the device of this number.
  static func token(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 64 - digits.count) + digits
  }

  /// Makes a database with `devices` phones, each of its own recipient, and `rows` pending alerts for them.
  static func make(at path: String, rows: Int, devices: Int) throws {
    // An empty file is an empty database; nothing in the library creates one.
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
    try Database(path: path).execute("pragma journal_mode = wal")
    _ = try Migration.apply(databaseAt: path)
    let database = try Database(path: path)
    try database.execute("pragma synchronous = off")
    try database.transaction { transaction throws(SQLiteError) in
      let register = try database.prepare(
        """
        insert into nudge_registration (device_id, recipient, topic, token, environment)
        values (?1, ?2, ?3, ?4, 'production')
        """)
      for number in 0..<devices {
        register.bind(1, "device-\(number)")
        register.bind(2, "user-\(number)")
        register.bind(3, topic)
        register.bind(4, token(number))
        try register.run()
      }
      // As after the first push to each: the environment is known.
      try database.execute("update nudge_token set proven_at = registered_at")
      let insert = try database.prepare(
        """
        insert into nudge_outbox (event, record_id, recipient, conversation_id, title, body, aps)
        values ('turn_finished', ?1, ?2, ?3, ?4, ?5, ?6)
        """)
      for number in 0..<rows {
        insert.bind(1, "message-\(number)")
        insert.bind(2, "user-\(number % devices)")
        insert.bind(3, "conversation-\(number % devices)")
        insert.bind(4, title)
        insert.bind(5, body)
        insert.bind(6, aps)
        try insert.run()
      }
    }
    try database.execute("pragma wal_checkpoint(truncate)")
  }

  /// How many attempts were accepted.
  static func accepted(at path: String) throws -> Int64 {
    try Database(path: path, access: .readOnly).integer(
      "select count(*) from nudge_attempt where outcome = 'accepted'") ?? 0
  }
}
