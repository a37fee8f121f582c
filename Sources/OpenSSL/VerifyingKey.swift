import COpenSSL

/// The public part of a key on the curve P-256, to verify what its private part signed for ES256.
///
/// The corresponding C type is `EVP_PKEY`. Not `Sendable`.
@safe
package final class VerifyingKey {
  private let handle: OpaquePointer

  /// The public part of a signing key.
  package init(of key: SigningKey) {
    unsafe EVP_PKEY_up_ref(key.handle)
    unsafe handle = key.handle
  }

  deinit { unsafe EVP_PKEY_free(handle) }

  /// Whether `signature` is one of ECDSA with SHA-256 over `message`: r and s of 32 bytes each (RFC 7518,
  /// 3.4), or the DER form ECDSA-Sig-Value (RFC 3279, 2.2.3), which APNs takes as well.
  package func verifies(_ signature: [UInt8], over message: [UInt8]) -> Bool {
    if signature.count == 64, let encoded = Self.der(signature), check(encoded, message) { return true }
    // A DER form of 64 bytes is rare, and possible.
    return signature.first == 0x30 && check(signature, message)
  }

  private func check(_ signature: [UInt8], _ message: [UInt8]) -> Bool {
    ERR_clear_error()
    defer { ERR_clear_error() }
    guard let context = unsafe EVP_MD_CTX_new() else { return false }
    defer { unsafe EVP_MD_CTX_free(context) }
    return unsafe EVP_DigestVerifyInit_ex(context, nil, "SHA256", nil, nil, handle, nil) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  /// r‖s as an ECDSA-Sig-Value: SEQUENCE of two INTEGERs, each without leading zeros and with one where the
  /// top bit is set.
  private static func der(_ raw: [UInt8]) -> [UInt8]? {
    var content: [UInt8] = []
    for half in [raw[..<32], raw[32...]] {
      var digits = half.drop { $0 == 0 }
      if digits.isEmpty { digits = half.suffix(1) }
      let needsZero = digits.first.map { $0 & 0x80 != 0 } ?? false
      content += [0x02, UInt8(digits.count + (needsZero ? 1 : 0))]
      if needsZero { content.append(0) }
      content += digits
    }
    return content.count < 128 ? [0x30, UInt8(content.count)] + content : nil
  }
}
