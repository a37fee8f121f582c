import COpenSSL

/// Why a key is refused, or why signing failed; never holds key material.
@safe
package struct SigningKeyFault: Error, CustomStringConvertible, Sendable, Equatable {
  package var description: String
  init(_ description: String) { self.description = description }
}

/// A private key on the curve P-256, for ES256 (RFC 7518, 3.4).
///
/// The corresponding C type is `EVP_PKEY`. Not `Sendable`.
@safe
package final class SigningKey {
  let handle: OpaquePointer

  /// Reads every form that OpenSSL reads as an unencrypted P-256 private key: PKCS#8 and SEC1
  /// (`EC PRIVATE KEY`), as PEM (other text around it is skipped) or DER, also with explicit parameters.
  ///
  /// - Throws: ``SigningKeyFault`` that says what the bytes are instead. An encrypted key is never asked about
  ///   on the terminal.
  package init(pem bytes: [UInt8]) throws(SigningKeyFault) {
    let handle = unsafe try SigningKeyReader.read(bytes)
    if let fault = unsafe SigningKeyReader.objection(to: handle) {
      unsafe EVP_PKEY_free(handle)
      throw fault
    }
    unsafe self.handle = handle
  }

  /// Takes over a private key on the curve P-256.
  init(owning handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe EVP_PKEY_free(handle) }

  /// Signs with ECDSA and SHA-256.
  ///
  /// - Returns: r and s as 32 bytes each, big-endian, leading zeros kept (RFC 7518, 3.4): always 64 bytes.
  package func sign(_ message: [UInt8]) throws(SigningKeyFault) -> [UInt8] {
    ERR_clear_error()
    guard let context = unsafe EVP_MD_CTX_new() else { throw Self.fault() }
    defer { unsafe EVP_MD_CTX_free(context) }
    guard unsafe EVP_DigestSignInit_ex(context, nil, "SHA256", nil, nil, handle, nil) == 1 else {
      throw Self.fault()
    }
    // An ECDSA-Sig-Value of P-256 has at most 72 bytes.
    var encoded = [UInt8](repeating: 0, count: 128)
    var count = encoded.count
    guard unsafe EVP_DigestSign(context, &encoded, &count, message, message.count) == 1 else {
      throw Self.fault()
    }
    return try Self.fixedWidth(encoded, count)
  }

  private static func fixedWidth(_ encoded: [UInt8], _ count: Int) throws(SigningKeyFault) -> [UInt8] {
    let signature = unsafe encoded.withUnsafeBufferPointer { buffer in
      var position = buffer.baseAddress
      return unsafe d2i_ECDSA_SIG(nil, &position, count)
    }
    guard let signature = unsafe signature else { throw fault() }
    defer { unsafe ECDSA_SIG_free(signature) }
    var result = [UInt8](repeating: 0, count: 64)
    let width: Int32 = 32
    let written = unsafe result.withUnsafeMutableBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return false }
      return unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), start, width) == width
        && BN_bn2binpad(ECDSA_SIG_get0_s(signature), start + Int(width), width) == width
    }
    guard written else { throw fault() }
    return result
  }

  private static func fault() -> SigningKeyFault {
    SigningKeyFault("cannot sign: \(ErrorQueue.words(or: "unknown fault"))")
  }
}
