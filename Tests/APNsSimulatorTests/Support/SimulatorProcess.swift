import Foundation
import Testing

/// What the tests' own machinery has to say when it cannot go on.
struct TestFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A folder of its own for a test.
final class Folder {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "apns-simulator-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  /// Writes beside the file and renames, as an editor does.
  @discardableResult
  func write(_ text: String, to name: String) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    return file(name)
  }
}

/// A program that ran to its end.
struct Ran {
  let code: Int32
  let output: String
  let errors: String
}

/// Runs a program to its end, its output into files, so that no pipe can fill up.
func run(_ program: String, _ arguments: [String], input: String = "", in folder: Folder) throws -> Ran {
  let name = UUID().uuidString
  let paths = ["out", "err", "in"].map { folder.file("\(name).\($0)") }
  try input.write(toFile: paths[2], atomically: false, encoding: .utf8)
  for path in paths[..<2] { _ = FileManager.default.createFile(atPath: path, contents: nil) }
  let process = Process()
  process.executableURL = URL(fileURLWithPath: program)
  process.arguments = arguments
  process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
  process.standardOutput = FileHandle(forWritingAtPath: paths[0])
  process.standardError = FileHandle(forWritingAtPath: paths[1])
  process.standardInput = FileHandle(forReadingAtPath: paths[2])
  try process.run()
  process.waitUntilExit()
  let texts = try paths[..<2].map {
    String(decoding: try Data(contentsOf: URL(fileURLWithPath: $0)), as: UTF8.self)
  }
  return Ran(code: process.terminationStatus, output: texts[0], errors: texts[1])
}

enum Programs {
  /// The built simulator: beside the test runner, since both come from one build.
  static func simulator() throws -> String {
    let runner = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let candidates = [
      URL(filePath: runner).deletingLastPathComponent().appending(path: "apns-simulator").path,
      "\(package)/.build/debug/apns-simulator",
    ]
    for path in candidates where FileManager.default.isExecutableFile(atPath: path) { return path }
    throw TestFailure("no built apns-simulator: run `swift build` first")
  }

  /// A program of the machine.
  static func named(_ name: String) throws -> String {
    for folder in ["/usr/local/bin", "/usr/bin", "/bin"] {
      let path = "\(folder)/\(name)"
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    throw TestFailure("\(name) is not installed: run `make deps`")
  }

  /// The root of the package, from this file's own place in it.
  static let package: String = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path
}

/// The built simulator at work in a folder of its own.
final class SimulatorProcess {
  let folder: Folder
  let directory: String
  private(set) var settings: [String: String] = [:]
  private let process = Process()

  init(
    _ arguments: [String] = [], folder: Folder? = nil, tokens: String? = nil, script: String? = nil,
    quiet: Bool = true
  ) throws {
    self.folder = try folder ?? Folder()
    directory = self.folder.file("sim")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    if let tokens { try self.folder.write(tokens, to: "sim/tokens.json") }
    var all = ["--directory", directory, "--log", self.folder.file("log.jsonl")] + arguments
    if quiet { all.append("--quiet") }
    if let script { all += ["--script", try self.folder.write(script, to: "script.json")] }
    for name in ["stdout", "stderr"] {
      _ = FileManager.default.createFile(atPath: self.folder.file(name), contents: nil)
    }
    process.executableURL = URL(fileURLWithPath: try Programs.simulator())
    process.arguments = all
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle(forWritingAtPath: self.folder.file("stdout"))
    process.standardError = FileHandle(forWritingAtPath: self.folder.file("stderr"))
    try process.run()
    // The settings appear, whole, once it listens.
    let deadline = ContinuousClock.now + .seconds(20)
    while settings.isEmpty {
      if let text = try? String(contentsOfFile: directory + "/settings.env", encoding: .utf8) {
        for line in text.split(separator: "\n") {
          let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
          settings[parts[0]] = parts[1]
        }
      }
      guard process.isRunning, ContinuousClock.now < deadline else {
        throw TestFailure("the simulator did not start: \(errors)")
      }
      usleep(2_000)
    }
  }

  deinit { if process.isRunning { process.interrupt(); process.waitUntilExit() } }

  var output: String { text("stdout") }
  var errors: String { text("stderr") }
  var log: [[String: Any]] {
    text("log.jsonl").split(separator: "\n").compactMap {
      (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
    }
  }
  var isRunning: Bool { process.isRunning }

  /// Ends it with a signal and gives its exit code.
  func end(_ signal: Int32) -> Int32 {
    kill(process.processIdentifier, signal)
    process.waitUntilExit()
    return process.terminationReason == .exit ? process.terminationStatus : -1
  }

  func url(_ host: String) -> String {
    settings[host == "sandbox" ? "NUDGED_SANDBOX_URL" : "NUDGED_PRODUCTION_URL"] ?? ""
  }
  var authority: String { settings["NUDGED_CA_FILE"] ?? "" }
  var keyFile: String { settings["NUDGED_KEY_FILE"] ?? "" }

  private func text(_ name: String) -> String {
    (try? String(contentsOfFile: folder.file(name), encoding: .utf8)) ?? ""
  }
}

/// Asks again until it is so; false after half a minute.
func eventually(_ condition: () -> Bool) -> Bool {
  let deadline = ContinuousClock.now + .seconds(30)
  while !condition() {
    if ContinuousClock.now > deadline { return false }
    usleep(2_000)
  }
  return true
}
