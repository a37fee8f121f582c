import Foundation
import Testing

/// A bench with `apns-simulator` on it: both hosts, and the phones behind them, which adopt the activities that a
/// push has started.
final class Bench {
  let s: Scenario
  private let simulator: Child
  private var settings: [String: String] = [:]
  private var tokens: [String: [String: String]] = [:]
  private(set) var worker: Child?

  /// One request as the simulator has logged it.
  struct Request: Decodable {
    struct Answer: Decodable {
      let status: Int?
      let apnsID: String

      private enum CodingKeys: String, CodingKey {
        case status
        case apnsID = "apns_id"
      }
    }
    struct Phone: Decodable {
      let card: Int?
      let event: String?
      let dropped: String?
    }
    let host: String
    let answer: Answer
    let phone: Phone?
  }

  init(_ s: Scenario) async throws {
    self.s = s
    let products = URL(filePath: try Paths.nudged()).deletingLastPathComponent().path
    simulator = try s.run(
      "simulator",
      [
        "\(products)/apns-simulator", "--directory", s.path("sim"), "--log", s.path("sim.log"), "--adopt",
        s.database, "--adopt-after", "300ms", "--unknown-tokens", "reject",
      ])
    let file = s.path("sim/settings.env")
    try await eventually("the simulator listens", state: { self.simulator.errors }) {
      FileManager.default.fileExists(atPath: file)
    }
    for line in try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
      settings[parts[0]] = parts[1]
    }
    try startWorker()
  }

  func startWorker() throws {
    worker = try s.start(["run", "--database", s.database, "--poll-interval", "1h"], environment: settings)
  }

  func killWorker() { worker?.kill() }

  /// What the simulator is to think of a token from now on.
  func token(_ digits: String, _ members: [String: String]) throws {
    tokens[digits] = members
    let list = tokens.map { $1.merging(["token": $0]) { $1 } }
    // In place of the old file at once, as it is read whenever it changes.
    try JSONSerialization.data(withJSONObject: ["tokens": list])
      .write(to: URL(filePath: s.path("sim/tokens.json")), options: .atomic)
  }

  /// An app is installed on a host and reports its tokens at its launch, the one for starts first.
  func launch(_ device: String, _ number: Int, on host: String, saying environment: String?) throws {
    for (digits, kind) in [(startToken(number), "activity_start"), (Bench.alertToken(number), "alert")] {
      try token(digits, ["environment": host, "kind": kind])
      try s.backend.register(
        device, token: digits, environment: environment, kind: kind,
        scope: kind == "alert" ? nil : Backend.attributesType)
    }
  }

  static func alertToken(_ number: Int) -> String { EndToEndTests.token(number) }

  /// The update tokens that the phones have registered for an activity, once there are so many.
  func adopted(_ activity: String, by count: Int = 1) async throws -> [String] {
    var found: [String] = []
    try await eventually(
      "\(activity) is adopted by \(count)", state: { self.simulator.output.suffix(500).description }
    ) {
      found = try s.backend.run(
        "select token from nudge_token where kind = 'activity_update' and scope = ? order by device_id",
        [.text(activity)]
      ).compactMap { $0["token"].text }
      return found.count == count
    }
    return found
  }

  func requests() throws -> [Request] {
    try String(contentsOfFile: s.path("sim.log"), encoding: .utf8).split(separator: "\n")
      .map { try JSONDecoder().decode(Request.self, from: Data($0.utf8)) }
  }
}
