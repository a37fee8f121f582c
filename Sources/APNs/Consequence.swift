/// What an answer means beyond its own attempt: what the relay's pauses go by.
package struct Consequence: OptionSet, Sendable {
  package let rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// Host: it refuses our credentials (403).
  package static let credentialsRefused = Consequence(rawValue: 1 << 0)
  /// Every host of the key: provider tokens were renewed too often (429 TooManyProviderTokenUpdates).
  package static let tooManyProviderTokenUpdates = Consequence(rawValue: 1 << 1)
  /// Host: it fails (5xx, but not Shutdown).
  package static let serverError = Consequence(rawValue: 1 << 2)
  /// Connection: it is to be retired (503 Shutdown, and 400 IdleTimeout).
  package static let connectionClosing = Consequence(rawValue: 1 << 3)
  /// Device: it gets too many (429 TooManyRequests; a 429 of another name is taken for this one).
  package static let tooManyRequests = Consequence(rawValue: 1 << 4)
  /// Host and topic: the topic cannot be used (400 TopicDisallowed, BadTopic, MissingTopic).
  package static let topicRefused = Consequence(rawValue: 1 << 5)
  /// Connection: it and our credentials work (any answer other than 403, 429 TooManyProviderTokenUpdates
  /// or 5xx).
  package static let provesConnection = Consequence(rawValue: 1 << 6)
  /// Key: a new provider token is due (403 ExpiredProviderToken); comes with `credentialsRefused`.
  package static let expiredProviderToken = Consequence(rawValue: 1 << 7)
  /// Key: it is not for this host (403 BadEnvironmentKey…, both spellings); comes with
  /// `credentialsRefused`.
  package static let badEnvironmentKey = Consequence(rawValue: 1 << 8)
}
