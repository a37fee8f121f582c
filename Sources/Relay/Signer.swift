import APNs

/// A signing key in use: its provider token, and the pause when Apple finds it renewed too often.
package final class Signer {
  /// The key as its file had it when it was taken into use.
  private(set) var key: Configuration.Key
  private(set) var token: ProviderToken
  private let teamID: String
  /// 429 TooManyProviderTokenUpdates: counts for every host of the key.
  var throttlePause = Pause(from: .seconds(60), to: .seconds(1200))

  /// The path of the key, for messages.
  var file: String { key.file }

  /// Throws when the key cannot sign, naming its file and the fault.
  init(_ key: Configuration.Key, teamID: String) throws(Failure) {
    token = try Signer.token(of: key, teamID: teamID, after: nil)
    self.key = key
    self.teamID = teamID
  }

  /// Goes on with another key; throws like the initialiser, and then the old one stays in use.
  func replace(with key: Configuration.Key, now: ContinuousClock.Instant) throws(Failure) {
    token = try Signer.token(of: key, teamID: teamID, after: token)
    self.key = key
    throttlePause.forget(now: now)
  }

  private static func token(
    of key: Configuration.Key, teamID: String, after predecessor: ProviderToken?
  ) throws(Failure) -> ProviderToken {
    do throws(HeaderFault) {
      return try ProviderToken(pem: key.content, keyID: key.id, teamID: teamID, after: predecessor)
    } catch {
      throw Failure(.configuration, "\(key.file): \(error.words)")
    }
  }
}
