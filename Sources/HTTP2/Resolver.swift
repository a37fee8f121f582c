import CLinux
import Glibc
import Synchronization

/// Resolves host names on one helper thread, which touches nothing but its queue.
///
/// The thread starts with the first name and answers one name at a time; those who ask for a name that is
/// being looked up, or queued, share its answer, and names that nobody waits for any more are skipped. So at
/// most one look-up per distinct name is outstanding, and a name whose servers are silent delays another by
/// what resolv.conf(5) allows (5 s, two attempts and a few servers by default), not for ever. An IP literal
/// is answered at once, without the thread.
package final class Resolver {
  private let exchange: Exchange
  private var isStarted = false

  /// Registers an eventfd with `tag` in the caller's epoll; the caller owns the epoll.
  ///
  /// - Throws: ``ConnectionFault`` when there are no descriptors.
  package init(epoll: Int32, tag: UInt64) throws(ConnectionFault) {
    guard let exchange = Exchange() else { throw ConnectionFault(.local, systemWords(errno)) }
    self.exchange = exchange
    guard Interest(epoll: epoll, tag: tag).add(exchange.answered, EPOLLIN.rawValue) else {
      throw ConnectionFault(.local, systemWords(errno))
    }
  }

  deinit {
    exchange.queue.withLock { $0.isStopped = true }
    exchange.wakeThread()
  }

  /// To be called when the tag fires; afterwards the connections that dial have to be advanced.
  package func collect() { exchange.drainAnswered() }

  func lookUp(_ host: String, _ port: UInt16) -> Lookup {
    if case .success(let addresses) = SocketAddress.lookUp(host, port, isNumeric: true) {
      return Lookup(host, port, .success(addresses))
    }
    let lookup = exchange.queue.withLock { queue in
      if let known = queue.lookups.first(where: { $0.host == host && $0.port == port }) {
        known.join()
        return known
      }
      let new = Lookup(host, port, nil)
      queue.lookups.append(new)
      return new
    }
    if !isStarted {
      guard exchange.startThread() else {
        exchange.queue.withLock { $0.lookups.removeAll() }
        return Lookup(host, port, .failure(ConnectionFault(.local, "no thread to resolve names")))
      }
      isStarted = true
    }
    exchange.wakeThread()
    return lookup
  }
}

/// One name on its way to an answer: the box between the loop and the helper thread.
final class Lookup: Sendable {
  let host: String
  let port: UInt16
  private let answer: Mutex<Result<[SocketAddress], ConnectionFault>?>
  private let waiting = Atomic(1)

  init(_ host: String, _ port: UInt16, _ answer: Result<[SocketAddress], ConnectionFault>?) {
    self.host = host
    self.port = port
    self.answer = Mutex(answer)
  }

  /// One more waits for the answer.
  func join() { waiting.add(1, ordering: .relaxed) }

  /// One fewer waits for it.
  func leave() { waiting.subtract(1, ordering: .relaxed) }

  var isAbandoned: Bool { waiting.load(ordering: .relaxed) <= 0 }

  var result: Result<[SocketAddress], ConnectionFault>? {
    get { answer.withLock { $0 } }
    set { answer.withLock { $0 = newValue } }
  }
}

/// What the loop and the helper thread share: a queue, and an eventfd in each direction.
private final class Exchange: Sendable {
  struct Queue {
    /// The first is being looked up.
    var lookups: [Lookup] = []
    var isStopped = false
  }

  let queue = Mutex(Queue())
  let asked: Int32
  let answered: Int32

  init?() {
    asked = eventfd(0, Int32(EFD_CLOEXEC))
    answered = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    if asked < 0 || answered < 0 { return nil }
  }

  deinit {
    close(asked)
    close(answered)
  }

  func wakeThread() { _ = eventfd_write(asked, 1) }

  func drainAnswered() {
    var count: eventfd_t = 0
    _ = unsafe eventfd_read(answered, &count)
  }

  /// Starts the thread with every signal blocked: signals are the loop's.
  func startThread() -> Bool {
    var attributes = pthread_attr_t()
    unsafe pthread_attr_init(&attributes)
    defer { unsafe _ = pthread_attr_destroy(&attributes) }
    unsafe pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    // getaddrinfo(3) and the modules of nsswitch.conf(5) keep buffers on the stack.
    unsafe pthread_attr_setstacksize(&attributes, 256 << 10)
    var all = sigset_t()
    var previous = sigset_t()
    unsafe sigfillset(&all)
    unsafe pthread_sigmask(SIG_SETMASK, &all, &previous)
    defer { unsafe _ = pthread_sigmask(SIG_SETMASK, &previous, nil) }
    let context = unsafe Unmanaged.passRetained(self)
    var thread = pthread_t()
    guard unsafe pthread_create(&thread, &attributes, runThread, context.toOpaque()) == 0 else {
      unsafe context.release()
      return false
    }
    return true
  }

  func run() {
    while true {
      var count: eventfd_t = 0
      _ = unsafe eventfd_read(asked, &count)
      while let lookup = next() {
        let answer = SocketAddress.lookUp(lookup.host, lookup.port, isNumeric: false)
        lookup.result = answer
        queue.withLock { $0.lookups.removeAll { $0 === lookup } }
        _ = eventfd_write(answered, 1)
      }
      if queue.withLock({ $0.isStopped }) { return }
    }
  }

  private func next() -> Lookup? {
    queue.withLock { queue in
      // Only this thread asks, so none of them is being looked up now.
      queue.lookups.removeAll { queue.isStopped || $0.isAbandoned }
      return queue.lookups.first
    }
  }
}

private func runThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let context = unsafe context {
    unsafe Unmanaged<Exchange>.fromOpaque(context).takeRetainedValue().run()
  }
  return nil
}
