/// The two names that a provider token carries: of the key, and of the team that owns it.
///
/// Each is 10 characters, A to Z and 0 to 9 (Apple, "Establishing a token-based connection to APNs"). They look
/// alike, and swapping them is the classic InvalidProviderToken: no check of form finds that, so whoever reports on them has to print both by name.
package struct KeyIdentity: Hashable, Sendable {
  /// Why there is no identity; the words are for the operator.
  package struct Fault: Error, Equatable, Sendable {
    /// The fault in words.
    package let words: String
  }

  /// `kid`.
  package let keyID: String
  /// `iss`.
  package let teamID: String

  /// Checks the form of both.
  package init(keyID: String, teamID: String) throws(Fault) {
    if let fault = KeyIdentity.fault(keyID, what: "key id") { throw fault }
    if let fault = KeyIdentity.fault(teamID, what: "team id") { throw fault }
    self.keyID = keyID
    self.teamID = teamID
  }

  /// The key id in the name that Apple gives a key's file, `AuthKey_<id>.p8`; nil for another name.
  ///
  /// - Parameter path: the file's path; only its last part counts.
  package static func keyID(fromPath path: String) -> String? {
    guard let file = path.split(separator: "/").last, file.hasPrefix("AuthKey_"), file.hasSuffix(".p8")
    else { return nil }
    let id = String(file.dropFirst("AuthKey_".count).dropLast(".p8".count))
    return fault(id, what: "key id") == nil ? id : nil
  }

  private static func fault(_ id: String, what: String) -> Fault? {
    let bytes = id.utf8
    guard bytes.count == 10 else {
      return Fault(words: "\(what) is \(bytes.count) bytes, wanted 10 characters of A-Z and 0-9")
    }
    guard bytes.allSatisfy({ JSONByte.isDigit($0) || (0x41...0x5A).contains($0) }) else {
      return Fault(words: "\(what) has other characters than A-Z and 0-9")
    }
    return nil
  }
}
