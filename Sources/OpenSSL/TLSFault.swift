/// What went wrong in TLS, in words that an operator understands: where, OpenSSL's reason, and for a refused
/// certificate the result of the verification.
package struct TLSFault: Error, CustomStringConvertible, Sendable, Equatable {
  package enum Stage: String, Sendable {
    /// Reading the trust roots or setting up a session.
    case setup
    case handshake
    case read
    case write
  }

  package var stage: Stage
  /// OpenSSL's reason or the operating system's, for example "certificate verify failed".
  package var reason: String
  /// Why the peer's certificate was refused, for example "unable to get local issuer certificate".
  package var verification: String?
  /// The peer answered our ALPN offer with the alert `no_application_protocol` (RFC 7301, 3.2).
  package var isProtocolRefusal: Bool

  init(_ stage: Stage, _ reason: String, verification: String? = nil, isProtocolRefusal: Bool = false) {
    self.stage = stage
    self.reason = reason
    self.verification = verification
    self.isProtocolRefusal = isProtocolRefusal
  }

  package var description: String {
    guard let verification else { return reason }
    return "\(reason): \(verification)"
  }
}
