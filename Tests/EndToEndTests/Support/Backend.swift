import Foundation
import Glibc

/// The chat backend of a test: plain Python `sqlite3` in a process of its own, which knows nothing of nudged but the
/// tables. Every statement here is the SQL that a backend would run.
final class Backend {
  let database: String
  private let child: Child
  private let answers: Int32
  private var buffer: [UInt8] = []

  private struct Command: Encodable {
    var sql: String?
    var arguments: [Value]?
    var script: String?
    var transaction: [Statement]?
  }

  struct Statement: Encodable {
    let sql: String
    let arguments: [Value]

    init(_ sql: String, _ arguments: [Value] = []) {
      self.sql = sql
      self.arguments = arguments
    }

    func encode(to encoder: any Encoder) throws {
      var list = encoder.unkeyedContainer()
      try list.encode(sql)
      try list.encode(arguments)
    }
  }

  private struct Answer: Decodable {
    var rows: [[Value]]?
    var columns: [String]?
    var lastID: Int64?
    var beforeCommitMs: Double?
    var atMs: Double
    var error: String?

    private enum CodingKeys: String, CodingKey {
      case rows, columns, error
      case lastID = "last_id"
      case beforeCommitMs = "before_commit_ms"
      case atMs = "at_ms"
    }
  }

  init(database: String, folder: String) throws {
    self.database = database
    let ends = try Pipe.open()
    defer { close(ends.write) }
    answers = ends.read
    child = try Child(
      "backend-\(UUID().uuidString.prefix(4))", [Paths.python, "\(Paths.peers)/backend.py", database],
      folder: folder, outputDescriptor: ends.write)
  }

  deinit {
    end()
  }

  func end() {
    child.kill()
  }

  /// Runs one statement and returns its rows.
  @discardableResult
  func run(_ sql: String, _ arguments: [Value] = []) throws -> [Row] {
    let answer = try ask(Command(sql: sql, arguments: arguments))
    return (answer.rows ?? []).map { Row(columns: answer.columns ?? [], values: $0) }
  }

  /// Runs several statements without arguments.
  func script(_ sql: String) throws {
    _ = try ask(Command(script: sql))
  }

  /// Commits `statements` in one transaction and returns the wall time in milliseconds just before and just after
  /// COMMIT.
  @discardableResult
  func transaction(_ statements: [Statement]) throws -> (before: Double, after: Double) {
    let answer = try ask(Command(transaction: statements))
    return (answer.beforeCommitMs ?? 0, answer.atMs)
  }

  func value(_ sql: String, _ arguments: [Value] = []) throws -> Value {
    try run(sql, arguments).first?.values.first ?? .null
  }

  func count(_ sql: String, _ arguments: [Value] = []) throws -> Int {
    Int(try value(sql, arguments).integer ?? -1)
  }

  /// Inserts a row into `table` and returns its rowid.
  @discardableResult
  func insert(_ table: String, _ columns: KeyValuePairs<String, Value>, or clause: String = "") throws
    -> Int64
  {
    try insert(table, Array(columns), or: clause)
  }

  @discardableResult
  func insert(_ table: String, _ columns: [(key: String, value: Value)], or clause: String = "") throws
    -> Int64
  {
    let names = columns.map(\.key).joined(separator: ", ")
    let marks = columns.map { _ in "?" }.joined(separator: ", ")
    let sql = "insert \(clause) into \(table) (\(names)) values (\(marks))"
    return try ask(Command(sql: sql, arguments: columns.map(\.value))).lastID ?? 0
  }

  private func ask(_ command: Command) throws -> Answer {
    try child.write(line: String(decoding: JSONEncoder().encode(command), as: UTF8.self))
    let answer = try JSONDecoder().decode(Answer.self, from: Data(readLine()))
    if let error = answer.error { throw Failure("the backend's SQL failed: \(error)") }
    return answer
  }

  private func readLine() throws -> [UInt8] {
    while true {
      if let end = buffer.firstIndex(of: 0x0a) {
        defer { buffer.removeFirst(end + 1) }
        return Array(buffer[..<end])
      }
      var waiting = pollfd(fd: answers, events: Int16(POLLIN), revents: 0)
      guard poll(&waiting, 1, 30_000) > 0 else { throw Failure("the backend is silent: \(child.errors)") }
      var chunk = [UInt8](repeating: 0, count: 65536)
      let count = read(answers, &chunk, chunk.count)
      guard count > 0 else { throw Failure("the backend ended: \(child.errors)") }
      buffer += chunk[..<count]
    }
  }
}
