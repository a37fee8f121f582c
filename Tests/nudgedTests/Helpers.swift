import Foundation
import Relay
import SQLite
import Testing

@testable import nudged

/// A folder for one test, gone with it.
final class TemporaryFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "nudged-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }

  @discardableResult
  func write(_ name: String, _ content: some StringProtocol) throws -> String {
    try Data(content.utf8).write(to: URL(filePath: file(name)))
    return file(name)
  }

  /// A backend's database without nudge tables.
  func database() throws -> String {
    let path = try write("app.db", "")
    try Database(path: path).execute("create table message (id integer primary key)")
    return path
  }
}

/// Parses and runs in this process.
@discardableResult
func nudged(_ arguments: [String], environment: [String: String] = [:]) throws(Failure) -> Outcome {
  try Invocation.parse(arguments, environment: environment).run()
}

/// The failure that parsing or running ends with; nil when there is none.
func failure(_ arguments: [String], environment: [String: String] = [:]) -> Failure? {
  do throws(Failure) {
    try nudged(arguments, environment: environment)
    return nil
  } catch {
    return error
  }
}

/// Expects a failure of at most two lines with `code` and all of `words`.
func expectFailure(
  _ arguments: [String], environment: [String: String] = [:], _ code: ExitCode, _ words: String...,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  guard let failure = failure(arguments, environment: environment) else {
    Issue.record("\(arguments) did not fail", sourceLocation: sourceLocation)
    return
  }
  #expect(failure.exitCode == code, "\(failure.message)", sourceLocation: sourceLocation)
  for word in words {
    #expect(failure.message.contains(word), "\(failure.message)", sourceLocation: sourceLocation)
  }
  #expect(failure.message.split(separator: "\n").count <= 2, sourceLocation: sourceLocation)
}

/// The built program and what it did.
struct Child {
  var status: Int32
  var output: String
  var errors: String

  /// Beside the test runner, since both come from one build.
  static let executable: String = {
    let runner = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let beside = URL(filePath: runner).deletingLastPathComponent().appending(path: "nudged").path
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return FileManager.default.isExecutableFile(atPath: beside)
      ? beside : root.appending(path: ".build/debug/nudged").path
  }()

  /// Runs shell text in which `$nudged` is the program, with no variables but those given.
  static func shell(_ script: String, environment: [String: String] = [:]) throws -> Child {
    let process = Foundation.Process()
    process.executableURL = URL(filePath: "/bin/bash")
    process.arguments = ["-c", script]
    process.environment = ["nudged": executable, "PATH": "/usr/bin:/bin"].merging(environment) { $1 }
    let folder = try TemporaryFolder()
    let (output, errors) = (try folder.write("output", ""), try folder.write("errors", ""))
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle(forWritingAtPath: output)
    process.standardError = FileHandle(forWritingAtPath: errors)
    try process.run()
    process.waitUntilExit()
    return Child(
      status: process.terminationStatus,
      output: try String(contentsOfFile: output, encoding: .utf8),
      errors: try String(contentsOfFile: errors, encoding: .utf8))
  }
}
