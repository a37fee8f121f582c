import Outbox
import Relay

/// `nudged migrate`: the tables come, or go.
struct Migrate: Command {
  var database: String
  var remove: Bool

  static func parse(_ given: Given) throws(Failure) -> Migrate {
    Migrate(database: try Missing.requireDatabase(given), remove: given.has("remove"))
  }

  func run() throws(Failure) -> Outcome {
    if remove {
      let wasThere = try Failure.wrap { () throws(DatabaseFault) in
        try Migration.remove(databaseAt: database)
      }
      return Outcome(
        text: wasThere
          ? "removed the nudge tables from \(database)\n"
          : "no nudge tables in \(database): nothing to remove\n")
    }
    let applied = try Failure.wrap { () throws(DatabaseFault) in
      try Migration.apply(databaseAt: database)
    }
    let version = "schema version \(Migration.newestVersion)"
    return Outcome(
      text: applied.isEmpty
        ? "\(database) is up to date: \(version)\n" : "\(database) now has \(version)\n")
  }
}
