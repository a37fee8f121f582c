/// The `apns-id` of a request: a UUID of version 4, RFC 9562 section 5.4.
package struct PushID: Hashable, Sendable {
  /// The first eight bytes, the first one highest.
  package let high: UInt64
  /// The last eight bytes.
  package let low: UInt64

  /// Makes an id of 122 of the 128 bits given, which have to come from a cryptographic source: ids are
  /// unique by luck alone.
  package init(randomHigh: UInt64, randomLow: UInt64) {
    high = randomHigh & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
    low = randomLow & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
  }

  /// Appends the 36 bytes of the form 8-4-4-4-12, lower case.
  package func append(to output: inout [UInt8]) {
    var text = InlineArray<36, UInt8>(repeating: UInt8(ascii: "-"))
    var place = 0
    for part in 0..<4 {
      let half = part < 2 ? high : low
      let digits = Hex.digits(UInt32(truncatingIfNeeded: part % 2 == 0 ? half >> 32 : half))
      for position in 0..<8 {
        switch 8 * part + position {
        case 8, 12, 16, 20: place += 1
        default: break
        }
        text[place] = UInt8(truncatingIfNeeded: digits >> UInt64(56 - 8 * position))
        place += 1
      }
    }
    output.append(text.span, 0..<text.count)
  }

  /// The same form as text, for the `apns_id` column.
  package var text: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }
}
