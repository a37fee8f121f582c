/// Base64url without padding, RFC 7515 section 2 and RFC 4648 section 5.
enum Base64URL {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// Appends the encoding of `bytes`.
  static func append(_ bytes: [UInt8], to output: inout [UInt8]) {
    var index = 0
    while index < bytes.count {
      let left = min(3, bytes.count - index)
      var group: UInt32 = 0
      for step in 0..<3 {
        group = group << 8 | (step < left ? UInt32(bytes[index + step]) : 0)
      }
      // n bytes make n + 1 digits.
      for digit in 0...left {
        output.append(alphabet[Int(group >> UInt32(18 - 6 * digit) & 63)])
      }
      index += left
    }
  }
}
