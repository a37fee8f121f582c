/// Lower-case hexadecimal.
enum Hex {
  /// The digit of a value below 16.
  static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// Appends the two digits of a byte.
  static func append(_ byte: UInt8, to output: inout [UInt8]) {
    output.append(digit(byte >> 4))
    output.append(digit(byte & 0xF))
  }
}
