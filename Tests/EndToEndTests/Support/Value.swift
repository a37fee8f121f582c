/// A value of SQLite as the tests write and read it.
enum Value: Equatable, Codable, Sendable, CustomStringConvertible {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  /// A BLOB, as hex digits.
  case blob(String)
  /// TEXT of exactly these bytes, as hex digits: NUL bytes and broken UTF-8. Never read, only written.
  case textBytes(String)

  private enum Key: String, CodingKey {
    case hex
    case textHex = "text_hex"
  }

  init(from decoder: any Decoder) throws {
    if let keyed = try? decoder.container(keyedBy: Key.self) {
      self = .blob(try keyed.decode(String.self, forKey: .hex))
      return
    }
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else if let number = try? container.decode(Double.self) {
      self = .real(number)
    } else {
      self = .text(try container.decode(String.self))
    }
  }

  func encode(to encoder: any Encoder) throws {
    switch self {
    case .blob(let hex):
      var keyed = encoder.container(keyedBy: Key.self)
      try keyed.encode(hex, forKey: .hex)
    case .textBytes(let hex):
      var keyed = encoder.container(keyedBy: Key.self)
      try keyed.encode(hex, forKey: .textHex)
    case .null:
      var container = encoder.singleValueContainer()
      try container.encodeNil()
    case .integer(let number):
      var container = encoder.singleValueContainer()
      try container.encode(number)
    case .real(let number):
      var container = encoder.singleValueContainer()
      try container.encode(number)
    case .text(let text):
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }

  var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
  var text: String? { if case .text(let text) = self { text } else { nil } }
  var isNull: Bool { self == .null }

  var description: String {
    switch self {
    case .null: "NULL"
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): text
    case .blob(let hex): "x'\(hex)'"
    case .textBytes(let hex): "cast(x'\(hex)' as text)"
    }
  }
}

extension Value: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByNilLiteral {
  init(stringLiteral value: String) { self = .text(value) }
  init(integerLiteral value: Int64) { self = .integer(value) }
  init(nilLiteral: ()) { self = .null }

  /// NULL for nothing.
  init(_ text: String?) { self = text.map(Value.text) ?? .null }
  init(_ number: Int64?) { self = number.map(Value.integer) ?? .null }
}

/// One row of a query, by column name.
struct Row: Equatable, CustomStringConvertible {
  let columns: [String]
  let values: [Value]

  subscript(_ column: String) -> Value {
    columns.firstIndex(of: column).map { values[$0] } ?? .text("no column \(column)")
  }

  var description: String {
    zip(columns, values).map { "\($0)=\($1)" }.joined(separator: " ")
  }
}
