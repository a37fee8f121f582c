import Glibc
import Outbox
import SQLite

/// A database as a backend would fill it.
struct Backlog {
  static let topic = "com.example.chat"
  static let title = "Take your medication"
  static let body = "It is 08:00. Two tablets of Metformin with breakfast, please."
  static let aps = #"{"sound":"default","badge":1,"category":"NUDGE","interruption-level":"time-sensitive"}"#
  /// A token, and the payload of an alert as the worker composes it.
  static let token = String(repeating: "0", count: 64)
  static let payload =
    #"{"aps":{"alert":{"title":"\#(title)","body":"\#(body)"},"thread-id":"conversation-1",\#(aps.dropFirst().dropLast())},"conversation_id":"conversation-1"}"#

  /// What a settled row, or one that is due, has in common with the others. `i` counts, `:devices` is their number.
  private static let columns =
    "event, record_id, recipient, conversation_id, title, body, aps"
  private static func values(_ devices: Int) -> String {
    """
    'turn_finished', 'message-' || i, 'user-' || (i * 7919 % \(devices)),
    'conversation-' || (i * 7919 % \(devices)), '\(title)', '\(body)', '\(aps)'
    """
  }
  private static let now = "cast(strftime('%s', 'now') as integer) * 1000"

  let path: String
  private let devices: Int

  /// Makes a database with `devices` phones, each of its own recipient and with a token whose host is known.
  init(at path: String, devices: Int) throws {
    self.path = path
    self.devices = devices
    remove()
    // An empty file is an empty database; nothing in the library creates one.
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
    _ = try Migration.apply(databaseAt: path)
    try fill(
      counting(
        devices,
        """
        insert into nudge_registration (device_id, recipient, topic, token, environment)
        select 'device-' || i, 'user-' || i, '\(Self.topic)', printf('%064x', i), 'production' from n
        """), "update nudge_token set proven_at = registered_at")
  }

  /// Deletes the files.
  func remove() {
    for suffix in ["", "-wal", "-shm", "-journal", "-nudged.lock"] { unlink(path + suffix) }
  }

  /// Alerts that are due.
  func add(_ rows: Int) throws {
    try fill(
      counting(
        rows, "insert into nudge_outbox (\(Self.columns)) select \(Self.values(devices)) from n"))
  }

  /// Alerts that are due tomorrow.
  func addLater(_ rows: Int) throws {
    try fill(
      counting(
        rows,
        """
        insert into nudge_outbox (\(Self.columns), not_before_at)
        select \(Self.values(devices)), \(Self.now) + 86400000 + i from n
        """))
  }

  /// Settled alerts, each with the account of its one request.
  func addHistory(_ rows: Int) throws {
    // The trigger would make them pending.
    let trigger = try read("select sql from sqlite_master where name = 'nudge_outbox_insert'") ?? ""
    let last = try integer("select coalesce(max(id), 0) from nudge_outbox")
    try fill(
      "drop trigger nudge_outbox_insert",
      counting(
        rows,
        """
        insert into nudge_outbox (\(Self.columns), state, settled_at)
        select \(Self.values(devices)), 'attempted', \(Self.now) from n
        """), trigger,
      """
      insert into nudge_attempt (nudge_id, device_id, token_kind, token_hash, environment, push_type, topic, apns_id,
        started_at, finished_at, outcome, status)
      select id, 'device-' || (id % \(devices)), 'alert', printf('%016x', id % \(devices)), 'production', 'alert',
        '\(Self.topic)', printf('%08x-0000-4000-8000-%012x', id, id), created_at, settled_at, 'accepted', 200
      from nudge_outbox where id > \(last)
      """,
      "update nudge_worker set low_water_attempt_id = (select max(id) + 1 from nudge_attempt)")
  }

  /// Makes settled alerts due again, so many and evenly spread over the whole history, as if never sent.
  func scatter(_ rows: Int) throws {
    let stride = max(1, Int(try integer("select count(*) from nudge_outbox")) / rows)
    let chosen =
      "(with recursive n(i) as (values (1) union all select i + 1 from n where i < \(rows)) select i * \(stride) from n)"
    try fill(
      "delete from nudge_attempt where nudge_id in \(chosen)",
      """
      update nudge_outbox set state = 'pending', settled_at = null, detail = null, created_at = \(Self.now)
      where id in \(chosen)
      """)
  }

  /// Rows that are to be sent now.
  func due() throws -> Int64 {
    try integer("select count(*) from nudge_outbox where state = 'pending' and not_before_at is null")
  }

  func lastAttempt() throws -> Int64 { try integer("select coalesce(max(id), 0) from nudge_attempt") }

  /// How many of the attempts behind one were accepted.
  func accepted(after attempt: Int64) throws -> Int64 {
    try integer("select count(*) from nudge_attempt where id > \(attempt) and outcome = 'accepted'")
  }

  // MARK: SQL

  /// A statement that reads the numbers from 0 up to `count` as `i` from `n`.
  private func counting(_ count: Int, _ statement: String) -> String {
    "with recursive n(i) as (values (0) union all select i + 1 from n where i + 1 < \(count)) \(statement)"
  }

  /// Writes without any journal, which is fastest, and leaves the file in WAL mode and on disk.
  private func fill(_ statements: String...) throws {
    let database = try Database(path: path)
    for pragma in ["journal_mode = off", "synchronous = off", "cache_size = -65536"] {
      try database.execute("pragma \(pragma)")
    }
    try database.transaction { (_) throws(SQLiteError) in
      for statement in statements { try database.execute(statement) }
    }
    try database.execute("pragma journal_mode = wal")
    let descriptor = open(path, O_RDWR | O_CLOEXEC)
    fsync(descriptor)
    close(descriptor)
  }

  private func integer(_ sql: String) throws -> Int64 { try Database(path: path).integer(sql) ?? 0 }

  private func read(_ sql: String) throws -> String? { try Database(path: path).text(sql) }
}
