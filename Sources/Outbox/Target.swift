import SQLite

/// A device with the token that a nudge would be sent to, as the claim has read them.
package struct Target {
  static let columns = """
    d.device_id, d.topic, t.id, t.token, t.environment, t.proven_at is not null, t.registered_at, \
    t.rejected_at is not null
    """
  /// Of the statements for a Live Activity's update or end, whose targets may have no token.
  static let activityColumns = """
    \(columns), d.recipient, d.surface, a.started_at, a.ended_at, a.last_nudge_id, a.last_turn_id
    """

  private var texts = Texts()
  /// Whether the installation id is a BLOB, written past the view: those sort behind every text.
  private(set) var isBlob = false
  /// The row of `nudge_token`.
  package private(set) var tokenID: Int64 = 0
  /// The environment that is known or named for the token.
  package private(set) var environment: String?
  /// Whether that environment was learned from an accepted push.
  package private(set) var isProven = false
  /// When the token was registered last, in milliseconds.
  package private(set) var registeredAt: Int64 = 0
  /// Whether the token is set aside: every host has refused it since its registration.
  private(set) var isSetAside = false
  /// Why nothing can ever be sent to it, in words.
  private(set) var fault: String?
  /// Only where the nudge is a Live Activity's update or end.
  private(set) var activity = Activity()

  /// What `nudge_activity` remembers of the activity on this device.
  struct Activity {
    var startedAt: Int64?
    var endedAt: Int64?
    /// The newest nudge that was attempted there, and the newest start or end; 0 for none.
    var lastNudge: Int64 = 0
    var lastTurn: Int64 = 0
  }

  /// The app's installation id.
  @_lifetime(borrow self)
  package func deviceID() -> Span<UInt8> { texts[0] }
  /// The bundle id that the device registered; empty when it has none.
  @_lifetime(borrow self)
  package func topic() -> Span<UInt8> { texts[1] }
  /// The token as stored: hex digits if the registration wrote it.
  @_lifetime(borrow self)
  package func token() -> Span<UInt8> { texts[2] }
  /// What the attempt keeps of the token.
  @_lifetime(borrow self)
  func tokenHash() -> Span<UInt8> { texts[3] }
  /// Whose device it is; only where the nudge is a Live Activity's update or end, as the surface is.
  @_lifetime(borrow self)
  func recipient() -> Span<UInt8> { texts[4] }
  @_lifetime(borrow self)
  func surface() -> Span<UInt8> { texts[5] }

  /// Reads a row, in the memory at hand.
  mutating func read(_ row: Statement, ofActivity: Bool, by dispatcher: any Dispatcher) {
    texts.removeAll()
    isBlob = row.storageClass(0) == .blob
    texts.append(row.bytes(0))
    texts.append(row.bytes(1))
    texts.append(row.bytes(3))
    texts.append { dispatcher.hash(row.bytes(3), into: &$0) }
    tokenID = row.integer(2)
    environment = row.string(4)
    isProven = row.integer(5) != 0
    registeredAt = row.integer(6)
    isSetAside = row.integer(7) != 0
    fault = dispatcher.fault(of: self)
    guard ofActivity else { return }
    texts.append(row.bytes(8))
    texts.append(row.bytes(9))
    activity = Activity(
      startedAt: row.optionalInteger(10), endedAt: row.optionalInteger(11), lastNudge: row.integer(12),
      lastTurn: row.integer(13))
  }
}
