import Glibc
import Synchronization

/// The one place where the worker reads time; tests set it.
package struct Clock: Sendable {
  /// Milliseconds since 1970 UTC.
  package var wall: @Sendable () -> Int64
  /// For deadlines and ages. On Linux this is CLOCK_BOOTTIME: it never steps, and counts time spent suspended.
  package var now: @Sendable () -> ContinuousClock.Instant

  package init(wall: @escaping @Sendable () -> Int64, now: @escaping @Sendable () -> ContinuousClock.Instant)
  {
    self.wall = wall
    self.now = now
  }

  /// The machine's clocks.
  package static let system = Clock(
    wall: {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    },
    now: { Steady.now() })

  /// CLOCK_MONOTONIC in microseconds, by which systemd orders what it is told (`man 3 sd_notify`).
  static var monotonicMicroseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }
}

/// The monotonic clock, held to its word: it never goes back.
///
/// The kernel's does not. One behind `faketime` does, and a machine that was moved or restored may, and then
/// every deadline of the worker would lie as far ahead as the clock went back.
private enum Steady {
  /// The last reading that was given out, and how far the clock has gone back in all.
  private static let state = Mutex((last: ContinuousClock.now, lost: Duration.zero))

  static func now() -> ContinuousClock.Instant {
    state.withLock { state in
      let time = ContinuousClock.now + state.lost
      if time < state.last { state.lost += state.last - time }
      state.last = max(state.last, time)
      return state.last
    }
  }
}

extension Duration {
  /// Whole milliseconds, rounded down.
  package var milliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
