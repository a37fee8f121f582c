import COpenSSL
import Glibc

/// TLS over one non-blocking socket, which stays the caller's to register and to close.
///
/// The corresponding C type is `SSL`. The socket BIO writes with `write(2)`, so the process has to ignore
/// SIGPIPE. Not `Sendable`.
@safe
package final class TLSSession {
  /// How far an operation got.
  package enum Progress: Equatable, Sendable { case done, wantsRead, wantsWrite }

  /// What became of one read or write.
  package enum Transfer: Equatable, Sendable {
    case bytes(Int)
    case wantsRead
    case wantsWrite
    /// The peer closed: `close_notify` or end of file.
    case closed
    case failed(TLSFault)
  }

  private let handle: OpaquePointer
  private let context: TLSContext
  /// A write that OpenSSL has not finished has to be repeated before anything else is written.
  private var hasPendingWrite = false
  private var isBroken = false

  /// A client session that accepts only a certificate for `hostName`: a host name (sent as SNI, RFC 6066, 3)
  /// or an IP literal (never sent as SNI).
  package init(context: TLSContext, descriptor: Int32, hostName: String) throws(TLSFault) {
    ERR_clear_error()
    guard let handle = unsafe SSL_new(context.handle) else {
      throw TLSFault(.setup, ErrorQueue.words(or: "no TLS session"))
    }
    unsafe self.handle = handle
    self.context = context
    var succeeded = unsafe SSL_set_fd(handle, descriptor) == 1
    if Self.isAddress(hostName) {
      let parameters = unsafe SSL_get0_param(handle)
      succeeded = unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, hostName) == 1 && succeeded
    } else {
      let flags = UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
      unsafe SSL_set_hostflags(handle, flags)
      succeeded = unsafe SSL_set1_host(handle, hostName) == 1 && succeeded
      succeeded = unsafe shim_SSL_set_tlsext_host_name(handle, hostName) == 1 && succeeded
    }
    unsafe SSL_set_connect_state(handle)
    guard succeeded else { throw TLSFault(.setup, ErrorQueue.words(or: "host name refused: \(hostName)")) }
  }

  /// A server's session, with the certificate of `context`.
  package init(accepting descriptor: Int32, context: TLSContext) throws(TLSFault) {
    ERR_clear_error()
    guard let handle = unsafe SSL_new(context.handle) else {
      throw TLSFault(.setup, ErrorQueue.words(or: "no TLS session"))
    }
    unsafe self.handle = handle
    self.context = context
    unsafe SSL_set_accept_state(handle)
    guard unsafe SSL_set_fd(handle, descriptor) == 1 else {
      throw TLSFault(.setup, ErrorQueue.words(or: "no TLS session"))
    }
  }

  deinit { unsafe SSL_free(handle) }

  private static func isAddress(_ text: String) -> Bool {
    var address = in6_addr()
    return unsafe inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1
  }

  /// Goes on with the handshake; after `done` ``negotiatedProtocol`` tells what ALPN chose.
  package func handshake() throws(TLSFault) -> Progress {
    ERR_clear_error()
    errno = 0
    let result = unsafe SSL_do_handshake(handle)
    if result == 1 { return .done }
    switch outcome(of: result, at: .handshake) {
    case .wantsRead: return .wantsRead
    case .wantsWrite: return .wantsWrite
    case .failed(let fault): throw fault
    case .closed, .bytes: throw TLSFault(.handshake, "connection closed during the TLS handshake")
    }
  }

  /// The protocol that ALPN chose, nil when the peer chose none.
  package var negotiatedProtocol: [UInt8]? {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    unsafe SSL_get0_alpn_selected(handle, &name, &count)
    guard let name = unsafe name, count > 0 else { return nil }
    return unsafe [UInt8](UnsafeBufferPointer(start: name, count: Int(count)))
  }

  /// ALPN chose HTTP/2 (RFC 9113, 3.2).
  package var alpnIsH2: Bool { negotiatedProtocol == [UInt8(ascii: "h"), UInt8(ascii: "2")] }

  /// Reads at most one record's bytes; never blocks.
  package func read(into buffer: UnsafeMutableRawBufferPointer) -> Transfer {
    ERR_clear_error()
    errno = 0
    let count = unsafe SSL_read(handle, buffer.baseAddress, Int32(clamping: buffer.count))
    return count > 0 ? .bytes(Int(count)) : outcome(of: count, at: .read)
  }

  /// Writes some of the bytes; never blocks. After `wantsWrite` the same bytes have to be offered again.
  package func write(_ bytes: UnsafeRawBufferPointer) -> Transfer {
    ERR_clear_error()
    errno = 0
    let count = unsafe SSL_write(handle, bytes.baseAddress, Int32(clamping: bytes.count))
    if count > 0 {
      hasPendingWrite = false
      return .bytes(Int(count))
    }
    hasPendingWrite = true
    return outcome(of: count, at: .write)
  }

  /// Tells the peer that nothing follows (`close_notify`), if that is possible at once.
  package func shutdown() {
    // SSL_shutdown(3): not after a fatal error, and not in the middle of a record.
    guard !isBroken, !hasPendingWrite, unsafe SSL_is_init_finished(handle) == 1 else { return }
    ERR_clear_error()
    _ = unsafe SSL_shutdown(handle)
    ERR_clear_error()
  }

  private func outcome(of result: Int32, at stage: TLSFault.Stage) -> Transfer {
    let code = errno
    switch unsafe SSL_get_error(handle, result) {
    case SSL_ERROR_WANT_READ: return .wantsRead
    case SSL_ERROR_WANT_WRITE: return .wantsWrite
    case SSL_ERROR_ZERO_RETURN: return .closed
    case SSL_ERROR_SYSCALL:
      isBroken = true
      if let entry = ErrorQueue.take() { return .failed(TLSFault(stage, entry.words)) }
      return code == 0 ? .closed : .failed(TLSFault(stage, systemWords(code)))
    default:
      isBroken = true
      return .failed(fault(at: stage))
    }
  }

  private func fault(at stage: TLSFault.Stage) -> TLSFault {
    var verification: String?
    let entry = ErrorQueue.take()
    let result = unsafe SSL_get_verify_result(handle)
    if stage == .handshake, result != Int(X509_V_OK) {
      verification = unsafe String(cString: X509_verify_cert_error_string(result))
    }
    let isRefusal =
      entry?.library == ERR_LIB_SSL && entry?.reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL
    return TLSFault(
      stage, entry?.words ?? "TLS failed", verification: verification, isProtocolRefusal: isRefusal)
  }
}
