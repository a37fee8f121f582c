import Glibc
import Relay

/// An APNs host as a setting names it: `https://host` or `https://host:port`, nothing more.
struct HostURL: Equatable, Sendable {
  /// A name in lower case, or an address, without brackets.
  var name: String
  var port: UInt16

  /// Reads the value; a failure says what to write instead.
  static func parse(_ value: Given.Value) throws(Failure) -> HostURL {
    let text = value.text
    guard text.lowercased().hasPrefix("https://") else {
      let isPlain = text.lowercased().hasPrefix("http://")
      throw value.fault(
        isPlain
          ? "\(text): Apple's hosts and nudged speak TLS only: write https://"
          : "\(text): write https://host or https://host:port")
    }
    let authority = text.dropFirst("https://".count)
    if let part = authority.first(where: { "/?#".contains($0) }) {
      let kind = part == "/" ? "a path" : part == "?" ? "a query" : "a fragment"
      throw value.fault("\(text) has \(kind): write https://host or https://host:port, nothing after it")
    }
    guard !authority.contains("@") else {
      throw value.fault("\(value.text.prefix(8))... has a user name: write https://host or https://host:port")
    }
    if authority.hasPrefix("[") { return try bracketed(authority, value) }
    let parts = authority.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2 else {
      throw value.fault("\(text): an IPv6 address stands in brackets, as in https://[::1]:443")
    }
    guard isName(parts[0]) else {
      throw value.fault("\(text): \"\(parts[0])\" is no host name (letters, digits, dots and hyphens)")
    }
    return HostURL(
      name: parts[0].lowercased(), port: try port(parts.count == 2 ? parts[1] : nil, value))
  }

  private static func bracketed(
    _ authority: Substring, _ value: Given.Value
  ) throws(Failure) -> HostURL {
    guard let end = authority.firstIndex(of: "]") else {
      throw value.fault("\(value.text): the bracket is not closed")
    }
    let address = String(authority[authority.index(after: authority.startIndex)..<end])
    var binary = in6_addr()
    guard inet_pton(AF_INET6, address, &binary) == 1 else {
      throw value.fault("\(value.text): \"\(address)\" is no IPv6 address")
    }
    let rest = authority[authority.index(after: end)...]
    guard rest.isEmpty || rest.hasPrefix(":") else {
      throw value.fault("\(value.text): after the bracket only :port may follow")
    }
    return HostURL(
      name: address.lowercased(), port: try port(rest.isEmpty ? nil : rest.dropFirst(), value))
  }

  /// A port in decimal digits; nil stands for https's own (RFC 9110 section 4.2.2).
  private static func port(_ text: Substring?, _ value: Given.Value) throws(Failure) -> UInt16 {
    guard let text else { return 443 }
    let isDigits = text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard isDigits, let port = UInt16(text), port > 0 else {
      throw value.fault("\(value.text): \"\(text)\" is no port (1 to 65535)")
    }
    return port
  }

  /// Whether the text can stand in the DNS (RFC 1123 section 2.1), or is an IPv4 address.
  private static func isName(_ text: Substring) -> Bool {
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    return text.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.utf8.count) && !label.hasPrefix("-") && !label.hasSuffix("-")
          && label.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
      }
  }
}
