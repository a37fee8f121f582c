import Testing

@testable import nudged_bench

@Suite struct TraceTests {
  private let trace = Trace(
    """
    4711  execve("/usr/bin/nudged", [""...], 0x7ffd) = 0
    4711  write(9<socket:[815]>, ""..., 16406) = 16406
    4711  write(9<socket:[815]>, ""..., 16406) = 4000
    4711  write(9<socket:[815]>, ""..., 16406) = -1 EAGAIN (Resource temporarily unavailable)
    4711  write(7</tmp/chat.db-wal>, ""..., 24) = 24
    4712  futex(0x1, FUTEX_WAIT, 0, NULL <unfinished ...>
    4711  fdatasync(7</tmp/chat.db-wal>) = 0
    4712  <... futex resumed>) = 0
    4711  fsync(6</tmp>) = 0
    4711  +++ exited with 0 +++
    """)

  @Test func eachCallCountsOnce() {
    #expect(trace.total == 8)
    #expect(trace.calls["futex"] == 1)
  }

  @Test func bothKindsOfSyncCount() {
    #expect(trace.syncs == 2)
  }

  @Test func onlyWhatASocketTookIsSent() {
    #expect(trace.socketWrites == 2)
    #expect(trace.socketBytes == 20_406)
  }
}
