import Foundation
import Glibc

/// The socket that a service manager gives to its services (`man 3 sd_notify`), and what was sent there.
final class ServiceManager {
  /// One datagram and when it came.
  struct Message {
    let at: ContinuousClock.Instant
    let lines: [String]
  }

  /// The value of NOTIFY_SOCKET.
  let name: String
  private let descriptor: Int32
  private var received: [Message] = []

  /// - Parameter name: a path, or `@` and an abstract name.
  init(_ name: String) throws {
    self.name = name
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { path in
      for (index, byte) in name.utf8.enumerated() { path[index] = byte }
      if name.hasPrefix("@") { path[0] = 0 }
    }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + name.utf8.count)
    let descriptor = descriptor
    let status = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) }
    }
    guard status == 0 else { throw Failure("cannot bind \(name): \(String(cString: strerror(errno)))") }
  }

  deinit { close(descriptor) }

  /// Everything that was sent until now. The time is that of the reading, so whoever judges gaps reads often.
  var messages: [Message] {
    var buffer = [UInt8](repeating: 0, count: 8192)
    while true {
      let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      guard count > 0 else { return received }
      let text = String(decoding: buffer[..<count], as: UTF8.self)
      received.append(Message(at: .now, lines: text.split(separator: "\n").map(String.init)))
    }
  }

  /// The lines that begin with `name=`, without it.
  func values(_ name: String) -> [String] {
    messages.flatMap(\.lines).filter { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
  }

  /// The state changes in their order, without signs of life and words.
  var states: [String] {
    messages.flatMap(\.lines).filter { line in
      ["READY=", "RELOADING=", "STOPPING="].contains { line.hasPrefix($0) }
    }
  }

  func waitForStatus(_ words: String, within limit: Duration = .seconds(15)) async throws {
    try await eventually("the status \(words)", within: limit, state: { "\(values("STATUS"))" }) {
      values("STATUS").last?.contains(words) ?? false
    }
  }
}
