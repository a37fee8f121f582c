import APNs

/// What APNs looks at before it accepts a push: a specification to read from top to bottom.
///
/// The order itself is inference: Apple documents none. Reports say that a key of the wrong
/// environment hides BadDeviceToken, so the credentials come before all that is about the token; the rest
/// follows the mock server of pushy, with method and path first, as in any server.
struct Check: Sendable {
  /// Where a rule comes from.
  enum Basis: Sendable {
    /// Apple's documentation.
    case documented
    /// Apple's engineers in the developer forums, or reports of users.
    case reported
    /// Nobody says so; it is what fits.
    case inference
  }

  let reasons: [StaticString]
  let basis: Basis
  /// Whether the push fails the check.
  private let fails: @Sendable (Examination) -> Bool
  /// What is answered then; nil: the one reason.
  private let refusal: (@Sendable (Examination) -> Refusal?)?

  private init(_ reason: StaticString, _ basis: Basis, fails: @escaping @Sendable (Examination) -> Bool) {
    self.reasons = [reason]
    self.basis = basis
    self.fails = fails
    refusal = nil
  }

  private init(
    _ reasons: [StaticString], _ basis: Basis, _ refusal: @escaping @Sendable (Examination) -> Refusal?
  ) {
    self.reasons = reasons
    self.basis = basis
    fails = { refusal($0) != nil }
    self.refusal = refusal
  }

  /// What the first check that the push fails answers; nil when it fails none.
  static func first(of checks: [Check], toRefuse examination: Examination) -> Refusal? {
    // By index: a check that is only asked is not copied.
    for index in checks.indices where checks[index].fails(examination) {
      return checks[index].refusal.map { $0(examination) } ?? Refusal(checks[index].reasons[0])
    }
    return nil
  }

  /// What comes before the credentials.
  static let ofRequest: [Check] = [
    Check("MethodNotAllowed", .documented) { !$0.push.holds("POST", $0.push.method) },
    Check("BadPath", .documented) { $0.push.token == nil },
    // Which fields count is not documented: here any but `cookie`, which HTTP/2 may split.
    Check("DuplicateHeaders", .documented) { $0.push.hasDuplicates },
  ]

  // Here stand the credentials: see ``ConnectionCredentials``.

  /// What comes after the credentials.
  static let ofPush: [Check] = [
    // A UUID 8-4-4-4-12; upper case has been seen and is tolerated.
    Check("BadMessageId", .documented) { $0.push.id.map($0.isUUID) == false },
    Check("MissingTopic", .documented) { $0.push.topic?.isEmpty ?? true },
    // What a malformed topic is, is not documented: here whatever no bundle id has.
    Check("BadTopic", .documented) { $0.isTopicMalformed },
    Check("TopicDisallowed", .documented) { !$0.isTopicAllowed },
    // 64 bytes, not characters.
    Check("BadCollapseId", .documented) { ($0.push.collapseID?.count ?? 0) > CollapseID.mostBytes },
    // 10, 5 and 1 for all; that 10 is an error for background pushes is documented, its reason is not.
    Check("BadPriority", .documented) { $0.hasLegalPriority == false },
    Check("BadPriority", .inference) { $0.isUrgentBackground },
    // An absent type is let through: it is required only for watchOS.
    Check("InvalidPushType", .documented) { $0.isTypeUnknown },
    // UNIX seconds; anything but digits cannot be parsed.
    Check("BadExpirationDate", .documented) { $0.push.expiration.map($0.push.number) == .some(nil) },
    Check("MissingDeviceToken", .documented) { $0.token.isEmpty },
    // Any even length: Apple says to assume none.
    Check("BadDeviceToken", .documented) { $0.hasMalformedToken },
    // The token of the other environment.
    Check("BadDeviceToken", .reported) { !$0.isInEnvironment },
    // With the time at which the token was found dead. Whether this or the topic comes first is inference.
    Check(["Unregistered", "ExpiredToken"], .documented) { $0.death },
    // The token's topic, and by analogy its kind.
    Check("DeviceTokenNotForTopic", .documented) { !$0.isForTopic },
    Check("DeviceTokenNotForTopic", .inference) { !$0.hasSuffixOfType },
    Check("PayloadEmpty", .documented) { $0.push.bodyCount == 0 },
    // 4096 bytes, 5120 for voip.
    Check("PayloadTooLarge", .documented) { $0.isPayloadTooLarge },
  ]
}
