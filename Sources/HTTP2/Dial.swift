import CLinux
import Glibc

/// The way to a connected socket: resolve, then try all addresses, the next one after a pause or as soon as
/// one fails (RFC 8305, 5); the first that connects wins.
final class Dial {
  enum Outcome {
    case pending
    /// The descriptor is the caller's, and registered.
    case connected(Int32, SocketAddress)
    case failed(ConnectionFault)
  }

  private struct Attempt {
    var descriptor: Int32
    var address: SocketAddress
  }

  private let lookup: Lookup
  private let interest: Interest
  private let stagger: Duration
  private var waiting: [SocketAddress] = []
  private var attempts: [Attempt] = []
  /// When the name had its addresses; nil before.
  private(set) var resolvedAt: ContinuousClock.Instant?
  private var nextAttemptAt: ContinuousClock.Instant?
  private var lastFault: ConnectionFault?

  init(_ lookup: Lookup, _ interest: Interest, stagger: Duration) {
    self.lookup = lookup
    self.interest = interest
    self.stagger = stagger
  }

  deinit {
    lookup.leave()
    for attempt in attempts { close(attempt.descriptor) }
  }

  /// When the next address is due.
  var deadline: ContinuousClock.Instant? { waiting.isEmpty ? nil : nextAttemptAt }

  /// What to say when time is up.
  var fault: ConnectionFault {
    if resolvedAt == nil { return ConnectionFault(.resolve, "\(lookup.host): not resolved in time") }
    if let address = attempts.first?.address {
      return ConnectionFault(.connect, "\(address.text): no connection in time")
    }
    return lastFault ?? ConnectionFault(.connect, "no connection in time")
  }

  func advance(now: ContinuousClock.Instant) -> Outcome {
    if resolvedAt == nil {
      switch lookup.result {
      case nil: return .pending
      case .failure(let fault): return .failed(fault)
      case .success(let addresses): waiting = addresses
      }
      resolvedAt = now
      nextAttemptAt = now
    }
    if let winner = poll() { return winner }
    while let address = waiting.first, attempts.isEmpty || nextAttemptAt.map({ now >= $0 }) ?? true {
      waiting.removeFirst()
      if let outcome = start(address) { return outcome }
      nextAttemptAt = now + stagger
    }
    guard attempts.isEmpty, waiting.isEmpty else { return .pending }
    return .failed(lastFault ?? ConnectionFault(.connect, "no address"))
  }

  private func start(_ address: SocketAddress) -> Outcome? {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(address.family, type, 0)
    guard descriptor >= 0 else {
      lastFault = ConnectionFault(errno == EAFNOSUPPORT ? .connect : .local, "socket: \(systemWords(errno))")
      return nil
    }
    var one: Int32 = 1
    let size = socklen_t(MemoryLayout<Int32>.size)
    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, size)
    let isConnected = address.connect(descriptor) == 0
    let code = errno
    guard isConnected || code == EINPROGRESS else {
      lastFault = Self.fault(address, code)
      close(descriptor)
      return nil
    }
    guard interest.add(descriptor, EPOLLIN.rawValue | EPOLLOUT.rawValue) else {
      lastFault = ConnectionFault(.local, "epoll: \(systemWords(errno))")
      close(descriptor)
      return nil
    }
    if isConnected { return .connected(descriptor, address) }
    attempts.append(Attempt(descriptor: descriptor, address: address))
    return nil
  }

  /// Looks which attempts came to an end.
  private func poll() -> Outcome? {
    for (index, attempt) in attempts.enumerated().reversed() {
      var question = pollfd(fd: attempt.descriptor, events: Int16(POLLOUT), revents: 0)
      guard unsafe Glibc.poll(&question, 1, 0) > 0 else { continue }
      attempts.remove(at: index)
      var code: Int32 = 0
      var size = socklen_t(MemoryLayout<Int32>.size)
      unsafe getsockopt(attempt.descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
      if code == 0 { return .connected(attempt.descriptor, attempt.address) }
      lastFault = Self.fault(attempt.address, code)
      close(attempt.descriptor)
      // The next address is due at once.
      nextAttemptAt = nil
    }
    return nil
  }

  private static func fault(_ address: SocketAddress, _ code: Int32) -> ConnectionFault {
    ConnectionFault(.connect, "\(address.text): \(systemWords(code))")
  }
}
