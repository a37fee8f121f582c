import CLinux
import Glibc
import OpenSSL

/// One HTTP/2 connection over TLS, from the look-up of the name to the last byte; it never blocks.
///
/// The caller's loop waits on the epoll in which the connection registers its descriptors (level-triggered,
/// under `tag`) and calls ``advance(now:)`` when the tag fires or ``deadline`` has passed. The process has to
/// ignore SIGPIPE: TLS writes with `write(2)`. Not `Sendable`.
@safe
package final class Connection {
  package enum Phase: Sendable {
    case dialing
    /// TLS is up and ALPN chose `h2`.
    case open
    /// Takes no new requests; closes when those in flight have ended.
    case retired
    case closed
  }

  package let endpoint: Endpoint
  package private(set) var phase = Phase.dialing
  /// Why the connection failed or ended; nil while it lives and when it was closed on purpose.
  package private(set) var fault: ConnectionFault?
  /// The peer's address and port, once connected.
  package private(set) var peerAddress: String?
  /// When the name was resolved, when TCP was connected, and when the TLS handshake was done; nil for what is still
  /// to come.
  package private(set) var resolvedAt, connectedAt, securedAt: ContinuousClock.Instant?

  let options: ConnectionOptions
  private let context: TLSContext
  private let interest: Interest
  private let capture: StaticString?
  private let createdAt: ContinuousClock.Instant
  private var dial: Dial?
  private var descriptor: Int32 = -1
  private var tls: TLSSession?
  private var session: Session?
  private var registeredEvents: UInt32 = 0
  /// Bytes may be left in TLS that epoll does not see; holds the time of the turn that left them.
  private var leftUnreadAt: ContinuousClock.Instant?
  /// TLS has something of its own to write before it reads on (a key update).
  private var readWantsWrite = false
  private let input: UnsafeMutableRawBufferPointer
  /// Bytes that came since a request last ended, and since when they are counted.
  private var idleBytes: (count: Int, since: ContinuousClock.Instant)

  /// Starts to resolve and to dial.
  ///
  /// - Parameters:
  ///   - epoll: the caller's; all descriptors are registered there with `tag`.
  ///   - capture: the name, in lower case, of the one response header field to keep for each answer.
  package init(
    endpoint: Endpoint, context: TLSContext, resolver: Resolver, epoll: Int32, tag: UInt64,
    options: ConnectionOptions = ConnectionOptions(), capture: StaticString? = nil,
    now: ContinuousClock.Instant
  ) {
    self.endpoint = endpoint
    self.context = context
    self.options = options
    self.capture = capture
    interest = Interest(epoll: epoll, tag: tag)
    createdAt = now
    idleBytes = (0, now)
    // One TLS record; SSL_read gives no more at a time.
    unsafe input = .allocate(byteCount: 16_384, alignment: 16)
    dial = Dial(resolver.lookUp(endpoint.host, endpoint.port), interest, stagger: options.attemptStagger)
    advance(now: now)
  }

  deinit {
    if descriptor >= 0 { Glibc.close(descriptor) }
    unsafe input.deallocate()
  }

  // MARK: What the caller asks

  /// When ``advance(now:)`` has to be called even without an event.
  package var deadline: ContinuousClock.Instant? {
    switch phase {
    case .closed: return nil
    case .dialing: return min(dialDeadline, dial?.deadline ?? dialDeadline)
    case .open, .retired:
      if let leftUnreadAt { return leftUnreadAt }
      guard let session else { return nil }
      guard session.hasSettings else { return min(dialDeadline, session.deadline ?? dialDeadline) }
      return session.deadline
    }
  }

  /// Requests that may be staged now: 0 before the peer's first SETTINGS and unless `open`; at most
  /// ``Session/maximumStreams``.
  package var freeStreams: Int { phase == .open ? session?.freeStreams ?? 0 : 0 }
  /// Room in the connection's flow-control window, less the bodies submitted and not yet framed.
  package var sendWindow: Int { session?.sendWindow ?? 0 }
  /// Submitted requests whose end is awaited.
  package var openStreams: Int { session?.openStreams ?? 0 }
  /// When a byte was last read, the handshake's included.
  package var lastRead: ContinuousClock.Instant { session?.lastRead ?? createdAt }
  /// The peer's GOAWAY in words; nil when there was none.
  package var goaway: ConnectionFault? { session?.goawayFault }
  /// The debug data of the peer's GOAWAY: printable, at most 256 bytes; nil when there was none.
  package var goawayDebug: String? { session?.goawayDebug }

  /// A byte was read within `readIdleBeforeProbe`, and no PING is out.
  package func isFresh(now: ContinuousClock.Instant) -> Bool {
    phase == .open && session?.isFresh(now: now) ?? false
  }

  // MARK: Requests

  /// Takes a free slot and lets `fill` write the request, which is empty before; nothing is sent.
  /// `fill` must not call the connection: the request is lent to it in place.
  ///
  /// - Returns: the slot; nil when no stream is free.
  package func stage(tag: UInt64, _ fill: (inout Request) -> Void) -> Int? {
    guard phase == .open else { return nil }
    return session?.stage(tag: tag, fill)
  }

  /// Frees the staged slots: nothing of them is sent.
  package func discardStaged() {
    session?.discardStaged()
    closeIfDone()
  }

  /// Submits the staged requests in the order of staging and writes; on a connection that has closed
  /// meanwhile they end as not handed over.
  package func submitStaged(now: ContinuousClock.Instant) {
    session?.submitStaged(now: now)
    flush(now: now)
  }

  /// Calls `body` once for each ended stream; it must not call the connection.
  package func takeEnded(_ body: (borrowing EndedStream) -> Void) { session?.takeEnded(body) }

  /// Frees the memory that a burst of requests has left, once all of them have ended.
  package func releaseMemory() { session?.releaseMemory() }

  /// Sends a PING unless one is out; without an answer in `pingTimeout` the connection closes.
  package func probe(now: ContinuousClock.Instant) {
    guard phase == .open || phase == .retired else { return }
    session?.probe(now: now)
    flush(now: now)
  }

  /// Takes no more requests, and closes with a GOAWAY when those in flight have ended.
  package func retire() {
    switch phase {
    case .dialing: shut(nil)
    case .open:
      session?.retire()
      phase = .retired
      closeIfDone()
    case .retired, .closed: break
    }
  }

  /// Closes at once: open streams end as lost.
  package func close(now: ContinuousClock.Instant) { shut(nil) }

  // MARK: The loop

  /// Reads everything, then judges deadlines, then writes.
  package func advance(now: ContinuousClock.Instant) {
    if phase == .dialing { advanceDial(now) }
    guard phase == .open || phase == .retired, let session else { return }
    read(session, now)
    if leftUnreadAt == nil, phase != .closed {
      session.judge(now: now)
      if !session.hasSettings, now >= dialDeadline {
        session.fail(ConnectionFault(.protocol, "no SETTINGS within \(options.dialTimeout)"))
      }
    }
    flush(now: now)
  }

  /// Writes what there is to write, as far as the socket takes it.
  package func flush(now: ContinuousClock.Instant) {
    guard phase == .open || phase == .retired, let session, let tls else { return }
    if !session.isOver { write(session, tls, now) }
    follow(session)
  }

  private func read(_ session: Session, _ now: ContinuousClock.Instant) {
    guard let tls else { return }
    leftUnreadAt = nil
    readWantsWrite = false
    // A peer that never stops must not keep the loop: 1 MiB a turn.
    for _ in 0..<64 {
      switch unsafe tls.read(into: input) {
      case .bytes(let count):
        unsafe session.receive(UnsafeRawBufferPointer(rebasing: input[..<count]), now: now)
        if session.isOver { return }
        if isFlood(count, session, now) {
          return session.fail(ConnectionFault(.protocol, "the peer sends much and answers nothing"))
        }
      case .wantsRead: return
      case .wantsWrite:
        readWantsWrite = true
        return
      case .closed: return session.fail(ConnectionFault(.lost, "the peer closed the connection"))
      case .failed(let fault): return session.fail(ConnectionFault(.lost, fault.description))
      }
    }
    leftUnreadAt = now
  }

  /// Whether so much has come for nothing that no honest peer sends it: a thousand answers of a minute with all
  /// that is kept of their bodies. Frames that mean nothing are legal in any number, and cost us time.
  private func isFlood(_ count: Int, _ session: Session, _ now: ContinuousClock.Instant) -> Bool {
    if session.hasEnded || now - idleBytes.since > .seconds(60) { idleBytes = (0, now) }
    idleBytes.count += count
    return idleBytes.count > Session.maximumStreams << 16
  }

  private func write(_ session: Session, _ tls: TLSSession, _ now: ContinuousClock.Instant) {
    while true {
      let bytes = unsafe session.bytesToWrite()
      if unsafe bytes.isEmpty {
        return register(EPOLLIN.rawValue | (readWantsWrite ? EPOLLOUT.rawValue : 0))
      }
      session.willWrite()
      switch unsafe tls.write(bytes) {
      case .bytes(let count): session.wrote(count)
      case .wantsWrite: return register(EPOLLIN.rawValue | EPOLLOUT.rawValue)
      case .wantsRead: return register(EPOLLIN.rawValue)
      case .closed, .failed:
        // Answers may have arrived before the connection broke: they count.
        repeat { read(session, now) } while leftUnreadAt != nil && !session.isOver
        return session.fail(ConnectionFault(.lost, "the connection broke while writing"))
      }
    }
  }

  /// Draws the conclusions from what the session has come to.
  private func follow(_ session: Session) {
    if session.isOver { return shut(session.fault) }
    if session.isFinished, session.openStreams > 0 || session.localGoaway != nil {
      let words = session.localGoaway ?? "the session ended"
      return shut(ConnectionFault(session.goaway == nil ? .protocol : .goaway, words))
    }
    if session.isRetiring { phase = .retired }
    closeIfDone()
  }

  private func closeIfDone() {
    guard phase == .retired, let session, session.isIdle else { return }
    session.submitGoaway()
    if let tls, case let bytes = unsafe session.bytesToWrite(), unsafe !bytes.isEmpty {
      if case .bytes(let count) = unsafe tls.write(bytes) { session.wrote(count) }
    }
    shut(nil)
  }

  /// The end: a GOAWAY that was received is the reason before anything that followed it.
  private func shut(_ fault: ConnectionFault?) {
    guard phase != .closed else { return }
    phase = .closed
    self.fault = session?.goawayFault ?? fault
    session?.fail(fault)
    tls?.shutdown()
    tls = nil
    dial = nil
    leftUnreadAt = nil
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  private func register(_ events: UInt32) {
    guard events != registeredEvents else { return }
    registeredEvents = events
    _ = interest.modify(descriptor, events)
  }

  // MARK: Dialling

  private var dialDeadline: ContinuousClock.Instant { createdAt + options.dialTimeout }

  private func advanceDial(_ now: ContinuousClock.Instant) {
    if let dial {
      let outcome = dial.advance(now: now)
      resolvedAt = dial.resolvedAt
      switch outcome {
      case .pending:
        if now >= dialDeadline { shut(dial.fault) }
        return
      case .failed(let fault): return shut(fault)
      case .connected(let descriptor, let address):
        self.dial = nil
        self.descriptor = descriptor
        connectedAt = now
        registeredEvents = EPOLLIN.rawValue | EPOLLOUT.rawValue
        peerAddress = address.text
        do {
          tls = try TLSSession(context: context, descriptor: descriptor, hostName: endpoint.host)
        } catch { return shut(ConnectionFault(.tls, error.description)) }
      }
    }
    shakeHands(now)
  }

  private func shakeHands(_ now: ContinuousClock.Instant) {
    guard let tls else { return }
    do {
      switch try tls.handshake() {
      case .done: return begin(tls, now)
      case .wantsRead: register(EPOLLIN.rawValue)
      case .wantsWrite: register(EPOLLIN.rawValue | EPOLLOUT.rawValue)
      }
    } catch {
      return shut(ConnectionFault(error.isProtocolRefusal ? .alpn : .tls, error.description))
    }
    if now >= dialDeadline {
      shut(ConnectionFault(.tls, "TLS handshake not finished within \(options.dialTimeout)"))
    }
  }

  private func begin(_ tls: TLSSession, _ now: ContinuousClock.Instant) {
    securedAt = now
    guard tls.alpnIsH2 else {
      let other = tls.negotiatedProtocol.map { "chose \(printable($0, limit: 32))" } ?? "chose no protocol"
      return shut(ConnectionFault(.alpn, "the peer does not offer h2: it \(other)"))
    }
    do {
      session = try Session(authority: endpoint.authority, capture: capture, options: options, now: now)
      phase = .open
    } catch { shut(error) }
  }
}
