import HTTP2

/// A step of the way to one of Apple's hosts, up to where requests could be sent.
package enum HostStep: String, CaseIterable, Sendable {
  /// The name has an address.
  case dns
  /// An address accepted a connection.
  case tcp
  /// The certificate's chain, its time and the host name were verified.
  case tls
  /// The host speaks HTTP/2 (RFC 9113, 3.2).
  case alpn
}

extension PushConnection {
  /// When a step was done; nil for one that is still to come or has failed.
  package func doneAt(_ step: HostStep) -> ContinuousClock.Instant? {
    switch step {
    case .dns: connection.resolvedAt
    case .tcp: connection.connectedAt
    case .tls: connection.securedAt
    case .alpn: connection.phase == .open ? connection.securedAt : nil
    }
  }

  /// The step that failed, and why in words.
  package var failedStep: (step: HostStep, words: String)? {
    guard let fault = connection.fault else { return nil }
    // With ALPN a host may refuse before it shows a certificate: then TLS is neither done nor at fault.
    if fault.stage == .alpn { return (.alpn, fault.words) }
    let step = HostStep.allCases.first { doneAt($0) == nil }
    return (step ?? .alpn, fault.words)
  }
}
