import COpenSSL
import Glibc

/// What all sessions of one role share; of a client's: protocol versions, ciphers, ALPN `h2` and the trust
/// roots. The server's is made in `TLSContextServer.swift`.
///
/// The corresponding C type is `SSL_CTX`. Not `Sendable`: one thread owns it and its sessions.
///
/// - TLS 1.2 or newer; with TLS 1.2 only suites that RFC 9113, 9.2.2 and appendix A leave over.
/// - No compression, no renegotiation (RFC 9113, 9.2.1), no early data, no session cache.
/// - End of file without `close_notify` reads as a close: HTTP/2 frames say themselves what is complete.
/// - Reading ahead into 64 KiB spares system calls. `SSL_MODE_RELEASE_BUFFERS` is not set: the two buffers of
///   an idle session are small against what allocating them at each burst costs.
@safe
package final class TLSContext {
  let handle: OpaquePointer

  /// Trusts the system's roots and, in addition, those of `extraRootsFile` (PEM).
  ///
  /// The system's roots come from its hashed directory, of which OpenSSL reads a certificate when a chain asks
  /// for it; the bundle with all of them costs megabytes of memory and is read only where the directory has no
  /// hashed entries. `SSL_CERT_DIR` and `SSL_CERT_FILE` are honoured (SSL_CTX_set_default_verify_dir(3)).
  ///
  /// - Throws: ``TLSFault`` that names the file when the extra roots cannot be read.
  package init(clientTrusting extraRootsFile: String?) throws(TLSFault) {
    ERR_clear_error()
    guard let handle = unsafe SSL_CTX_new(TLS_client_method()) else {
      throw TLSFault(.setup, ErrorQueue.words(or: "no TLS context"))
    }
    unsafe self.handle = handle
    unsafe shim_SSL_CTX_set_client_options(handle)
    unsafe SSL_CTX_set_default_read_buffer_len(handle, 65_536)
    unsafe SSL_CTX_set_verify(handle, SSL_VERIFY_PEER, nil)
    // ALPN protocol list: each name behind its length (RFC 7301, 3.1). This call returns 0 for success.
    let protocols: [UInt8] = [2, UInt8(ascii: "h"), UInt8(ascii: "2")]
    guard unsafe shim_SSL_CTX_set_min_proto_version(handle, TLS1_2_VERSION) == 1,
      unsafe SSL_CTX_set_cipher_list(handle, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1,
      unsafe SSL_CTX_set_alpn_protos(handle, protocols, UInt32(protocols.count)) == 0
    else { throw TLSFault(.setup, ErrorQueue.words(or: "TLS settings refused")) }
    try unsafe Self.trustSystemRoots(handle)
    if let extraRootsFile { try unsafe Self.trust(extraRootsFile, handle) }
    ERR_clear_error()
  }

  /// Takes over a context that is set up already.
  init(owning handle: OpaquePointer) { unsafe self.handle = handle }

  deinit { unsafe SSL_CTX_free(handle) }

  private static func trustSystemRoots(_ handle: OpaquePointer) throws(TLSFault) {
    _ = unsafe SSL_CTX_set_default_verify_dir(handle)
    if let file = unsafe environment(X509_get_default_cert_file_env()) {
      try unsafe trust(file, handle)
    } else {
      let directories =
        unsafe environment(X509_get_default_cert_dir_env())
        ?? String(cString: X509_get_default_cert_dir())
      if !directories.split(separator: ":").contains(where: { hasHashedEntries(String($0)) }) {
        _ = unsafe SSL_CTX_set_default_verify_file(handle)
      }
    }
  }

  private static func trust(_ file: String, _ handle: OpaquePointer) throws(TLSFault) {
    errno = 0
    guard unsafe SSL_CTX_load_verify_file(handle, file) == 1 else {
      let code = errno
      var reason = ErrorQueue.words(or: "no certificate found")
      // OpenSSL says "system lib" or "no such file"; the operating system says which fault.
      if unsafe access(file, R_OK) != 0 {
        reason = systemWords(errno)
      } else if code == EISDIR {
        reason = systemWords(code)
      }
      throw TLSFault(.setup, "cannot read trust roots from \(file): \(reason)")
    }
  }

  private static func environment(_ name: UnsafePointer<CChar>?) -> String? {
    guard let name = unsafe name, let value = unsafe getenv(name) else { return nil }
    let text = unsafe String(cString: value)
    return text.isEmpty ? nil : text
  }

  /// Whether the directory holds a name like `5f618aec.0`, as `openssl rehash` makes them.
  private static func hasHashedEntries(_ path: String) -> Bool {
    guard let directory = unsafe opendir(path) else { return false }
    defer { unsafe _ = closedir(directory) }
    while let entry = unsafe readdir(directory) {
      let matches = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { name in
        unsafe name.prefix(8).allSatisfy { isHexadecimal($0) } && name[8] == UInt8(ascii: ".")
      }
      if matches { return true }
    }
    return false
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
  }
}
