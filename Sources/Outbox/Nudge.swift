import SQLite

/// A pending row of `nudge_outbox` under the eyes of the claim; it borrows the statement that reads it.
package struct Nudge: ~Copyable {
  /// The columns in the order in which every claim statement selects them.
  package enum Column: Int32, Sendable {
    case id, createdAt, kind, recipient, surface, deviceID, conversationID, title, subtitle, body
    case aps, data, collapseID, priority, notBeforeAt, expiresAt
    case activityID, attributesType, attributes, contentState, staleAt, dismissAt

    /// The name in the schema, for messages.
    package var name: String {
      switch self {
      case .id: "id"
      case .createdAt: "created_at"
      case .kind: "kind"
      case .recipient: "recipient"
      case .surface: "surface"
      case .deviceID: "device_id"
      case .conversationID: "conversation_id"
      case .title: "title"
      case .subtitle: "subtitle"
      case .body: "body"
      case .aps: "aps"
      case .data: "data"
      case .collapseID: "collapse_id"
      case .priority: "priority"
      case .notBeforeAt: "not_before_at"
      case .expiresAt: "expires_at"
      case .activityID: "activity_id"
      case .attributesType: "attributes_type"
      case .attributes: "attributes"
      case .contentState: "content_state"
      case .staleAt: "stale_at"
      case .dismissAt: "dismiss_at"
      }
    }
  }

  static let columns = """
    id, created_at, kind, recipient, surface, device_id, conversation_id, title, subtitle, body, \
    aps, data, collapse_id, priority, not_before_at, expires_at, \
    activity_id, attributes_type, attributes, content_state, stale_at, dismiss_at
    """

  let row: Statement
  /// The row's id.
  package let id: Int64

  init(_ row: Statement) {
    self.row = row
    id = row.integer(Column.id.rawValue)
  }

  /// Whether the column is NULL.
  package func isNull(_ column: Column) -> Bool { row.isNull(column.rawValue) }

  /// What is stored in the column, whatever it was declared as.
  package func storageClass(_ column: Column) -> Statement.StorageClass {
    row.storageClass(column.rawValue)
  }

  /// The column as an integer.
  package func integer(_ column: Column) -> Int64 { row.integer(column.rawValue) }

  /// The bytes of the column as stored, good while this row is under the claim's eyes.
  @_lifetime(borrow self)
  package func bytes(_ column: Column) -> Span<UInt8> { row.bytes(column.rawValue) }

  /// The same; nil for NULL.
  @_lifetime(borrow self)
  package func optionalBytes(_ column: Column) -> Span<UInt8>? { row.optionalBytes(column.rawValue) }

  /// The column as a string, nil for NULL.
  package func string(_ column: Column) -> String? { row.string(column.rawValue) }
}

/// The range in which a number is a time in milliseconds: 1973 to 5138. Seconds of our age lie below it.
let legalTimes: ClosedRange<Int64> = 100_000_000_000...100_000_000_000_000

extension Nudge {
  /// The time in a column; nil for NULL. Throws words when the value is no time.
  func time(_ column: Column) throws(Invalid) -> Int64? {
    switch row.storageClass(column.rawValue) {
    case .null: return nil
    case .integer:
      let value = row.integer(column.rawValue)
      if legalTimes.contains(value) { return value }
      let hint =
        (100_000_000..<100_000_000_000).contains(value)
        ? "looks like seconds, but times are milliseconds since 1970: multiply by 1000"
        : "is no time in milliseconds since 1970 (10^11 to 10^14)"
      throw Invalid("\(column.name) \(hint)")
    case .real, .text, .blob:
      throw Invalid("\(column.name) is not an integer: times are milliseconds since 1970")
    }
  }
}

/// Why a row can never be sent, in words for the `detail` column.
struct Invalid: Error {
  let words: String
  init(_ words: String) { self.words = words }
}
