import Foundation
import Testing

@testable import nudged

/// What is installed beside the program says the same as the program.
@Suite("deploy/")
struct DeployTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "deploy")

  private func text(_ name: String) throws -> String {
    try String(contentsOf: DeployTests.folder.appending(path: name), encoding: .utf8)
  }

  @Test("the man page has every flag of `nudged help settings`, with its default")
  func flags() throws {
    let page = try text("nudged.8")
    for option in Option.of(.run) {
      let start = try #require(
        page.range(of: "Fl -\(option.name)\(option.value == nil ? "" : " Ar")"), "\(option.flag)")
      guard let initial = option.initial, !initial.contains(" "), !initial.hasPrefix("--") else { continue }
      let item = page[start.upperBound...].components(separatedBy: "\n.It ")[0]
      let words = item.split { $0.isWhitespace }.filter { !$0.hasPrefix(".") }
      let mark = try #require(words.firstIndex(of: "Default:"), "\(option.flag)")
      #expect(words[mark + 1].prefix { $0 != "." || initial.contains(".") } == initial, "\(option.flag)")
    }
  }

  @Test("the man page has every command and every exit code")
  func commands() throws {
    let page = try text("nudged.8")
    for command in CommandName.allCases { #expect(page.contains(".It Cm \(command.rawValue)"), "\(command)") }
    for code in [64, 65, 66, 69, 74, 75, 78] { #expect(page.contains("\n.It \(code)\n")) }
  }

  @Test("the man page is sound mdoc")
  func lint() throws {
    let result = try Child.shell("mandoc -Tlint -Wwarning '\(DeployTests.folder.path)/nudged.8' 2>&1")
    #expect(result.output + result.errors == "")
    #expect(result.status == 0)
  }

  @Test("the settings in the example are settings, and as they stand they are a whole configuration")
  func example() throws {
    let lines = try text("nudged.env").split(separator: "\n").filter { $0.contains(/^#?NUDGED_/) }
    var environment = Dictionary(
      uniqueKeysWithValues: lines.map { line in
        let pair = Pair.split(line.hasPrefix("#") ? String(line.dropFirst()) : String(line))
        return (pair.name, pair.value ?? "")
      })
    #expect(environment.count == 3)
    // The unit gives the key.
    let unit = try text("nudged.service")
    #expect(unit.contains("\nEnvironment=NUDGED_KEY_FILE=%d/apns-key.p8\n"))
    environment["NUDGED_KEY_FILE"] = "/run/credentials/nudged.service/apns-key.p8"
    let run = try Run.parse(Given(.run, arguments: [], environment: environment))
    #expect(run.keys.production?.id == environment["NUDGED_KEY_ID"])
  }
}
