import Foundation
import Glibc

/// `strace`, which reaches into a program without hooks in it: it kills at a system call, and it records the calls in
/// their order.
///
/// With `-D` the traced program stays the direct child, so that its pid and its exit are those of the `Child`. A signal
/// that is injected on entry to a call is SIGKILL here, and then the kernel does not run the call any more.
enum Strace {
  /// The command that runs `command` and kills it on entry to the `number`th of `calls` (comma between names).
  static func killing(at calls: String, _ number: Int, _ command: [String]) throws -> [String] {
    [
      try Paths.program("strace"), "-D", "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(calls)", "-e",
      "inject=\(calls):signal=SIGKILL:when=\(number)",
    ] + command
  }

  /// The command that runs `command` and records `calls`, with the files that descriptors stand for, in the file `log`.
  static func recording(_ calls: String, to log: String, _ command: [String]) throws -> [String] {
    [try Paths.program("strace"), "-D", "-f", "-qq", "-yy", "-s", "0", "-o", log, "-e", "trace=\(calls)"]
      + command
  }

  /// Attaches to a running worker, so that it dies on entry to the `number`th of `calls` from now on.
  static func kill(_ worker: Child, at calls: String, _ number: Int = 1, in scenario: Scenario) async throws {
    let strace = try scenario.run(
      "strace-\(worker.pid)",
      [
        try Paths.program("strace"), "-f", "-o", "/dev/null", "-p", "\(worker.pid)", "-e", "trace=\(calls)",
        "-e",
        "inject=\(calls):signal=SIGKILL:when=\(number)",
      ])
    try await eventually("strace is attached", state: { strace.errors }) {
      // The worker may meet its end, and with it strace, before this looks.
      if strace.errors.contains("attached") { return true }
      guard strace.isRunning else { throw Failure("strace: \(strace.errors)") }
      return false
    }
  }
}
