import CLinux
import Glibc

/// SIGTERM and SIGINT as a descriptor, so that they are an event of the loop like any other.
package final class Signals {
  package let descriptor: Int32

  /// Blocks the signals in this thread and in all that it starts later.
  package init() throws(Failure) {
    // A peer or a reader that has gone is an error of the write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    // Nor is a file that may not grow (`ulimit -f`): the write fails, as on a full disk.
    signal(SIGXFSZ, SIG_IGN)
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGTERM)
    sigaddset(&set, SIGINT)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    descriptor = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    guard descriptor >= 0 else {
      throw Failure(.inputOutput, "signalfd: \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  /// Waits for one of the signals; false when none came in that time.
  package func wait(_ limit: Duration) throws(Failure) -> Bool {
    let poller = try Poller()
    poller.watch(descriptor, tag: 0)
    var came = false
    poller.wait(limit) { _ in came = true }
    return came && take() > 0
  }

  /// How many of the signals have come since the last call.
  package func take() -> Int {
    var count = 0
    var info = signalfd_siginfo()
    while read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0 { count += 1 }
    return count
  }
}
