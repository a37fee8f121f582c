import COpenSSL

/// Tells private keys from everything else that people put into key files.
enum SigningKeyReader {
  /// The private key in the bytes; the caller frees it with `EVP_PKEY_free`.
  static func read(_ bytes: [UInt8]) throws(SigningKeyFault) -> OpaquePointer {
    if bytes.isEmpty { throw SigningKeyFault("the key is empty") }
    // More than any key; also keeps the length within the C int of BIO_new_mem_buf(3).
    if bytes.count > 1 << 20 { throw SigningKeyFault("not a private key: too large") }
    let labels = pemLabels(bytes)
    if let key = labels.isEmpty ? unsafe readDER(bytes) : unsafe readPEM(bytes) { return unsafe key }
    defer { ERR_clear_error() }
    throw SigningKeyFault(labels.isEmpty ? describeDER(bytes) : describePEM(labels, bytes))
  }

  /// Why a private key is not one for ES256, nil when it is.
  static func objection(to key: OpaquePointer) -> SigningKeyFault? {
    defer { ERR_clear_error() }
    guard unsafe EVP_PKEY_is_a(key, "EC") == 1 else {
      let name = unsafe EVP_PKEY_get0_type_name(key).map { unsafe String(cString: $0) } ?? "another"
      return SigningKeyFault("not a P-256 key: its type is \(name)")
    }
    var name = [CChar](repeating: 0, count: 80)
    var count = 0
    let isNamed = unsafe EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1
    let curve =
      isNamed
      ? String(decoding: name.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      : "with parameters of its own"
    guard curve == "prime256v1" || curve == "P-256" else {
      return SigningKeyFault("not a P-256 key: its curve is \(curve)")
    }
    guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else {
      return SigningKeyFault("cannot check the key: \(ErrorQueue.words(or: "unknown fault"))")
    }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    // Range of the scalar, point on the curve, and that the two belong together.
    guard unsafe EVP_PKEY_check(context) == 1 else {
      return SigningKeyFault("the key is damaged: \(ErrorQueue.words(or: "private and public part differ"))")
    }
    return nil
  }

  private static func readPEM(_ bytes: [UInt8]) -> OpaquePointer? {
    unsafe withMemoryBIO(bytes) { bio in unsafe PEM_read_bio_PrivateKey(bio, nil, refusePassword, nil) }
  }

  private static func readDER(_ bytes: [UInt8]) -> OpaquePointer? {
    unsafe withMemoryBIO(bytes) { bio in unsafe d2i_PrivateKey_bio(bio, nil) }
  }

  private static func withMemoryBIO(_ bytes: [UInt8], _ body: (OpaquePointer) -> OpaquePointer?)
    -> OpaquePointer?
  {
    ERR_clear_error()
    return unsafe bytes.withUnsafeBytes { buffer in
      guard let bio = unsafe BIO_new_mem_buf(buffer.baseAddress, Int32(clamping: buffer.count)) else {
        return nil
      }
      defer { _ = unsafe BIO_free(bio) }
      return unsafe body(bio)
    }
  }

  private static func describeDER(_ bytes: [UInt8]) -> String {
    unsafe bytes.withUnsafeBufferPointer { buffer in
      var position = buffer.baseAddress
      if let key = unsafe d2i_PUBKEY(nil, &position, buffer.count) {
        unsafe EVP_PKEY_free(key)
        return "not a private key: only a public key"
      }
      unsafe position = buffer.baseAddress
      if let encrypted = unsafe d2i_X509_SIG(nil, &position, buffer.count) {
        unsafe X509_SIG_free(encrypted)
        return "the key is encrypted: store it without a password"
      }
      return "not a private key in PEM or DER form"
    }
  }

  private static func describePEM(_ labels: [String], _ bytes: [UInt8]) -> String {
    let isEncrypted =
      labels.contains("ENCRYPTED PRIVATE KEY")
      // RFC 1421 header of the older encrypted forms.
      || contains("Proc-Type: 4,ENCRYPTED", in: bytes)
    if isEncrypted { return "the key is encrypted: store it without a password" }
    if labels.contains(where: { $0.hasSuffix("PRIVATE KEY") }) {
      return "the private key cannot be read: \(ErrorQueue.words(or: "unknown fault"))"
    }
    if labels.contains(where: { $0.hasSuffix("PUBLIC KEY") }) {
      return "not a private key: only a public key"
    }
    return "not a private key: the file holds \(labels.prefix(3).joined(separator: ", "))"
  }

  /// The labels of the PEM blocks, such as `PRIVATE KEY` (RFC 7468, 2); printable ASCII of bounded length, so
  /// that a fault never repeats anything else of the file.
  private static func pemLabels(_ bytes: [UInt8]) -> [String] {
    let opening = Array("-----BEGIN ".utf8)
    var labels: [String] = []
    for line in bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }) where line.starts(with: opening) {
      let label = line.dropFirst(opening.count).prefix { $0 != UInt8(ascii: "-") }
      let isPlain = label.allSatisfy { $0 == 32 || (65...90).contains($0) || (48...57).contains($0) }
      labels.append(isPlain && label.count <= 32 ? String(decoding: label, as: UTF8.self) : "something else")
    }
    return labels
  }

  private static func contains(_ text: String, in bytes: [UInt8]) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: wanted) }
  }
}

/// Without a callback OpenSSL would ask on the terminal; this one has no password to give (pem_password_cb(3)).
private func refusePassword(
  _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }
