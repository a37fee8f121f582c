import Glibc
import Outbox
import Relay

/// `nudged settle`: what an old copy of the database would send again is ended instead.
struct Settle: Command {
  var database: String
  var before: Moment
  var dryRun: Bool

  static let options = [
    Option(
      name: "before", value: "TIME", help: "settle what was written before", initial: nil,
      commands: [.settle], isSetting: false),
    Option(
      name: "dry-run", value: nil, help: "only say how many there are", initial: nil, commands: [.settle],
      isSetting: false),
  ]

  static func parse(_ given: Given) throws(Failure) -> Settle {
    let database = try Missing.requireDatabase(given)
    guard let before = given["before"] else {
      throw Failure(
        .usage,
        "--before says what to settle: --before 2h for all that was written more than two hours ago\n"
          + "`nudged help settle` lists the flags")
    }
    return Settle(database: database, before: try before.pastMoment(), dryRun: given.has("dry-run"))
  }

  func run() throws(Failure) -> Outcome {
    let time = try before.resolvedInPast(now: Clock.system.wall(), flag: "--before")
    let text = WallTime.text(time)
    let counts = try settle(before: time, text: text)
    guard counts.all > 0 else {
      return Outcome(text: "nothing to settle: no nudge written before \(text) is pending or waiting\n")
    }
    let verb = dryRun ? "would settle" : "settled"
    var lines =
      "\(verb) \(counts.all) \(counts.all == 1 ? "nudge" : "nudges") written before \(text) "
      + "(\(counts.pending) pending, \(counts.waiting) waiting): "
      + "\(counts.all - counts.withAttempts) as cancelled, \(counts.withAttempts) with attempts as attempted\n"
    if let worker = WorkerLock.holder(databasePath: database) {
      lines += "A worker runs (pid \(worker)): what it claimed before this was sent. See `nudged audit`.\n"
    }
    return Outcome(text: lines)
  }

  private func settle(before time: Int64, text: String) throws(Failure) -> Withdrawal.Counts {
    var settled: Int64 = 0
    do throws(DatabaseFault) {
      var withdrawal = try Withdrawal(databaseAt: database, before: time, text: text, dryRun: dryRun)
      if dryRun {
        try withdrawal.look()
        return withdrawal.counts
      }
      while true {
        let start = Clock.system.now()
        guard try withdrawal.step() else { return withdrawal.counts }
        settled = withdrawal.counts.all
        // The lock is left free for as long as it was held, and long enough for whoever sleeps between two tries.
        let held = Clock.system.now() - start
        usleep(UInt32(clamping: max(held.milliseconds, 10) * 1000))
      }
    } catch {
      let failure = Failure(error)
      guard settled > 0 else { throw failure }
      throw Failure(
        failure.exitCode,
        "\(failure.message)\n\(settled) nudges are settled; the same command settles the rest")
    }
  }
}
