/// What the name of a member says, escapes undone: `"\u0061lert"` says `alert`.
enum JSONName {
  /// FNV-1a over what the name says, and whether it has escapes.
  static func hash(_ text: Span<UInt8>, _ name: Range<Int>) -> (UInt64, isEscaped: Bool) {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for index in name {
      let byte = text[index]
      if byte == JSONByte.solidus { return (self.hash(JSONToken.decoded(text, name)), true) }
      hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    return (hash, false)
  }

  private static func hash(_ bytes: [UInt8]) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return hash
  }

  /// Whether a member's name says `name`.
  static func says(_ name: StaticString, _ text: Span<UInt8>, _ member: JSONMember) -> Bool {
    guard member.isEscaped else { return text.holds(name, in: member.name) }
    let decoded = JSONToken.decoded(text, member.name)
    return decoded.span.holds(name, in: 0..<decoded.count)
  }

  /// Whether two members' names say the same.
  static func sayTheSame(_ text: Span<UInt8>, _ first: JSONMember, _ second: JSONMember) -> Bool {
    if first.isEscaped || second.isEscaped {
      return JSONToken.decoded(text, first.name) == JSONToken.decoded(text, second.name)
    }
    guard first.name.count == second.name.count else { return false }
    for step in 0..<first.name.count
    where text[first.name.lowerBound + step] != text[second.name.lowerBound + step] {
      return false
    }
    return true
  }
}
