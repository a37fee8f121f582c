import Outbox
import Relay

/// `nudged metrics`: the database in numbers, in Prometheus' text format.
struct Metrics: Command {
  var database: String

  static func parse(_ given: Given) throws(Failure) -> Metrics {
    Metrics(database: try Missing.requireDatabase(given))
  }

  func run() throws(Failure) -> Outcome {
    let now = Clock.system.wall()
    let figures = try Failure.wrap { () throws(DatabaseFault) in
      try Figures.read(databaseAt: database, now: now)
    }
    let hasWorker = WorkerLock.holder(databasePath: database) != nil
    return Outcome(text: Exposition.text(figures, now: now, hasWorker: hasWorker))
  }
}
