import Glibc

/// An IP address with a port, as `connect(2)` wants it.
struct SocketAddress: Sendable {
  private var storage = sockaddr_storage()
  private var length: socklen_t

  var family: Int32 { Int32(storage.ss_family) }

  init?(_ address: UnsafePointer<sockaddr>?, _ length: socklen_t) {
    guard let address = unsafe address, length > 0, Int(length) <= MemoryLayout<sockaddr_storage>.size else {
      return nil
    }
    self.length = length
    unsafe withUnsafeMutableBytes(of: &storage) { bytes in
      unsafe bytes.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length)))
    }
  }

  func connect(_ descriptor: Int32) -> Int32 {
    unsafe withUnsafeBytes(of: storage) { bytes in
      unsafe Glibc.connect(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), length)
    }
  }

  /// For people: `192.0.2.1:443`, `[2001:db8::1]:443`.
  var text: String {
    var host = [CChar](repeating: 0, count: 64)
    var service = [CChar](repeating: 0, count: 8)
    let (hostSize, serviceSize) = (socklen_t(host.count), socklen_t(service.count))
    let result = unsafe withUnsafeBytes(of: storage) { bytes in
      let address = unsafe bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self)
      return unsafe getnameinfo(
        address, length, &host, hostSize, &service, serviceSize, NI_NUMERICHOST | NI_NUMERICSERV)
    }
    guard result == 0 else { return "?" }
    let (name, port) = (string(host), string(service))
    return family == AF_INET6 ? "[\(name)]:\(port)" : "\(name):\(port)"
  }

  /// What `getaddrinfo(3)` knows; blocks unless `isNumeric`.
  static func lookUp(_ host: String, _ port: UInt16, isNumeric: Bool) -> Result<
    [SocketAddress], ConnectionFault
  > {
    var hints = unsafe addrinfo()
    unsafe hints.ai_family = AF_UNSPEC
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    unsafe hints.ai_flags = AI_NUMERICSERV | (isNumeric ? AI_NUMERICHOST : 0)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, String(port), &hints, &list)
    guard code == 0 else {
      let words = unsafe code == EAI_SYSTEM ? systemWords(errno) : String(cString: gai_strerror(code))
      return .failure(ConnectionFault(.resolve, "\(host): \(words)"))
    }
    defer { unsafe freeaddrinfo(list) }
    var addresses: [SocketAddress] = []
    var next = unsafe list
    while let entry = unsafe next {
      if let address = unsafe SocketAddress(entry.pointee.ai_addr, entry.pointee.ai_addrlen) {
        addresses.append(address)
      }
      unsafe next = entry.pointee.ai_next
    }
    guard !addresses.isEmpty else { return .failure(ConnectionFault(.resolve, "\(host): no address")) }
    return .success(interleaved(addresses))
  }

  /// IPv6 and IPv4 by turns, each in the resolver's order (RFC 8305, 4).
  static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
    guard let first = addresses.first?.family else { return [] }
    var same = addresses.filter { $0.family == first }[...]
    var other = addresses.filter { $0.family != first }[...]
    var result: [SocketAddress] = []
    while !same.isEmpty || !other.isEmpty {
      if let address = same.popFirst() { result.append(address) }
      if let address = other.popFirst() { result.append(address) }
    }
    return result
  }
}

private func string(_ text: [CChar]) -> String {
  String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// The words for a code of the operating system.
func systemWords(_ code: Int32) -> String {
  var buffer = [CChar](repeating: 0, count: 128)
  return unsafe strerror_r(code, &buffer, buffer.count) == 0 ? string(buffer) : "error \(code)"
}
