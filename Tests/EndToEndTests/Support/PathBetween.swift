import Foundation

/// A TCP proxy between nudged and a peer: a path that can be lost without a word.
final class PathBetween {
  let port: Int
  private let child: Child
  private let logPath: String

  var url: String { "https://127.0.0.1:\(port)" }

  init(to peer: TestPeer, in scenario: Scenario) async throws {
    let logPath = scenario.path("proxy.log")
    self.logPath = logPath
    let child = try scenario.run(
      "proxy", [Paths.python, "\(Paths.peers)/proxy.py", "--target", "\(peer.port)", "--log", logPath])
    self.child = child
    try await eventually("the proxy listens", state: { child.errors }) { child.output.contains("\n") }
    struct Listening: Decodable { let port: Int }
    port = try JSONDecoder().decode(Listening.self, from: Data(child.output.utf8)).port
  }

  /// Nothing is forwarded on the connections that are open now, and neither end hears of it.
  func stall() async throws { try await say("stall") }
  /// What was held is forwarded.
  func resume() async throws { try await say("resume") }
  /// New connections are closed at once.
  func refuse() async throws { try await say("refuse") }

  private func say(_ word: String) async throws {
    let before = count(word)
    try child.write(line: word)
    try await eventually("the proxy obeys \(word)") { count(word) > before }
  }

  /// How many connections were `forwarded`, or `refused`, or how often a word was obeyed.
  func count(_ word: String) -> Int {
    let log = (try? String(contentsOfFile: logPath, encoding: .utf8)) ?? ""
    return log.split(separator: "\n").filter { $0 == word }.count
  }
}
