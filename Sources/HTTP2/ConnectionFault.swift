/// Why a connection failed or ended, in words for an operator.
package struct ConnectionFault: Error, CustomStringConvertible, Sendable, Equatable {
  package enum Stage: String, Sendable {
    /// The name has no address, or none in time.
    case resolve
    /// No address accepted a TCP connection.
    case connect
    /// The handshake failed, also for a certificate that was refused.
    case tls
    /// The peer does not speak HTTP/2; no byte of HTTP was sent.
    case alpn
    /// The peer broke the rules of HTTP/2.
    case `protocol`
    /// The peer said GOAWAY.
    case goaway
    /// A PING was not answered.
    case ping
    /// The connection closed or broke.
    case lost
    /// A fault on our side: descriptors or memory ran out.
    case local
  }

  package var stage: Stage
  package var words: String

  package init(_ stage: Stage, _ words: String) {
    self.stage = stage
    self.words = words
  }

  package var description: String { "\(stage.rawValue): \(words)" }
}

/// Bounded, printable text out of bytes that a peer sent.
func printable(_ bytes: some Sequence<UInt8>, limit: Int = 256) -> String {
  var text = ""
  for byte in bytes.prefix(limit) {
    text.unicodeScalars.append(Unicode.Scalar((0x20...0x7e).contains(byte) ? byte : UInt8(ascii: "?")))
  }
  return text
}

/// The name of an HTTP/2 error code (RFC 9113, 7).
func errorName(_ code: UInt32) -> String {
  let names = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
  ]
  return code < names.count ? names[Int(code)] : "error code \(code)"
}
