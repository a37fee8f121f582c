/// The reasons that APNs gives for refusing a push, each once (Apple, "Handling notification responses from APNs").
///
/// The table informs; it is not a gate. A reason that is not in it, or that comes with another status
/// than Apple's, is classified by its status alone, and its string is kept as it came.
package struct Reason: Sendable {
  /// Whose fault it is.
  package enum Class: Sendable {
    /// Ours: a defect or a setting of the sender.
    case request
    /// Ours: the topic cannot be used with this key.
    case topic
    /// Ours: the credentials.
    case credentials
    /// The device token: it belongs to the other host, or is none.
    case otherHost
    /// The device token: it is dead.
    case deadToken
    /// The device: too much, too fast.
    case deviceThrottle
    /// The key: too many provider tokens.
    case keyThrottle
    /// The connection: it is being closed.
    case connection
    /// APNs itself.
    case server
  }

  /// The status it comes with.
  package let status: Int
  /// The string as APNs spells it.
  package let name: String
  /// Whose fault it is.
  package let `class`: Class

  private init(_ status: Int, _ name: String, _ class: Class) {
    self.status = status
    self.name = name
    self.class = `class`
  }

  /// The table.
  package static let table: [Reason] = [
    Reason(400, "BadCollapseId", .request),
    Reason(400, "BadDeviceToken", .otherHost),
    Reason(400, "BadExpirationDate", .request),
    Reason(400, "BadMessageId", .request),
    Reason(400, "BadPriority", .request),
    Reason(400, "BadTopic", .topic),
    Reason(400, "DeviceTokenNotForTopic", .request),
    Reason(400, "DuplicateHeaders", .request),
    Reason(400, "IdleTimeout", .connection),
    Reason(400, "InvalidPushType", .request),
    Reason(400, "MissingDeviceToken", .request),
    Reason(400, "MissingTopic", .topic),
    Reason(400, "PayloadEmpty", .request),
    Reason(400, "TopicDisallowed", .topic),
    Reason(403, "BadCertificate", .credentials),
    Reason(403, "BadCertificateEnvironment", .credentials),
    Reason(403, "BadEnvironmentKeyIdInToken", .credentials),
    Reason(403, "BadEnvironmentKeyInToken", .credentials),
    Reason(403, "ExpiredProviderToken", .credentials),
    Reason(403, "Forbidden", .credentials),
    Reason(403, "InvalidProviderToken", .credentials),
    Reason(403, "MissingProviderToken", .credentials),
    Reason(403, "UnrelatedKeyIdInToken", .credentials),
    Reason(404, "BadPath", .request),
    Reason(405, "MethodNotAllowed", .request),
    Reason(410, "ExpiredToken", .deadToken),
    Reason(410, "Unregistered", .deadToken),
    Reason(413, "PayloadTooLarge", .request),
    Reason(429, "TooManyProviderTokenUpdates", .keyThrottle),
    Reason(429, "TooManyRequests", .deviceThrottle),
    Reason(500, "InternalServerError", .server),
    Reason(503, "ServiceUnavailable", .server),
    Reason(503, "Shutdown", .connection),
  ]

  /// The row of the table for an answer; nil for a reason or a pairing that Apple does not document.
  package static func known(status: Int, reason: String?) -> Reason? {
    guard let reason else { return nil }
    return table.first { $0.status == status && $0.name == reason }
  }
}
