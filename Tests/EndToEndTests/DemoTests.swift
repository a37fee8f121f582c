import Foundation
import Testing

@Suite("The demo")
struct DemoTests {
  @Test("the demo tells the whole story, ends with 0 and leaves nothing behind")
  func demo() async throws {
    try await scenario(migrated: false) { s in
      let before = try DemoTests.folders()
      let products = URL(filePath: try Paths.nudged()).deletingLastPathComponent().path
      let demo = try s.run(
        "demo",
        ["/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "\(Paths.package)/scripts/demo", products])
      let exit = try await demo.wait(within: .seconds(120))
      #expect(exit == .code(0), "\(demo.errors)")
      for words in [
        "Assistant | The report is ready.", "wrong_host", "dead_token", "job_finished without heartbeat",
        "10000     10000", "interrupted", "that Apple's side has seen: 1",
        "Live Activity 1 start: Oslo | status: Reading", "adopted by phone", "superseded  by nudge",
        "Z: Oslo | status: Take the 8:02, it is direct.",
      ] {
        #expect(demo.output.contains(words), "\(words) is missing in:\n\(demo.output)")
      }
      // The phone drops nothing, and no state goes out that a newer one has replaced.
      #expect(!demo.output.contains("dropped"), "\(demo.output)")
      #expect(!demo.output.contains("status: Asking for trains |"), "\(demo.output)")
      // The README's transcript is what it prints, but for numbers and what is left out.
      let printed = Set(demo.output.split(separator: "\n").map(DemoTests.normalized))
      for block in try Readme().blocks where block.language == "console" {
        for line in block.text.split(separator: "\n").map(DemoTests.normalized)
        where !line.isEmpty && line != "..." && !line.hasPrefix("$") {
          #expect(printed.contains(line), "\(line)")
        }
      }
      // Nothing of it stays: the folder's name is new, so it can only be the demo's own.
      #expect(try DemoTests.folders().subtracting(before).isEmpty)
    }
  }

  private static func normalized(_ line: Substring) -> String {
    line.replacing(/[0-9]+/, with: "0").split(separator: " ").joined(separator: " ")
      .replacing(/-+/, with: "-")
  }

  private static func folders() throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: "/tmp").filter { $0.hasPrefix("nudged-demo.") })
  }
}
