import OpenSSL

/// The ids and hashes that each attempt needs; holds OpenSSL's contexts, so that none is set up per push.
package struct Identifiers: ~Copyable {
  private var hasher: SHA256Hasher
  private var random = RandomBytes()

  package init() throws(NetworkFault) {
    do {
      hasher = try SHA256Hasher()
    } catch {
      throw NetworkFault(words: "SHA-256 is not available: \(error)")
    }
  }

  /// A fresh random `apns-id`.
  package mutating func pushID() -> PushID {
    let (high, low) = random.next16()
    return PushID(randomHigh: high, randomLow: low)
  }

  /// Appends the first 16 hex digits of the token's SHA-256: what is kept of it for audits.
  package mutating func appendHash(of token: Span<UInt8>, to output: inout [UInt8]) {
    let digest = hasher.hash(token)
    var text = InlineArray<16, UInt8>(repeating: 0)
    for index in 0..<8 {
      text[2 * index] = Hex.digit(digest[index] >> 4)
      text[2 * index + 1] = Hex.digit(digest[index] & 0xF)
    }
    output.append(text.span, 0..<text.count)
  }

  /// Appends the collapse id as the header takes it.
  package mutating func appendCollapseID(_ id: Span<UInt8>, to output: inout [UInt8]) {
    CollapseID.append(id, to: &output, hasher: &hasher)
  }
}
