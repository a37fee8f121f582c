import Testing

@testable import Relay

@Suite("LockShare")
struct LockShareTests {
  private let start = ContinuousClock.now
  private var lock: LockShare

  init() { lock = LockShare(now: start) }

  private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

  @Test("it is free at the start, and after that for as long as it was held")
  mutating func once() {
    #expect(lock.freeAt == start)
    lock.release(after: at(10), now: at(13), hasMore: false)
    #expect(lock.freeAt == at(16))
    lock.release(after: at(20), now: at(24), hasMore: true)
    #expect(lock.freeAt == at(28))
  }

  @Test("commits matter only behind a transaction that could not take all, and while its share lasts")
  mutating func heed() {
    lock.release(after: at(10), now: at(13), hasMore: false)
    #expect(!lock.heedsCommits(now: at(13)))
    lock.release(after: at(20), now: at(24), hasMore: true)
    #expect(lock.heedsCommits(now: at(28)))
    #expect(!lock.heedsCommits(now: at(24 + 99 * 4)))
  }

  @Test("while others commit and much is due it is free 99 times as long, until they have paused")
  mutating func others() {
    lock.noticeCommit(now: at(12))
    lock.release(after: at(10), now: at(13), hasMore: true)
    #expect(lock.freeAt == at(32))
    lock.noticeCommit(now: at(30))
    #expect(lock.freeAt == at(50))
    lock.noticeCommit(now: at(400))
    #expect(lock.freeAt == at(13 + 99 * 3))
  }

  @Test("a disk that holds up a transaction for seconds does not hold up the next one for minutes")
  mutating func slowDisk() {
    for time in stride(from: 5000, to: 9000, by: 10) { lock.noticeCommit(now: at(time)) }
    lock.release(after: at(4900), now: at(5000), hasMore: true)
    #expect(lock.freeAt == at(5500))
    lock.release(after: at(3000), now: at(5000), hasMore: true)
    #expect(lock.freeAt == at(7000))
  }

  @Test("a commit long ago is no reason to wait longer than the lock was held")
  mutating func past() {
    lock.noticeCommit(now: at(1))
    lock.release(after: at(50), now: at(53), hasMore: true)
    #expect(lock.freeAt == at(56))
  }

  @Test("a transaction that took all that was due leaves it free once, whatever others do")
  mutating func rest() {
    lock.noticeCommit(now: at(12))
    lock.release(after: at(10), now: at(13), hasMore: false)
    #expect(lock.freeAt == at(16))
  }

  @Test(
    "while somebody else holds it, the gaps between tries grow up to 20 ms and begin anew once it was had")
  mutating func busy() {
    for gap in [1, 2, 4, 8, 16, 20, 20] {
      lock.tryLater(now: at(100))
      #expect(lock.freeAt == at(100 + gap))
    }
    lock.release(after: at(200), now: at(201), hasMore: false)
    lock.tryLater(now: at(300))
    #expect(lock.freeAt == at(301))
  }
}
