import Foundation
import Testing

@testable import nudged_bench

/// The built program against the built worker and simulator.
@Suite struct BenchTests {
  private let folder: URL

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "nudged-bench-tests-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  @Test func everyMeasurementGivesLinesThatCanBeRead() throws {
    defer { try? FileManager.default.removeItem(at: folder) }
    let runner = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let program = Process()
    let beside = URL(filePath: runner).deletingLastPathComponent().appending(path: "nudged-bench")
    program.executableURL =
      FileManager.default.isExecutableFile(atPath: beside.path)
      ? beside
      : URL(filePath: FileManager.default.currentDirectoryPath).appending(path: ".build/debug/nudged-bench")
    program.arguments = [
      "--quick", "--rows", "50", "--runs", "1", "--folder", folder.path, "--ceiling", "/nonexistent",
    ]
    let output = Pipe()
    program.standardOutput = output
    try program.run()
    let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
    program.waitUntilExit()
    #expect(program.terminationStatus == 0)

    let rows = text.split(separator: "\n").filter { $0.hasPrefix("|") }.map { row in
      row.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false).map {
        $0.trimmingCharacters(in: .whitespaces)
      }
    }
    #expect(rows.first == Table.heading)
    let lines = rows.dropFirst(2)
    #expect(lines.count >= 25)
    for line in lines {
      #expect(line.count == Table.heading.count)
      let figure = line[1].prefix { $0 != " " }.replacing(",", with: "")
      #expect((Double(figure) ?? -1) >= 0, "\(line)")
      #expect(line[4].isEmpty ? line[5].isEmpty : ["yes", "no"].contains(line[5]), "\(line)")
      #expect(line[2].isEmpty == line[3].isEmpty, "\(line)")
    }
    let left = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(left.isEmpty)
  }
}
