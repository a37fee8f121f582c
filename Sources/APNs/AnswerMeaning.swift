extension Answer {
  /// What the status, and for 400 the reason, says about the attempt.
  package enum Meaning: Sendable, CaseIterable {
    /// 200: Apple has taken the push, which does not mean that it was delivered.
    case accepted
    /// A final refusal.
    case rejected
    /// 410: the token is dead.
    case deadToken
    /// 400 BadDeviceToken: malformed, or a token of the other environment.
    case wrongHost
    /// There was no answer.
    case silence
  }

  /// 410 is a dead token whatever the reason says; an unknown status is a refusal, never an acceptance.
  package var meaning: Meaning {
    switch status {
    case nil: .silence
    case 200: .accepted
    case 410: .deadToken
    case 400 where reason == "BadDeviceToken": .wrongHost
    default: .rejected
    }
  }

  /// What the answer means beyond its attempt; nothing if there was none.
  package var consequences: Consequence {
    guard let status else { return [] }
    if status == 200 { return .provesConnection }
    let known = Reason.known(status: status, reason: reason)?.class
    switch status {
    case 403:
      var result: Consequence = .credentialsRefused
      if reason == "ExpiredProviderToken" { result.insert(.expiredProviderToken) }
      if reason == "BadEnvironmentKeyInToken" || reason == "BadEnvironmentKeyIdInToken" {
        result.insert(.badEnvironmentKey)
      }
      return result
    case 429:
      return known == .keyThrottle
        ? .tooManyProviderTokenUpdates : [.tooManyRequests, .provesConnection]
    case 500...599:
      return known == .connection ? .connectionClosing : .serverError
    default:
      switch known {
      case .topic: return [.topicRefused, .provesConnection]
      case .connection: return [.connectionClosing, .provesConnection]
      default: return .provesConnection
      }
    }
  }
}
