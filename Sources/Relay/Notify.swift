import CLinux
import Glibc

/// Tells the service manager how the worker is: datagrams to the socket that it names (`man 3 sd_notify`).
///
/// Without such a socket nothing is done. Sending never waits.
package final class Notify {
  /// The outcomes since the start, for the status.
  var tally = Tally()
  /// `struct sockaddr_un` of the manager's socket.
  private let address: [UInt8]
  /// -1 where there is nobody to tell.
  private let descriptor: Int32
  /// How long the manager waits for a sign of life; nil when it does not.
  private let watchdog: Duration?
  /// When the last sign of life was given.
  private var beat: ContinuousClock.Instant?
  /// What could not be delivered yet, of what must be.
  private var owed: [String] = []
  private var isReady = false
  private var status = ""
  private var statusDue: ContinuousClock.Instant?
  /// Something has happened since the status was made.
  private var isStale = false

  /// - Parameters:
  ///   - environment: of the process; `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` count.
  ///   - process: our own id; a watchdog for another process is none.
  package init(environment: [String: String], process: Int32 = getpid()) {
    address = Notify.address(environment["NOTIFY_SOCKET"] ?? "") ?? []
    descriptor = address.isEmpty ? -1 : socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isForUs = environment["WATCHDOG_PID"].map { $0 == "\(process)" } ?? true
    let microseconds = environment["WATCHDOG_USEC"].flatMap(Int64.init) ?? 0
    watchdog = descriptor >= 0 && isForUs && microseconds > 0 ? .microseconds(microseconds) : nil
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  // MARK: Called from the loop

  /// The loop has come round: gives a sign of life well before half of the manager's time is over, and delivers
  /// what could not be delivered before.
  func turn(now: ContinuousClock.Instant) {
    while let first = owed.first, deliver(first) { owed.removeFirst() }
    guard let watchdog, beat.map({ now - $0 >= watchdog / 4 }) ?? true else { return }
    beat = now
    _ = deliver("WATCHDOG=1")
  }

  /// Shows the state in words, at most once a second.
  func show(_ words: @autoclosure () -> String, now: ContinuousClock.Instant) {
    guard descriptor >= 0 else { return }
    isStale = statusDue.map { now < $0 } ?? false
    guard !isStale else { return }
    statusDue = now + .seconds(1)
    let text = "STATUS=" + Log.escaped(String(words().prefix(500)))
    if text != status && deliver(text) { status = text }
  }

  /// When the loop has to come round although nothing happens.
  ///
  /// A loop that comes round more often gives its signs of life then, and is never woken for them.
  var deadline: ContinuousClock.Instant? {
    let next = watchdog.flatMap { watchdog in beat.map { $0 + watchdog * 3 / 8 } }
    guard isStale, let statusDue else { return next }
    return min(statusDue, next ?? statusDue)
  }

  // MARK: What happens once

  /// The worker is up, or up again after a reload.
  func announceReady() {
    isReady = true
    announce("READY=1")
  }

  /// A reload begins; without effect before the worker is up.
  func announceReload() {
    guard isReady else { return }
    announce("RELOADING=1\nMONOTONIC_USEC=\(Clock.monotonicMicroseconds)")
  }

  /// The worker was told to stop.
  func announceStopping() { announce("STOPPING=1") }

  private func announce(_ lines: String) {
    guard descriptor >= 0 else { return }
    guard owed.isEmpty, deliver(lines) else { return owed.append(lines) }
  }

  // MARK: The socket

  /// Whether there is nothing to be done about it any more: it was sent, or nobody reads there.
  private func deliver(_ lines: String) -> Bool {
    let text = Array(lines.utf8)
    let sent = address.withUnsafeBytes { address in
      sendto(
        descriptor, text, text.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL),
        address.assumingMemoryBound(to: sockaddr.self).baseAddress, socklen_t(address.count))
    }
    return sent >= 0 || errno != EAGAIN && errno != EINTR
  }

  /// The family, then the path, or, for an abstract name, a NUL byte and the name (`man 7 unix`); nil for what is
  /// no address.
  private static func address(_ name: String) -> [UInt8]? {
    var bytes = withUnsafeBytes(of: sa_family_t(AF_UNIX)) { Array($0) }
    switch name.utf8.first {
    case UInt8(ascii: "/"): bytes += Array(name.utf8) + [0]
    case UInt8(ascii: "@"): bytes += [0] + Array(name.utf8.dropFirst())
    default: return nil
    }
    return bytes.count <= MemoryLayout<sockaddr_un>.size ? bytes : nil
  }
}
