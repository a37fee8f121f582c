import APNs
import OpenSSL

/// The keys whose provider tokens are accepted, and the team they belong to.
struct Credentials {
  let teamID: String
  let keys: [String: VerifyingKey]

  /// How far `iat` may be from now (documented: one hour).
  static let longestAge: Int64 = 3_600
  /// The shortest time between two tokens on one connection (documented: 20 minutes).
  static let leastInterval = Duration.seconds(1_200)

  /// Why a token is refused, nil when it is good.
  ///
  /// - documented: `InvalidProviderToken` for a token or signature that cannot be verified, and
  ///   `ExpiredProviderToken` for an `iat` of more than an hour ago.
  /// - inference: a token of the far future is invalid, not expired; no source has a rule for it.
  func objection(to token: ProviderTokenText, wallSeconds: Int64) -> StaticString? {
    guard token.teamID == teamID, let key = keys[token.keyID],
      key.verifies(token.signature, over: token.signed)
    else { return "InvalidProviderToken" }
    return Self.objection(toIssue: token.issuedAt, wallSeconds: wallSeconds)
  }

  static func objection(toIssue issuedAt: Int64, wallSeconds: Int64) -> StaticString? {
    let (age, overflow) = wallSeconds.subtractingReportingOverflow(issuedAt)
    if overflow || age < -longestAge { return "InvalidProviderToken" }
    return age > longestAge ? "ExpiredProviderToken" : nil
  }
}

/// What a connection remembers of the provider tokens that it has seen.
struct ConnectionCredentials {
  /// The value of `authorization` that was accepted last.
  private var value: [UInt8] = []
  private var issuedAt: Int64 = 0
  private var acceptedAt: ContinuousClock.Instant?
  private var blockedUntil: ContinuousClock.Instant?

  /// Whether any request carried a good token: the stream limit is raised then.
  var isProven: Bool { acceptedAt != nil }

  /// Why a request is refused for its token, nil when it is not.
  ///
  /// - documented: `MissingProviderToken`; a second new token on a connection within 20 minutes is
  ///   `TooManyProviderTokenUpdates`.
  /// - an Apple engineer (forum 675879): from then on the connection is unusable until the time has passed,
  ///   also with the old token.
  /// - inference: a value that does not begin with `bearer` is an invalid token, not a missing one.
  mutating func objection(
    to push: Push, _ credentials: Credentials, wallSeconds: Int64, now: ContinuousClock.Instant
  ) -> StaticString? {
    guard let field = push.authorization else { return "MissingProviderToken" }
    if let blockedUntil, now < blockedUntil { return "TooManyProviderTokenUpdates" }
    if push.holds(value, field) {
      return Credentials.objection(toIssue: issuedAt, wallSeconds: wallSeconds)
    }
    let bytes = push.bytes[field]
    let scheme = bytes.prefix(7).map { (65...90).contains($0) ? $0 | 0x20 : $0 }
    guard scheme == Array("bearer ".utf8), let token = ProviderTokenText(bytes.dropFirst(7)) else {
      return "InvalidProviderToken"
    }
    if let objection = credentials.objection(to: token, wallSeconds: wallSeconds) { return objection }
    if let acceptedAt, now - acceptedAt < Credentials.leastInterval {
      blockedUntil = acceptedAt + Credentials.leastInterval
      return "TooManyProviderTokenUpdates"
    }
    value = Array(bytes)
    issuedAt = token.issuedAt
    acceptedAt = now
    return nil
  }
}
