import Foundation
import Outbox
import SQLite

/// Any values into `nudge_registration`: each is refused with an error that names the column, or merged into rows
/// that keep every rule of the tables; one token never stands under two devices.
func fuzzRegistration(_ input: Input) {
  var input = input
  let database = RegistrationDatabase.shared
  do {
    try database.execute("begin")
    for _ in 0..<4 where !input.isEmpty { try database.register(&input) }
    try database.check()
    try database.execute("rollback")
  } catch {
    fatalError("\(error)")
  }
}

private final class RegistrationDatabase {
  nonisolated(unsafe) static let shared = RegistrationDatabase()

  private let database: Database
  private let insert: Statement
  private let broken: Statement
  private let shared: Statement

  private static let columns = [
    "device_id", "recipient", "surface", "topic", "kind", "scope", "token", "environment", "registered_at",
  ]

  private init() {
    do {
      // `Database` creates no file; an empty one is an empty database.
      let path = "/dev/shm/nudged-fuzz-\(ProcessInfo.processInfo.processIdentifier).db"
      _ = FileManager.default.createFile(atPath: path, contents: nil)
      _ = try Migration.apply(databaseAt: path)
      database = try Database(path: path)
      unlink(path)
      try database.execute("pragma journal_mode = memory; pragma synchronous = off")
      // A value by its storage class: the tables are written by drivers of every kind.
      let value = { (index: Int) in
        "case ?\(2 * index + 1) when 0 then null when 1 then ?\(2 * index + 2) "
          + "when 2 then cast(?\(2 * index + 2) as blob) when 3 then cast(?\(2 * index + 2) as integer) "
          + "else cast(?\(2 * index + 2) as real) end"
      }
      insert = try database.prepare(
        "insert into nudge_registration (\(Self.columns.joined(separator: ", "))) values ("
          + Self.columns.indices.map(value).joined(separator: ", ") + ")")
      broken = try database.prepare(
        """
        select 'token ' || quote(token) from nudge_token
          where typeof(token) <> 'text' or length(cast(token as blob)) not between 2 and 400
            or length(cast(token as blob)) % 2 or token glob '*[^0-9a-f]*' or instr(token, char(0))
        union all select 'place ' || quote(kind) || quote(scope) from nudge_token
          where (scope <> '') <> (kind in ('activity_start', 'activity_update'))
            or typeof(scope) <> 'text' or typeof(kind) <> 'text'
        union all select 'environment ' || quote(environment) from nudge_token
          where environment not in ('production', 'sandbox')
        union all select 'registered_at ' || quote(registered_at) from nudge_token
          where typeof(registered_at) <> 'integer' or registered_at not between 100000000000 and 100000000000000
        union all select 'orphan ' || quote(device_id) from nudge_token
          where device_id not in (select device_id from nudge_device)
        union all select 'device ' || quote(device_id) from nudge_device
          where typeof(device_id) <> 'text' or device_id = '' or instr(device_id, char(0))
            or typeof(recipient) <> 'text' or recipient = '' or typeof(surface) <> 'text' or surface in ('', '*')
            or topic glob '*[^!-~]*' or topic = ''
        """)
      shared = try database.prepare(
        "select token from nudge_token group by token having count(distinct device_id) > 1")
    } catch {
      fatalError("\(error)")
    }
  }

  func execute(_ sql: String) throws { try database.execute(sql) }

  /// A word that the schema knows, or anything at all.
  func register(_ input: inout Input) throws {
    for index in Self.columns.indices {
      let choice = input.byte()
      let word = Self.words[index]
      let bytes =
        choice & 1 == 0 ? Array(word[Int(choice >> 4) % word.count].utf8) : input.bytes(Int(input.byte()))
      insert.bind(Int32(2 * index + 1), Int64(choice >> 1 & 7))
      insert.bind(Int32(2 * index + 2), bytes)
    }
    if let error = attempt() {
      require(error.primaryCode == 19, "not a constraint: \(error)")
      require(
        Self.columns.contains { error.message.hasPrefix("nudge_registration.\($0): ") },
        "names no column: \(error)")
    }
  }

  private func attempt() -> SQLiteError? {
    do {
      try insert.run()
      return nil
    } catch {
      return error
    }
  }

  func check() throws {
    for statement in [broken, shared] {
      if try statement.step() { fatalError(statement.string(0) ?? "NULL") }
    }
  }

  private static let words = [
    ["phone-1", "phone-2"], ["owner", "guest"], ["phone", "*"],
    ["app.example", "app.example.push-type.voip"],
    ["alert", "activity_start", "activity_update", "voip"], ["", "Ride", "activity 1"],
    ["c0ffee01", "<C0FF EE01>", "c0ffee02", "abc"], ["production", "sandbox", "staging"],
    ["1790000000000", "1790000000", "-1"],
  ]
}
