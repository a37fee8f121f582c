import COpenSSL

extension SigningKey {
  /// A new random key on the curve P-256.
  package static func make() throws(SigningKeyFault) -> SigningKey {
    ERR_clear_error()
    guard let handle = unsafe shim_EVP_EC_gen("P-256") else {
      throw SigningKeyFault("cannot make a key: \(ErrorQueue.words(or: "unknown fault"))")
    }
    return unsafe SigningKey(owning: handle)
  }

  /// The private key as unencrypted PKCS#8 in PEM, the form of Apple's `.p8` files.
  package func pem() throws(SigningKeyFault) -> [UInt8] {
    ERR_clear_error()
    let bytes = unsafe MemoryBIO.bytes { bio in
      unsafe PEM_write_bio_PKCS8PrivateKey(bio, handle, nil, nil, 0, nil, nil)
    }
    guard let bytes else {
      throw SigningKeyFault("cannot write the key: \(ErrorQueue.words(or: "unknown fault"))")
    }
    return bytes
  }
}
