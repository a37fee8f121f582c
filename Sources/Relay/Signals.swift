import CLinux
import Glibc

/// SIGTERM, SIGINT and SIGHUP as a descriptor, so that they are an event of the loop like any other.
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
    sigaddset(&set, SIGHUP)
    pthread_sigmask(SIG_BLOCK, &set, nil)
    descriptor = signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK))
    guard descriptor >= 0 else {
      throw Failure(.inputOutput, "signalfd: \(String(cString: strerror(errno)))")
    }
  }

  deinit { close(descriptor) }

  /// Keeps SIGHUP until there is a descriptor for it: a reload that is asked for during the start is no end.
  package static func holdReload() {
    var set = sigset_t()
    sigemptyset(&set)
    sigaddset(&set, SIGHUP)
    pthread_sigmask(SIG_BLOCK, &set, nil)
  }

  /// Waits for a signal to stop; false when none came in that time.
  package func wait(_ limit: Duration) throws(Failure) -> Bool {
    let poller = try Poller()
    poller.watch(descriptor, tag: 0)
    var came = false
    poller.wait(limit) { _ in came = true }
    return came && take().stops > 0
  }

  /// How many signals to stop (SIGTERM, SIGINT) and to reload (SIGHUP) have come since the last call.
  package func take() -> (stops: Int, reloads: Int) {
    var count = (stops: 0, reloads: 0)
    var info = signalfd_siginfo()
    while read(descriptor, &info, MemoryLayout<signalfd_siginfo>.size) > 0 {
      if info.ssi_signo == UInt32(SIGHUP) { count.reloads += 1 } else { count.stops += 1 }
    }
    return count
  }
}
