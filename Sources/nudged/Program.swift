import Glibc
import Relay

/// From arguments to exit code: the one place that prints.
enum Program {
  static let version = "0.1.0"

  static func run(arguments: [String], environment: [String: String]) -> Int32 {
    Process.prepareStandardStreams()
    do throws(Failure) {
      let outcome = try Invocation.parse(arguments, environment: environment).run()
      try print(outcome.text)
      return outcome.exitCode.rawValue
    } catch {
      report(error.message, underJournal: Process.logsToJournal(environment))
      return error.exitCode.rawValue
    }
  }

  /// A reader that has gone, as in `nudged devices | head -1`, has seen what it wanted.
  private static func print(_ text: String) throws(Failure) {
    guard let code = Process.write(text, to: STDOUT_FILENO), code != EPIPE else { return }
    throw Failure(
      .inputOutput,
      "the command was carried out, but standard output cannot be written: \(Process.words(code))")
  }

  private static func report(_ message: String, underJournal: Bool) {
    let prefix = underJournal ? "<\(Log.Level.error.rawValue)>" : ""
    // Messages repeat what was given, and that must not steer the terminal of whoever reads a log.
    // By scalars: CR and LF together are one Character.
    let lines = "nudged: \(message)".unicodeScalars.split(separator: "\n").map {
      prefix + TextTable.printable(String($0)) + "\n"
    }
    _ = Process.write(lines.joined(), to: STDERR_FILENO)
  }
}
