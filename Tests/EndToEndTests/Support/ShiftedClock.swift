import Foundation

/// Debian's libfaketime under a worker: its clocks are off by what this says.
final class ShiftedClock {
  private let scenario: Scenario
  private let path: String
  private let isMonotonicToo: Bool

  /// - Parameter isMonotonicToo: whether the monotonic clocks go along, as no kernel lets them.
  init(in scenario: Scenario, isMonotonicToo: Bool = true) throws {
    self.scenario = scenario
    self.isMonotonicToo = isMonotonicToo
    path = scenario.path("clock")
    try set(seconds: 0)
  }

  /// From now on the worker's clocks are so far ahead of the machine's, or behind them.
  func set(seconds: Int) throws {
    try "\(seconds < 0 ? "" : "+")\(seconds)s\n".write(toFile: path, atomically: true, encoding: .utf8)
  }

  /// Starts `nudged run`.
  func worker(_ settings: [String]) throws -> Child { try start(["run"] + settings) }

  /// Starts a command of `nudged`.
  ///
  /// The library renews the environment of the process that it comes into, and Swift finds its arguments beside the
  /// environment; so it comes into `env` first, which hands its settings on.
  func start(_ arguments: [String]) throws -> Child {
    try scenario.run(
      "worker-by-another-clock",
      [
        "/usr/bin/env", "LD_PRELOAD=\(try Self.library())", "FAKETIME_TIMESTAMP_FILE=\(path)",
        "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=\(isMonotonicToo ? 0 : 1)", "/usr/bin/env",
        try Paths.nudged(),
      ] + arguments)
  }

  private static func library() throws -> String {
    for machine in ["x86_64", "aarch64"] {
      let path = "/usr/lib/\(machine)-linux-gnu/faketime/libfaketime.so.1"
      if FileManager.default.fileExists(atPath: path) { return path }
    }
    throw Failure("faketime is not installed: run `make deps`")
  }
}
