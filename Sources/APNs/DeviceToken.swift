/// The form of a device token as the tables hold it.
package enum DeviceToken {
  /// The most hexadecimal digits of a token; Apple says to assume no length, 200 have been announced.
  package static let mostDigits = 400

  /// Why a `token` column is no token; nil if it is one: lower-case hexadecimal, even, 2 to 400 digits.
  ///
  /// Asked again by the claim that it is sent in, since the token stands in the `:path`.
  package static func fault(_ token: Span<UInt8>) -> HeaderFault? {
    guard token.count >= 2, token.count <= mostDigits, token.count & 1 == 0 else {
      return HeaderFault(words: "token is \(token.count) bytes, wanted 2 to \(mostDigits), even")
    }
    for index in 0..<token.count {
      let byte = token[index]
      guard byte &- 0x30 < 10 || byte &- 0x61 < 6 else {
        return HeaderFault(words: "token is not lower-case hexadecimal at byte \(index)")
      }
    }
    return nil
  }
}
