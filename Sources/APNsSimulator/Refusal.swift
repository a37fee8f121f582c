import APNs

/// A push that is refused: with Apple's status and reason.
struct Refusal: Equatable, Sendable {
  let status: Int
  let reason: String
  /// Milliseconds since 1970; only with 410.
  let timestamp: Int64?

  /// The status is the one that APNs gives with the reason, by the table of reasons.
  init(_ reason: StaticString, timestamp: Int64? = nil) {
    self.reason = "\(reason)"
    status = Refusal.status(of: self.reason) ?? 400
    self.timestamp = timestamp
  }

  /// The status that APNs gives with a reason; nil for a reason that is none of Apple's.
  static func status(of reason: String) -> Int? { Reason.table.first { $0.name == reason }?.status }
}
