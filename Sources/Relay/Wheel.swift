import APNs
import CLinux
import Outbox

/// The worker: one thread, one loop. Each turn is: wait; feed what the sockets brought to TLS and HTTP/2;
/// collect the answers; one transaction that settles what was answered and claims what comes next; write out
/// the new requests. No lock is held and no statement is open while it waits.
package final class Wheel {
  let configuration: Configuration
  let clock: Clock
  let log: Log
  let poller: Poller
  let signals: Signals
  let keys: Keys
  let notify: Notify
  let watch: DatabaseWatch
  let network: Network
  let dispatch: Dispatch
  let store: Store

  /// The two clocks, read once after each wait.
  var now: ContinuousClock.Instant
  var wall: Int64
  /// What they showed when they were compared last.
  var compared: (now: ContinuousClock.Instant, wall: Int64)

  /// What an earlier worker left in flight has been settled.
  var hasRecovered = false
  /// Ends of attempts that are not in the database yet.
  var finishes: [Finish] = []
  /// Attempts that were answered with 429 TooManyRequests and whose device is to be paused.
  var throttledAttempts: [Int64] = []
  /// Whether a claim may find something; cleared by a look that finds nothing.
  var mayHaveWork = true
  /// The last look had nobody to look for.
  var isCrowded = false
  /// How many of the next transactions take the lock first.
  var turnsToLockFirst = 0
  var lock: LockShare
  /// How long the last claim read before it took the lock: the next turn may begin so much earlier.
  var readingTime: Duration = .zero
  var turnAllowedAt: ContinuousClock.Instant { lock.freeAt - readingTime }
  /// Why the database cannot be written, as it was logged; nil while all is well.
  var databaseTrouble: String?
  /// The database could be opened for reading only.
  var isBarred = false
  /// The next wall time at which a row becomes due or runs out.
  var nextTime: Int64?
  var nextPoll: ContinuousClock.Instant
  var nextRetention: ContinuousClock.Instant
  /// When rows that wait are looked through next for those whose time has run out.
  var nextExpiry: ContinuousClock.Instant
  /// Somebody has committed something that may concern rows which were passed, and when those may be looked at
  /// anew.
  var wantsRescan = false
  var rescanAllowedAt: ContinuousClock.Instant
  /// Something was claimed since memory was given back last; so does a start leave some.
  var holdsMemory = true
  /// The program was started, or a connection made, since its pages were given back last.
  var holdsProgram = true
  /// When an answer or a claim happened last.
  var lastProgress: ContinuousClock.Instant
  /// When the worker gives up waiting for answers; nil while it runs.
  var stopDeadline: ContinuousClock.Instant?
  var mustStopNow = false

  private var ready: [UInt64] = []
  var nextLinkTag = Tag.firstLink

  /// What the poller reports.
  enum Tag {
    static let signals: UInt64 = 0
    static let database: UInt64 = 1
    static let resolver: UInt64 = 2
    static let keys: UInt64 = 3
    static let firstLink: UInt64 = 16
  }

  /// How the wheel came to its end.
  enum End {
    case stopped
    /// Nothing is left that is due.
    case drained
    /// Rows are left, because of this.
    case leftRows(String)
    /// Another file stands at the database's path.
    case databaseReplaced(leftovers: StaleLog?)
    /// Another state of the database was put into the same file.
    case databaseRestored
    /// The database can only be read through the connection that there is; nothing is in hand.
    case databaseBarred
    case databaseMissing
  }

  init(
    _ configuration: Configuration, hosts: [Host], store: Store, watch: DatabaseWatch, poller: Poller,
    signals: Signals, keys: Keys, notify: Notify, clock: Clock, log: Log
  ) throws(Failure) {
    self.configuration = configuration
    self.store = store
    self.watch = watch
    self.poller = poller
    self.signals = signals
    self.keys = keys
    self.notify = notify
    self.clock = clock
    self.log = log
    do {
      network = try Network(
        caFile: configuration.caFile, epoll: poller.descriptor, resolverTag: Tag.resolver,
        answerTimeout: configuration.answerTimeout)
      dispatch = try Dispatch(hosts: hosts, storeFor: configuration.storeFor, clock: clock, log: log)
    } catch {
      throw Failure(.configuration, error.words)
    }
    now = clock.now()
    wall = clock.wall()
    compared = (now, wall)
    lock = LockShare(now: now)
    nextPoll = now
    nextRetention = now + .seconds(60)
    nextExpiry = now
    rescanAllowedAt = now
    lastProgress = now
    watch.beginLooks(now: now)
    poller.watch(signals.descriptor, tag: Tag.signals)
    if watch.descriptor >= 0 { poller.watch(watch.descriptor, tag: Tag.database) }
    if keys.descriptor >= 0 { poller.watch(keys.descriptor, tag: Tag.keys) }
  }

  /// Turns until it is told to stop, or, with `--drain`, until nothing is due.
  func run() throws(Failure) -> End {
    while true {
      ready.removeAll(keepingCapacity: true)
      poller.wait(timeToWait()) { ready.append($0) }
      now = clock.now()
      wall = clock.wall()
      noticeClockStep()
      notify.turn(now: now)
      for tag in ready { take(tag) }
      if let due = keys.due, due <= now { reloadKeys(isAsked: false) }
      for host in dispatch.hosts {
        for link in host.links where link.connection.deadline.map({ $0 <= now }) ?? false { advance(link) }
      }
      if let end = try lookAround() { return end }
      collectEnds()
      maintainHosts()
      try turn()
      if let end = try changeByOthers() { return end }
      // The claim may have found a host that is needed, and a connection that is gone ends what it was given.
      collectEnds()
      maintainHosts()
      if let end = try ending() { return end }
      notify.show(statusWords, now: now)
    }
  }

  // MARK: Waiting

  /// How long nothing has to be done unless something reports.
  private func timeToWait() -> Duration {
    now = clock.now()
    var next = nextPoll
    for host in dispatch.hosts {
      for link in host.links {
        if let deadline = link.connection.deadline { next = min(next, deadline) }
      }
      if let until = host.pausedUntil(now: now) { next = min(next, until) }
    }
    if let look = watch.nextLook { next = min(next, look) }
    if let due = keys.due { next = min(next, due) }
    if let deadline = notify.deadline { next = min(next, deadline) }
    if !finishes.isEmpty {
      next = min(next, turnAllowedAt)
    } else if (mayHaveWork || wantsRescan) && stopDeadline == nil {
      let allowed = mayHaveWork ? turnAllowedAt : max(rescanAllowedAt, turnAllowedAt)
      next = min(next, isCrowded ? max(allowed, lastProgress + Wheel.patience) : allowed)
    }
    if stopDeadline == nil {
      if store.scan.hasLeftovers { next = min(next, max(nextExpiry, lock.freeAt)) }
      if let expiry = store.waitingExpiry {
        next = min(next, max(nextExpiry, lock.freeAt, now + .milliseconds(max(0, expiry - clock.wall()))))
      }
    }
    if let stopDeadline { next = min(next, stopDeadline) }
    if let nextTime {
      next = min(next, now + .milliseconds(max(0, nextTime - clock.wall())))
    }
    return max(.zero, next - now)
  }

  /// Takes what a tag stands for.
  private func take(_ tag: UInt64) {
    switch tag {
    case Tag.signals:
      let (stops, reloads) = signals.take()
      if reloads > 0 { reloadKeys(isAsked: true) }
      guard stops > 0 else { return }
      mustStopNow = stopDeadline != nil || stops > 1
      if stopDeadline == nil {
        notify.announceStopping()
        stopDeadline = now + configuration.stopTimeout
        log.notice("stopping", ["in_flight": "\(dispatch.inFlight.count)"])
      }
    case Tag.database:
      if watch.takeEvents(now: now) { lookForCommits() }
    case Tag.keys: keys.takeEvents(now: now)
    case Tag.resolver:
      network.collectNames()
      for host in dispatch.hosts {
        for link in host.links where link.connection.phase == .dialing { advance(link) }
      }
    default:
      for host in dispatch.hosts {
        if let link = host.links.first(where: { $0.tag == tag }) { advance(link) }
      }
    }
  }

  private func advance(_ link: Link) { link.connection.advance(now: now) }

  /// Collects what has ended on every connection.
  private func collectEnds() {
    for host in dispatch.hosts {
      for link in host.links {
        link.connection.takeEnds { conclude($0, on: link) }
      }
    }
    if !finishes.isEmpty {
      lastProgress = now
      mayHaveWork = true
    }
  }

  // MARK: The database from outside

  /// The slow poll, the looks after an event, and what time brings.
  private func lookAround() throws(Failure) -> End? {
    if let look = watch.nextLook, look <= now {
      watch.scheduleNextLook(now: now)
      lookForCommits()
    }
    if let nextTime, nextTime <= wall {
      self.nextTime = nil
      mayHaveWork = true
    }
    if watch.takeSuspicion() {
      if watch.file == .replaced { return .databaseReplaced(leftovers: watch.leftovers) }
      // One that is missing may be on its way back.
      nextPoll = min(nextPoll, now + .seconds(1))
    }
    guard nextPoll <= now else { return nil }
    nextPoll = now + configuration.pollInterval
    lookForCommits()
    switch watch.file {
    case .same: watch.rememberCompanions()
    case .replaced: return .databaseReplaced(leftovers: watch.leftovers)
    case .missing: return .databaseMissing
    }
    closeIdleLinks()
    giveBackMemory()
    return nil
  }

  /// Gives back what a burst has left in tables, in caches and in the allocator, once it is over.
  private func giveBackMemory() {
    guard holdsMemory, dispatch.inFlight.isEmpty, finishes.isEmpty, now - lastProgress > .seconds(2) else {
      return
    }
    holdsMemory = false
    finishes = []
    _ = dispatch.inFlight.removeAll()
    for host in dispatch.hosts {
      for link in host.links { link.connection.releaseMemory() }
    }
    store.releaseMemory()
    malloc_trim(0)
    // A start and a handshake read far more of the program than nudges do, and that would stay for good. Not after
    // each burst: the next nudge has to fetch its own part again, and is later by a tenth of a millisecond.
    guard holdsProgram else { return }
    holdsProgram = false
    ProgramPages.giveBack()
  }

  func lookForCommits() {
    do throws(StoreError) {
      guard try store.hasForeignCommit() else { return }
      lock.noticeCommit(now: now)
      try store.judgeCommits()
    } catch {
      // The look or the turn that follows meets the same fault and says so.
    }
    mayHaveWork = true
    nextTime = nil
    if store.hasPassedRows { wantsRescan = true }
  }
}
