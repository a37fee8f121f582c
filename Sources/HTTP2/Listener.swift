import CLinux
import Glibc

/// Sockets that accept connections from this machine: on 127.0.0.1 and, where there is IPv6, on ::1, both with
/// the same port.
@safe
package final class Listener {
  /// The port, also when the system chose it.
  package let port: UInt16
  private let descriptors: [Int32]

  /// - Parameters:
  ///   - port: 0 lets the system choose one that is free on both addresses.
  ///   - epoll: the caller's; both sockets are registered there with `tag`.
  /// - Throws: ``ConnectionFault`` that names the port.
  package init(port: UInt16, epoll: Int32, tag: UInt64) throws(ConnectionFault) {
    var tries = 16
    while true {
      let four = Self.listen(AF_INET, port)
      guard four.descriptor >= 0 else { throw Self.fault(port, four.code) }
      let six = Self.listen(AF_INET6, four.port)
      // Somebody else's socket on ::1 would get the connections of who asks for `localhost`. Where there is no
      // IPv6 there is none.
      if six.descriptor < 0, six.code == EADDRINUSE || six.code == EACCES {
        close(four.descriptor)
        tries -= 1
        guard port == 0, tries > 0 else { throw Self.fault(four.port, six.code) }
        continue
      }
      self.port = four.port
      descriptors = six.descriptor >= 0 ? [four.descriptor, six.descriptor] : [four.descriptor]
      break
    }
    let interest = Interest(epoll: epoll, tag: tag)
    for descriptor in descriptors { _ = interest.add(descriptor, EPOLLIN.rawValue) }
  }

  private static func fault(_ port: UInt16, _ code: Int32) -> ConnectionFault {
    ConnectionFault(.local, "cannot listen on port \(port): \(systemWords(code))")
  }

  deinit { for descriptor in descriptors { close(descriptor) } }

  /// The sockets of all connections that wait, non-blocking.
  package func accept() -> [Int32] {
    var accepted: [Int32] = []
    for descriptor in descriptors {
      while true {
        let socket = Glibc.accept(descriptor, nil, nil)
        guard socket >= 0 else { break }
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
        accepted.append(socket)
      }
    }
    return accepted
  }

  private static func listen(_ family: Int32, _ port: UInt16) -> (
    descriptor: Int32, port: UInt16, code: Int32
  ) {
    let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let descriptor = socket(family, type, 0)
    guard descriptor >= 0 else { return (-1, 0, errno) }
    var yes: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, size)
    var bound: Int32
    if family == AF_INET {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      bound = unsafe withUnsafeBytes(of: address) { unsafe bind(descriptor, $0) }
    } else {
      _ = unsafe setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &yes, size)
      var address = sockaddr_in6()
      address.sin6_family = sa_family_t(AF_INET6)
      address.sin6_port = port.bigEndian
      address.sin6_addr = in6addr_loopback
      bound = unsafe withUnsafeBytes(of: address) { unsafe bind(descriptor, $0) }
    }
    if bound == 0 { bound = Glibc.listen(descriptor, 1_024) }
    guard bound == 0 else {
      let code = errno
      close(descriptor)
      return (-1, 0, code)
    }
    return (descriptor, localPort(descriptor), 0)
  }

  private static func bind(_ descriptor: Int32, _ address: UnsafeRawBufferPointer) -> Int32 {
    unsafe Glibc.bind(
      descriptor, address.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(address.count))
  }

  private static func localPort(_ descriptor: Int32) -> UInt16 {
    var address = sockaddr_in6()
    var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = unsafe withUnsafeMutableBytes(of: &address) { bytes in
      unsafe getsockname(descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), &size)
    }
    // sockaddr_in and sockaddr_in6 have the port in the same place.
    return result == 0 ? UInt16(bigEndian: address.sin6_port) : 0
  }
}
