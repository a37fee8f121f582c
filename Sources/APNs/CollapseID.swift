import OpenSSL

/// The `apns-collapse-id` of a request.
package enum CollapseID {
  /// The most bytes that APNs takes.
  package static let mostBytes = 64

  /// Appends the header's value for what the `collapse_id` column says; nothing for an empty one.
  ///
  /// 1 to 64 bytes of printable ASCII go as they are. Anything else would be answered BadCollapseId, or
  /// break the header, and is replaced by the 64 hexadecimal digits of its SHA-256: the same id gives
  /// the same replacement on every run.
  package static func append(
    _ id: Span<UInt8>, to output: inout [UInt8], hasher: inout SHA256Hasher
  ) {
    guard id.count > 0 else { return }
    if isUsable(id) {
      output.append(id, 0..<id.count)
      return
    }
    let digest = hasher.hash(id)
    for index in 0..<32 { Hex.append(digest[index], to: &output) }
  }

  /// Whether an id goes as it is.
  ///
  /// Space is printable, but white space at either end of a value is not part of it (RFC 9113 section
  /// 8.2.1 forbids it), so two ids would become one.
  static func isUsable(_ id: Span<UInt8>) -> Bool {
    guard id.count >= 1, id.count <= mostBytes else { return false }
    for index in 0..<id.count where id[index] < 0x20 || id[index] > 0x7E { return false }
    return id[0] != 0x20 && id[id.count - 1] != 0x20
  }
}
