import COpenSSL

/// SHA-256 with a context that is used again and a digest that is fetched once.
///
/// The one-shot `SHA256()` fetches its digest at each call, which costs more than the hash of a short text.
@safe
package struct SHA256Hasher: ~Copyable {
  private let digest: OpaquePointer
  private let context: OpaquePointer

  /// - Throws: ``TLSFault`` when OpenSSL has no SHA-256 to offer.
  package init() throws(TLSFault) {
    ERR_clear_error()
    guard let digest = unsafe EVP_MD_fetch(nil, "SHA256", nil) else {
      throw TLSFault(.setup, ErrorQueue.words(or: "no SHA-256"))
    }
    guard let context = unsafe EVP_MD_CTX_new() else {
      unsafe EVP_MD_free(digest)
      throw TLSFault(.setup, ErrorQueue.words(or: "no digest context"))
    }
    unsafe self.digest = digest
    unsafe self.context = context
  }

  deinit {
    unsafe EVP_MD_CTX_free(context)
    unsafe EVP_MD_free(digest)
  }

  /// The 32 bytes of the digest.
  package mutating func hash(_ bytes: Span<UInt8>) -> InlineArray<32, UInt8> {
    var result = InlineArray<32, UInt8>(repeating: 0)
    let succeeded = unsafe bytes.withUnsafeBufferPointer { buffer in
      var output = result.mutableSpan
      return unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe EVP_DigestInit_ex2(context, digest, nil) == 1
          && EVP_DigestUpdate(context, buffer.baseAddress, buffer.count) == 1
          && EVP_DigestFinal_ex(context, output.baseAddress, nil) == 1
      }
    }
    // Fails only when memory is exhausted or the library is broken: there is no digest to go on with.
    precondition(succeeded, "SHA-256 failed")
    return result
  }

  package mutating func hash(_ bytes: [UInt8]) -> InlineArray<32, UInt8> { hash(bytes.span) }
}
