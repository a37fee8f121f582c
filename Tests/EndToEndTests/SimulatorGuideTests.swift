import Foundation
import Testing

/// `deploy/apns-simulator.md` as its reader would follow it.
@Suite("The simulator's guide")
struct SimulatorGuideTests {
  private static func blocks(_ language: String, in text: String) -> [String] {
    text.components(separatedBy: "```\(language)\n").dropFirst().map {
      $0.components(separatedBy: "\n```").first ?? ""
    }
  }

  private static func flags(in text: some StringProtocol) -> Set<String> {
    Set(String(text).matches(of: /--[a-z]+(?:-[a-z]+)*/).map { String($0.0) })
  }

  @Test("its files are taken, its curl command gets an answer, its flags are the program's")
  func guide() async throws {
    let text = try String(contentsOfFile: "\(Paths.package)/deploy/apns-simulator.md", encoding: .utf8)
    let products = URL(filePath: try Paths.nudged()).deletingLastPathComponent().path
    try await scenario(migrated: false) { s in
      let json = SimulatorGuideTests.blocks("json", in: text)
      try #require(json.count == 2)
      try FileManager.default.createDirectory(atPath: s.path("sim"), withIntermediateDirectories: true)
      try json[0].write(toFile: s.path("sim/tokens.json"), atomically: true, encoding: .utf8)
      try json[1].write(toFile: s.path("script.json"), atomically: true, encoding: .utf8)
      let simulator = try s.run(
        "simulator",
        [
          "\(products)/apns-simulator", "--directory", s.path("sim"), "--script", s.path("script.json"),
          "--log", s.path("log"),
        ])
      try await eventually("the simulator listens", state: { simulator.errors }) {
        FileManager.default.fileExists(atPath: s.path("sim/settings.env"))
      }
      #expect(simulator.errors == "")

      let curl = try #require(
        SimulatorGuideTests.blocks("sh", in: text).first { $0.contains("curl") })
      try curl.write(toFile: s.path("curl.sh"), atomically: true, encoding: .utf8)
      let client = try s.run(
        "curl",
        [
          "/usr/bin/env", "PATH=\(products):/usr/bin:/bin", "sh", "-ec",
          "cd '\(s.folder)' && . ./curl.sh",
        ])
      #expect(try await client.wait() == .code(0), "\(client.errors)")
      // The script's first rule is for the first request of this token.
      #expect(client.output.contains("TooManyRequests"), "\(client.output)")

      let help = try s.run("help", ["\(products)/apns-simulator", "--help"])
      #expect(try await help.wait() == .code(0))
      let table = text.split(separator: "\n").filter { $0.hasPrefix("| `--") }
        .map { $0.dropFirst().prefix { $0 != "|" } }.joined(separator: " ")
      let known = SimulatorGuideTests.flags(in: help.output).subtracting(["--help", "--version", "--flag"])
      #expect(SimulatorGuideTests.flags(in: table) == known)
    }
  }
}
