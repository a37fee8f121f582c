/// How the database's write lock is shared with the backend: when the worker may ask for it again.
///
/// After each transaction the lock is left free for at least as long as it was held. A backend that goes on committing
/// would meet a worker with much to do again and again, and then has to wait for it; so there the lock is left free
/// for most of the time, until the others pause.
struct LockShare {
  /// When the worker may ask for the lock.
  var freeAt: ContinuousClock.Instant {
    guard hasMore else { return free }
    return max(free, min(shareEnds, othersCommitUntil))
  }

  /// Whether a commit of somebody else would put that off.
  func heedsCommits(now: ContinuousClock.Instant) -> Bool { hasMore && shareEnds > now }

  /// Until when the last transaction leaves it free in any case, and until when if it could not take all that is due.
  private var free: ContinuousClock.Instant
  private var shareEnds: ContinuousClock.Instant
  private var hasMore = false
  /// Until when the others count as committing all the time.
  private var othersCommitUntil: ContinuousClock.Instant
  /// The gap before the next try while somebody else holds the lock.
  private var gap = LockShare.shortestGap

  /// For how many times as long as it was held the lock is left free at most: one commit in a hundred has to wait.
  private static let share = 99
  /// But not for longer than this, whatever a slow disk has made of the transaction.
  private static let longestShare = Duration.milliseconds(500)
  /// The others pause when they have not committed for so long.
  private static let pause = Duration.milliseconds(20)
  private static let shortestGap = Duration.milliseconds(1)
  private static let longestGap = Duration.milliseconds(20)

  init(now: ContinuousClock.Instant) { (free, shareEnds, othersCommitUntil) = (now, now, now) }

  /// Somebody else has committed.
  mutating func noticeCommit(now: ContinuousClock.Instant) { othersCommitUntil = now + LockShare.pause }

  /// The worker has had the lock.
  ///
  /// - Parameter hasMore: more is due than went into the transaction.
  mutating func release(after taken: ContinuousClock.Instant, now: ContinuousClock.Instant, hasMore: Bool) {
    free = now + (now - taken)
    shareEnds = now + min((now - taken) * LockShare.share, LockShare.longestShare)
    self.hasMore = hasMore
    gap = LockShare.shortestGap
  }

  /// Somebody else has the lock.
  mutating func tryLater(now: ContinuousClock.Instant) {
    leave(until: now + gap)
    gap = min(gap * 2, LockShare.longestGap)
  }

  /// There is no use in asking before.
  mutating func leave(until time: ContinuousClock.Instant) {
    free = time
    hasMore = false
  }
}
