import OpenSSL

/// The provider token of one key: an ES256 JWT (RFC 7519, RFC 7518 section 3.4), minted at first use and
/// kept until it has to be renewed.
///
/// Apple wants a token renewed not more often than every 20 minutes and at least every 60 ("Establishing a
/// token-based connection to APNs").
/// One value serves all hosts, topics and connections of its key. It is renewed when the next caller
/// asks and
/// - it is 50 minutes old by the monotonic clock, which counts time spent suspended;
/// - or its `iat` is more than 60 s in the future of the wall clock: that was set back, and APNs refuses
///   the token;
/// - or its `iat` is more than 55 minutes in the past of the wall clock and the last mint is 20 minutes
///   ago by the monotonic one: the wall clock was set forward, perhaps to the right time. The 20 minutes
///   keep Apple's rule when it was not; should APNs refuse the old token meanwhile, `expired` mints at
///   once;
/// - or APNs has called it expired, see `expired`.
package final class ProviderToken {
  /// A token to send with a request.
  package struct Current: Sendable {
    /// The value of `authorization`: `bearer ` and the JWT. Shared, not copied.
    package let headerValue: [UInt8]
    /// Counts the mints from 1, those of the keys before this one included.
    package let generation: Int
  }

  private struct Minted {
    let current: Current
    let issuedAtSeconds: Int64
    let mintedAt: ContinuousClock.Instant
  }

  private static let renewalAge = Duration.seconds(50 * 60)
  private static let leastAge = Duration.seconds(20 * 60)
  private static let futureSeconds: Int64 = 60
  private static let pastSeconds: Int64 = 55 * 60

  /// The names in the token.
  package let identity: KeyIdentity
  private let key: SigningKey
  /// How often the keys before this one were minted with: a generation names one token, whichever key signed it.
  private let inherited: Int
  private var minted: Minted?
  private var lastForcedAt: ContinuousClock.Instant?
  private var isExpired = false

  /// Takes a key into use; nothing is signed yet.
  ///
  /// - Parameter predecessor: the token of the key that this one replaces.
  package init(key: SigningKey, identity: KeyIdentity, after predecessor: ProviderToken? = nil) {
    self.key = key
    self.identity = identity
    inherited = predecessor?.generation ?? 0
  }

  /// The last token that was minted; 0 before the first.
  private var generation: Int { minted?.current.generation ?? inherited }

  /// The token to use now, minted if it has to be.
  ///
  /// - Parameters:
  ///   - wallMilliseconds: the wall clock, milliseconds since 1970; `iat` is its whole seconds.
  ///   - now: the monotonic clock.
  package func current(
    wallMilliseconds: Int64, now: ContinuousClock.Instant
  ) throws(SigningKeyFault) -> Current {
    let seconds = wallMilliseconds / 1000
    if let minted, !isExpired, !ProviderToken.isDue(minted, wallSeconds: seconds, now: now) {
      return minted.current
    }
    let current = Current(headerValue: try mint(issuedAt: seconds), generation: generation + 1)
    minted = Minted(current: current, issuedAtSeconds: seconds, mintedAt: now)
    isExpired = false
    return current
  }

  /// APNs answered `ExpiredProviderToken` to a request that carried the token of `generation`.
  ///
  /// Forces a mint at the next `current`, at most once in 20 minutes: if the new token is called expired
  /// too, some clock is wrong and more tokens are no help.
  ///
  /// - Returns: whether there is or will be a newer token, so that connections which used this one are
  ///   to be retired.
  package func expired(generation: Int, now: ContinuousClock.Instant) -> Bool {
    if generation <= inherited { return true }
    guard let minted else { return false }
    guard generation == minted.current.generation, !isExpired else { return true }
    if let lastForcedAt, now - lastForcedAt < ProviderToken.leastAge { return false }
    lastForcedAt = now
    isExpired = true
    return true
  }

  private static func isDue(
    _ minted: Minted, wallSeconds: Int64, now: ContinuousClock.Instant
  ) -> Bool {
    let age = now - minted.mintedAt
    if age >= renewalAge { return true }
    if minted.issuedAtSeconds - wallSeconds > futureSeconds { return true }
    return wallSeconds - minted.issuedAtSeconds > pastSeconds && age >= leastAge
  }

  private func mint(issuedAt seconds: Int64) throws(SigningKeyFault) -> [UInt8] {
    // Both ids are A-Z and 0-9, so nothing here needs escaping.
    var signed: [UInt8] = []
    Base64URL.append(Array("{\"alg\":\"ES256\",\"kid\":\"\(identity.keyID)\"}".utf8), to: &signed)
    signed.append(UInt8(ascii: "."))
    Base64URL.append(Array("{\"iss\":\"\(identity.teamID)\",\"iat\":\(seconds)}".utf8), to: &signed)
    let signature = try key.sign(signed)
    var value = Array("bearer ".utf8)
    value.append(contentsOf: signed)
    value.append(UInt8(ascii: "."))
    Base64URL.append(signature, to: &value)
    return value
  }
}

extension ProviderToken {
  /// Reads a key as Apple hands it out (`AuthKey_<id>.p8`), or any unencrypted P-256 private key.
  ///
  /// Throws words that name the fault, never the key.
  package convenience init(
    pem: [UInt8], keyID: String, teamID: String, after predecessor: ProviderToken? = nil
  ) throws(HeaderFault) {
    let identity: KeyIdentity
    do {
      identity = try KeyIdentity(keyID: keyID, teamID: teamID)
    } catch {
      throw HeaderFault(words: error.words)
    }
    do {
      self.init(key: try SigningKey(pem: pem), identity: identity, after: predecessor)
    } catch {
      throw HeaderFault(words: "\(error)")
    }
  }
}
