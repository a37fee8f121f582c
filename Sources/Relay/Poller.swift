import CLinux
import Glibc

/// The epoll set of the wheel: everything that can wake the worker is in it, with a tag that says who it is.
package final class Poller {
  /// The descriptor, for those who enter their own sockets.
  package let descriptor: Int32
  private var events: [epoll_event]

  package init() throws(Failure) {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard descriptor >= 0 else {
      throw Failure(.inputOutput, "epoll_create1: \(String(cString: strerror(errno)))")
    }
    events = Array(repeating: epoll_event(), count: 64)
  }

  deinit { close(descriptor) }

  /// Enters a descriptor that is read when it reports.
  package func watch(_ readable: Int32, tag: UInt64) {
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.u64 = tag
    epoll_ctl(descriptor, EPOLL_CTL_ADD, readable, &event)
  }

  /// Waits until something reports or the time is over (nil: for ever), and hands over the tags.
  ///
  /// `epoll_pwait2` counts in nanoseconds; the look after a change needs tenths of a millisecond.
  package func wait(_ timeout: Duration?, _ body: (UInt64) -> Void) {
    var count: Int32
    if let timeout {
      let (seconds, attoseconds) = max(timeout, .zero).components
      var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
      count = nudged_epoll_wait(descriptor, &events, Int32(events.count), &time)
    } else {
      count = nudged_epoll_wait(descriptor, &events, Int32(events.count), nil)
    }
    // EINTR: the signal itself comes through a descriptor of its own.
    count = max(count, 0)
    for index in 0..<Int(count) { body(events[index].data.u64) }
  }
}
