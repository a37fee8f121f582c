import CLinux
import Glibc
import OpenSSL

/// A server's connection over TLS, from the accepted socket to the last byte; it never blocks.
///
/// The caller's loop waits on the epoll in which the connection registers its socket (level-triggered, under
/// `tag`), calls ``advance()`` when the tag fires, takes the requests, answers, and calls ``flush()``. The
/// process has to ignore SIGPIPE. Not `Sendable`.
@safe
package final class ServerConnection {
  package enum Phase: Sendable { case handshaking, open, closed }

  package private(set) var phase = Phase.handshaking
  /// Why the handshake failed; nil otherwise.
  package private(set) var fault: String?
  /// There once the handshake is done.
  package private(set) var session: ServerSession?

  private let settings: [ServerSetting]
  private let interest: Interest
  private var descriptor: Int32
  private var tls: TLSSession?
  private var registeredEvents = EPOLLIN.rawValue
  private let input: UnsafeMutableRawBufferPointer
  private var closesWhenWritten = false

  /// Takes over an accepted socket.
  package init(
    accepting descriptor: Int32, context: TLSContext, settings: [ServerSetting], epoll: Int32, tag: UInt64
  ) {
    self.descriptor = descriptor
    self.settings = settings
    interest = Interest(epoll: epoll, tag: tag)
    unsafe input = .allocate(byteCount: 16_384, alignment: 16)
    var yes: Int32 = 1
    _ = unsafe setsockopt(
      descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    do {
      tls = try TLSSession(accepting: descriptor, context: context)
      if !interest.add(descriptor, registeredEvents) { close() }
    } catch { close(error.description) }
  }

  deinit {
    if descriptor >= 0 { Glibc.close(descriptor) }
    unsafe input.deallocate()
  }

  /// Goes on with the handshake, then reads what is there: at most 1 MiB, so that a peer that never stops does
  /// not keep the loop.
  ///
  /// - Returns: whether it has to be called again without an event, since bytes may be left inside TLS.
  package func advance() -> Bool {
    if phase == .handshaking { shakeHands() }
    guard phase == .open, let tls, let session else { return false }
    for _ in 0..<64 {
      switch unsafe tls.read(into: input) {
      case .bytes(let count): unsafe session.receive(UnsafeRawBufferPointer(rebasing: input[..<count]))
      case .wantsRead, .wantsWrite: return false
      case .closed, .failed:
        close()
        return false
      }
      if session.isOver { return false }
    }
    return true
  }

  /// Writes what there is to write, as far as the socket takes it, and closes when there is nothing more to do.
  package func flush() {
    guard phase == .open, let tls, let session else { return }
    while true {
      let bytes = unsafe session.bytesToWrite()
      if unsafe bytes.isEmpty { break }
      switch unsafe tls.write(bytes) {
      case .bytes(let count): session.wrote(count)
      case .wantsWrite: return register(EPOLLIN.rawValue | EPOLLOUT.rawValue)
      case .wantsRead: return register(EPOLLIN.rawValue)
      case .closed, .failed: return close()
      }
    }
    register(EPOLLIN.rawValue)
    if closesWhenWritten || session.isDone { close() }
  }

  /// Closes once what is due has been written.
  package func closeWhenWritten() { closesWhenWritten = true }

  /// Closes at once.
  package func close() { close(nil) }

  private func close(_ fault: String?) {
    guard phase != .closed else { return }
    phase = .closed
    self.fault = fault
    tls?.shutdown()
    tls = nil
    session = nil
    if descriptor >= 0 { Glibc.close(descriptor) }
    descriptor = -1
  }

  private func shakeHands() {
    guard let tls else { return }
    do {
      switch try tls.handshake() {
      case .done: break
      case .wantsRead: return register(EPOLLIN.rawValue)
      case .wantsWrite: return register(EPOLLIN.rawValue | EPOLLOUT.rawValue)
      }
      guard tls.alpnIsH2 else { return close("the client does not offer h2 by ALPN") }
      session = try ServerSession(settings: settings)
      phase = .open
    } catch let fault as TLSFault { close(fault.description) } catch { close("\(error)") }
  }

  private func register(_ events: UInt32) {
    guard events != registeredEvents else { return }
    registeredEvents = events
    _ = interest.modify(descriptor, events)
  }
}
