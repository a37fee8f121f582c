import Outbox

/// How a command of `nudged` ends; the raw value is the exit code, after `sysexits.h`.
package enum ExitCode: Int32, Sendable {
  case success = 0
  /// Wrong arguments (`EX_USAGE`).
  case usage = 64
  /// The database is malformed, or its schema is not one this program knows (`EX_DATAERR`).
  case malformedDatabase = 65
  /// There is no such database (`EX_NOINPUT`).
  case noDatabase = 66
  /// A host refuses or cannot be reached, or rows are due and nobody sends them (`EX_UNAVAILABLE`).
  case unavailable = 69
  /// Reading or writing failed (`EX_IOERR`).
  case inputOutput = 74
  /// Another worker holds the database (`EX_TEMPFAIL`).
  case alreadyRunning = 75
  /// The settings are wrong or incomplete (`EX_CONFIG`).
  case configuration = 78
}

/// Why a command ended early, in words for the person who has to act on it.
package struct Failure: Error, CustomStringConvertible, Sendable {
  package let exitCode: ExitCode
  /// What happened, where, and what to do next.
  package let message: String

  package init(_ exitCode: ExitCode, _ message: String) {
    self.exitCode = exitCode
    self.message = message
  }

  package var description: String { message }
}

extension Failure {
  /// The exit code for what is wrong with a database file.
  package init(_ fault: DatabaseFault) {
    switch fault.kind {
    case .missing: self.init(.noDatabase, fault.message)
    case .malformed, .refused: self.init(.malformedDatabase, fault.message)
    case .inputOutput, .busy: self.init(.inputOutput, fault.message)
    }
  }
}
