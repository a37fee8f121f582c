import CLinux
import Glibc
import HTTP2
import OpenSSL

/// A peer inside this process, which knows to the microsecond when a request has arrived. It accepts all, at once
/// or when it is told to.
final class Receiver {
  let port: UInt16
  private let epoll: Int32
  private let listener: Listener
  private let context: TLSContext
  private var connections: [ServerConnection] = []
  /// When the requests that nobody has asked for arrived.
  private var arrivals: [ContinuousClock.Instant] = []
  private let isHolding: Bool
  private var held: [(connection: ServerConnection, request: RequestID)] = []

  /// - Parameter isHolding: answers wait for ``release()``.
  init(certificateFile: String, keyFile: String, isHolding: Bool) throws {
    self.isHolding = isHolding
    epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    context = try TLSContext(certificateFile: certificateFile, keyFile: keyFile)
    listener = try Listener(port: 0, epoll: epoll, tag: 0)
    port = listener.port
  }

  deinit { close(epoll) }

  /// Serves until a request has arrived.
  ///
  /// - Throws: ``Trouble`` when none comes within ten seconds.
  func nextArrival() throws -> ContinuousClock.Instant {
    let deadline = ContinuousClock.now + .seconds(10)
    while arrivals.isEmpty {
      guard ContinuousClock.now < deadline else { throw Trouble("no request within ten seconds") }
      turn(until: deadline)
    }
    return arrivals.removeFirst()
  }

  /// Serves for a while.
  func serve(for duration: Duration) {
    let end = ContinuousClock.now + duration
    while ContinuousClock.now < end { turn(until: end) }
  }

  private func turn(until deadline: ContinuousClock.Instant) {
    let (seconds, attoseconds) = max(.zero, deadline - ContinuousClock.now).components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var events = [epoll_event](repeating: epoll_event(), count: 16)
    let count = nudged_epoll_wait(epoll, &events, Int32(events.count), &time)
    for event in events.prefix(Int(max(0, count))) {
      let tag = Int(event.data.u64)
      if tag == 0 { accept() } else { serve(connections[tag - 1]) }
    }
  }

  private func accept() {
    for socket in listener.accept() {
      connections.append(
        ServerConnection(
          accepting: socket, context: context, settings: [.maximumStreams(1000)], epoll: epoll,
          tag: UInt64(connections.count + 1)))
    }
  }

  private func serve(_ connection: ServerConnection) {
    while connection.advance() {}
    if let session = connection.session {
      let requests = session.takeRequests()
      let now = ContinuousClock.now
      arrivals += requests.map { _ in now }
      held += requests.map { (connection, $0) }
    }
    if isHolding { connection.flush() } else { release() }
  }

  /// Answers everything that waits for it.
  func release() {
    for (connection, request) in held { connection.session?.respond(request, ServerResponse()) }
    held.removeAll()
    for connection in connections { connection.flush() }
  }
}
