import COpenSSL

extension TLSContext {
  /// What all sessions of a server share: TLS 1.2 or newer, one certificate, and ALPN `h2` or no connection.
  ///
  /// A client that offers other protocols only is refused with the fatal alert `no_application_protocol`
  /// (RFC 7301, 3.2); of one without ALPN ``TLSSession/alpnIsH2`` says so. No session tickets: nothing is
  /// written behind the handshake.
  ///
  /// - Parameters:
  ///   - certificateFile: PEM, the server's certificate first, then its chain.
  ///   - keyFile: PEM.
  /// - Throws: ``TLSFault`` that names the file.
  package convenience init(certificateFile: String, keyFile: String) throws(TLSFault) {
    ERR_clear_error()
    guard let handle = unsafe SSL_CTX_new(TLS_server_method()) else {
      throw TLSFault(.setup, ErrorQueue.words(or: "no TLS context"))
    }
    unsafe self.init(owning: handle)
    unsafe shim_SSL_CTX_set_server_options(handle)
    unsafe SSL_CTX_set_default_read_buffer_len(handle, 65_536)
    unsafe SSL_CTX_set_alpn_select_cb(handle, selectH2, nil)
    guard unsafe shim_SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION) == 1,
      unsafe SSL_CTX_set_cipher_list(handle, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1
    else { throw TLSFault(.setup, ErrorQueue.words(or: "TLS settings refused")) }
    guard unsafe SSL_CTX_use_certificate_chain_file(handle, certificateFile) == 1 else {
      let words = ErrorQueue.words(or: "no certificate found")
      throw TLSFault(.setup, "cannot use the certificate in \(certificateFile): \(words)")
    }
    guard unsafe SSL_CTX_use_PrivateKey_file(handle, keyFile, SSL_FILETYPE_PEM) == 1,
      unsafe SSL_CTX_check_private_key(handle) == 1
    else {
      let words = ErrorQueue.words(or: "no private key found")
      throw TLSFault(.setup, "cannot use the key in \(keyFile): \(words)")
    }
    ERR_clear_error()
  }
}

/// Chooses `h2` out of the client's list of names, each behind its length (RFC 7301, 3.1).
///
/// What is chosen may point into the client's list (SSL_CTX_set_alpn_select_cb(3)).
private func selectH2(
  session: OpaquePointer?, chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  chosenCount: UnsafeMutablePointer<UInt8>?, offered: UnsafePointer<UInt8>?, offeredCount: UInt32,
  user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let chosen = unsafe chosen, let chosenCount = unsafe chosenCount, let offered = unsafe offered
  else { return SSL_TLSEXT_ERR_ALERT_FATAL }
  var index = 0
  while index < Int(offeredCount) {
    let count = unsafe Int(offered[index])
    if unsafe count == 2 && index + 2 < Int(offeredCount) && offered[index + 1] == UInt8(ascii: "h")
      && offered[index + 2] == UInt8(ascii: "2")
    {
      unsafe chosen.pointee = offered + index + 1
      unsafe chosenCount.pointee = 2
      return SSL_TLSEXT_ERR_OK
    }
    index += count + 1
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL
}
