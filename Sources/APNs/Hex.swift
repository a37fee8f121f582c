/// Lower-case hexadecimal.
enum Hex {
  /// The digit of a value below 16.
  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// The eight digits of a number, the first in the highest byte: each half byte goes into a byte of its own, and all
  /// become digits at once.
  static func digits(_ value: UInt32) -> UInt64 {
    var halves = UInt64(value)
    halves = (halves | halves << 16) & 0x0000_FFFF_0000_FFFF
    halves = (halves | halves << 8) & 0x00FF_00FF_00FF_00FF
    halves = (halves | halves << 4) & 0x0F0F_0F0F_0F0F_0F0F
    let letters = (halves &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return halves &+ 0x3030_3030_3030_3030 &+ letters &* UInt64(UInt8(ascii: "a") - UInt8(ascii: "9") - 1)
  }

  /// Appends the two digits of a byte.
  static func append(_ byte: UInt8, to output: inout [UInt8]) {
    output.append(digit(byte >> 4))
    output.append(digit(byte & 0xF))
  }
}
