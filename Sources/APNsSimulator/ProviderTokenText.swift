/// A provider token as it came: what it says, and what its signature is over (RFC 7515, 7.1).
struct ProviderTokenText {
  let keyID: String
  let teamID: String
  /// `iat`, seconds since 1970.
  let issuedAt: Int64
  let signed: [UInt8]
  let signature: [UInt8]

  /// Reads the compact form; nil for anything that is none, or not for ES256.
  ///
  /// `iat` may also be a numeric string: APNSwift sends that, and it works.
  init?(_ text: ArraySlice<UInt8>) {
    let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.object(parts[0]), let claims = Self.object(parts[1]),
      let signature = Self.decode(parts[2]),
      header["alg"]?.text == "ES256",
      let keyID = header["kid"]?.text, let teamID = claims["iss"]?.text, let issued = claims["iat"]
    else { return nil }
    guard let issuedAt = issued.integer ?? issued.text.flatMap({ Int64($0) }) else { return nil }
    self.keyID = keyID
    self.teamID = teamID
    self.issuedAt = issuedAt
    self.signature = signature
    signed = Array(text[parts[0].startIndex..<parts[1].endIndex])
  }

  private static func object(_ part: ArraySlice<UInt8>) -> JSONValue? {
    decode(part).flatMap { try? JSONValue.read($0) }
  }

  /// Base64url without padding (RFC 7515, 2); nil for anything else.
  static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    guard text.count % 4 != 1 else { return nil }
    var result: [UInt8] = []
    var bits: UInt32 = 0
    var count = 0
    for byte in text {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit = byte - 65
      case UInt8(ascii: "a")...UInt8(ascii: "z"): digit = byte - 71
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte + 4
      case UInt8(ascii: "-"): digit = 62
      case UInt8(ascii: "_"): digit = 63
      default: return nil
      }
      bits = bits << 6 | UInt32(digit)
      count += 6
      if count >= 8 {
        count -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return result
  }
}
