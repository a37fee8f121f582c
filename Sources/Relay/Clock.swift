import Glibc

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
    now: { ContinuousClock.now })
}

extension Duration {
  /// Whole milliseconds, rounded down.
  package var milliseconds: Int64 {
    components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
  }
}
