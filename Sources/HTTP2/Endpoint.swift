import Glibc

/// Where a connection goes: a host name or an IP literal (IPv6 without brackets), and a TCP port.
package struct Endpoint: Sendable, Hashable {
  package var host: String
  package var port: UInt16

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// The value of `:authority`: the port only when it is not the scheme's own (RFC 9110, 4.2.2), an IPv6
  /// literal in brackets (RFC 3986, 3.2.2).
  package var authority: String {
    let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
    return port == 443 ? name : "\(name):\(port)"
  }
}
