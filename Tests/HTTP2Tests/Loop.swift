import CLinux
import Foundation
import Glibc
import HTTP2
import OpenSSL
import Testing

/// A real event loop around one connection at a time.
final class Loop {
  let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
  let resolver: Resolver

  init() throws {
    signal(SIGPIPE, SIG_IGN)
    resolver = try Resolver(epoll: epoll, tag: 1)
  }

  deinit { close(epoll) }

  func connect(
    _ host: String, _ port: UInt16, trusting roots: String?, options: ConnectionOptions = ConnectionOptions()
  ) throws -> Connection {
    Connection(
      endpoint: Endpoint(host: host, port: port), context: try TLSContext(clientTrusting: roots),
      resolver: resolver, epoll: epoll, tag: 2, options: options, capture: "apns-unique-id",
      now: ContinuousClock.now)
  }

  /// Turns until `condition` holds; says whether it did within 20 s.
  func run(_ connection: Connection, until condition: () -> Bool) -> Bool {
    let limit = ContinuousClock.now + .seconds(20)
    while !condition() {
      if ContinuousClock.now > limit { return false }
      turn(connection)
    }
    return true
  }

  func turn(_ connection: Connection) {
    var events = [epoll_event](repeating: epoll_event(), count: 8)
    let now = ContinuousClock.now
    let wait = connection.deadline.map { max(0, min(100, ($0 - now) / .milliseconds(1) + 1)) } ?? 100
    let count = epoll_wait(epoll, &events, 8, Int32(wait))
    for event in events.prefix(Int(max(0, count))) where event.data.u64 == 1 { resolver.collect() }
    connection.advance(now: ContinuousClock.now)
  }

  func isOpen(_ connection: Connection) -> Bool {
    run(connection) { connection.freeStreams > 0 || connection.phase == .closed }
      && connection.freeStreams > 0
  }

  /// Sends requests and waits until as many ended.
  func send(_ tags: [UInt64], on connection: Connection) -> [EndedStream] {
    var ended: [EndedStream] = []
    for tag in tags {
      _ = connection.stage(tag: tag) { request in
        request.path.append(contentsOf: "/".utf8)
        request.body.append(contentsOf: "{}".utf8)
        request.fields.append("authorization", Array("bearer x".utf8), .incremental)
        request.fields.append("apns-id", Array("id-\(tag)".utf8), .without)
      }
    }
    connection.submitStaged(now: ContinuousClock.now)
    _ = run(connection) {
      connection.takeEnded { ended.append(copy $0) }
      return ended.count >= tags.count
    }
    return ended
  }
}

/// A server process with certificates of its own, ended with the object.
final class Server {
  let port: UInt16
  let folder: String
  private let process = Process()
  /// Stays open: `openssl s_server` ends with its input.
  private let input = Pipe()

  var authority: String { folder + "/ca.pem" }

  /// `arguments`, with `PORT` replaced, run in a folder with `ca.pem`, `key.pem`, `good.pem`, `other.pem` (a
  /// wrong name) and `expired.pem`.
  init(_ arguments: String, script: String? = nil) throws {
    folder = NSTemporaryDirectory() + "nudged-" + UUID().uuidString
    port = try freePort()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    try run("openssl req -x509 \(curve) -keyout ca.key -out ca.pem -subj /CN=Test")
    try run("openssl req \(curve) -keyout key.pem -out request.pem -subj /CN=localhost")
    for (name, names, days) in [
      ("good", "DNS:localhost,IP:127.0.0.1", "10"), ("other", "DNS:example.com,IP:192.0.2.1", "10"),
      ("expired", "DNS:localhost,IP:127.0.0.1", "-1"),
    ] {
      try "subjectAltName=\(names)\n".write(toFile: folder + "/names", atomically: true, encoding: .utf8)
      try run(
        "openssl x509 -req -in request.pem -CA ca.pem -CAkey ca.key -set_serial 7 -days \(days)"
          + " -extfile names -out \(name).pem")
    }
    if let script { try script.write(toFile: folder + "/peer.py", atomically: true, encoding: .utf8) }
    try start(arguments.replacingOccurrences(of: "PORT", with: "\(port)"), process)
    try waitUntilListening()
  }

  deinit {
    // The child may have inherited a mask that blocks SIGTERM.
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    try? FileManager.default.removeItem(atPath: folder)
  }

  private func start(_ command: String, _ process: Process) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command.split(separator: " ").map(String.init)
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    process.standardInput = process === self.process ? input : FileHandle.nullDevice
    try process.run()
  }

  private func run(_ command: String) throws {
    let process = Process()
    try start(command, process)
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "\(command)")
  }

  private func waitUntilListening() throws {
    let limit = ContinuousClock.now + .seconds(20)
    while ContinuousClock.now < limit {
      try #require(process.isRunning, "the server ended")
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      defer { close(descriptor) }
      if withLoopback(port, { Glibc.connect(descriptor, $0, $1) }) == 0 { return }
      usleep(5_000)
    }
    Issue.record("the server does not listen")
  }
}

func withLoopback<Value>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  return withUnsafePointer(to: address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
      body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }
}

/// A port on which nothing listens now.
func freePort() throws -> UInt16 {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  defer { close(descriptor) }
  try #require(withLoopback(0) { bind(descriptor, $0, $1) } == 0)
  var address = sockaddr_in()
  var size = socklen_t(MemoryLayout<sockaddr_in>.size)
  withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &size) }
  }
  return UInt16(bigEndian: address.sin_port)
}
