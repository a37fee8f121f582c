import Glibc
import HTTP2

/// A peer in a process of its own, listening on this machine.
struct Server {
  let port: UInt16
  private let child: Child

  /// Starts a program on a port that is free, and waits until it listens there.
  init(core: Core, _ command: (UInt16) throws -> [String]) throws {
    // Free it is only now, but nobody else on this machine asks for one that often.
    port = try Listener(port: 0, epoll: -1, tag: 0).port
    child = try Child(try command(port), core: core)
    let deadline = ContinuousClock.now + .seconds(60)
    while !listens() {
      guard ContinuousClock.now < deadline else {
        child.terminate()
        throw Trouble("the peer did not start")
      }
      usleep(10_000)
    }
  }

  func stop() { child.terminate() }

  /// Whether the kernel's table (`man 5 proc`) has the port in state 0A, LISTEN; a trial connection would be logged.
  private func listens() -> Bool {
    let digits = String(port, radix: 16, uppercase: true)
    let entry = " 0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits + " 00000000:0000 0A "
    return contents(of: "/proc/net/tcp")?.contains(entry) ?? false
  }
}
