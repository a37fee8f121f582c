import Foundation
import Testing

/// `deploy/examples/turn.*` as somebody would try them: the worker, the simulator as APNs and as the phone.
@Suite("A turn by the examples")
struct TurnExampleTests {
  @Test(
    "starts a card, updates it, and ends it with the reply, though the phone adopts it late",
    arguments: ["turn.py", "turn.mjs"])
  func turn(example: String) async throws {
    try await scenario { s in
      try s.backend.run("drop table message")
      try s.backend.run("create table message (id text primary key, conversation_id text, text text)")
      try await register(s, [:])
      try await register(s, ["--kind": "activity_start", "--scope": "TurnAttributes"])
      let simulator = try await startSimulator(s)
      let settings = try String(contentsOfFile: s.path("sim/settings.env"), encoding: .utf8)
        .matches(of: /([A-Z_]+)=(\S+)/).map { (String($0.1), String($0.2)) }
      let worker = try s.start(
        ["run", "--database", s.database], environment: Dictionary(uniqueKeysWithValues: settings))

      let message = "What's \"new\" in Tromsø? 🎣\n.quit; -- '"
      let play = try s.run(
        example,
        [try interpreter(example), "\(Paths.package)/deploy/examples/\(example)", s.database, message, "0.1"])
      #expect(try await play.wait() == .code(0), "\(play.errors)")
      let record = play.output.trimmingCharacters(in: .whitespacesAndNewlines)
      #expect(
        try s.backend.value("select text from message where id = ?", [.text(record)]).text
          == "You said: \(message)")

      try await eventually("all is settled", state: { worker.errors + simulator.output }) {
        try s.backend.count("select count(*) from nudge_outbox where state in ('pending', 'waiting')") == 0
          && s.backend.count("select count(*) from nudge_attempt where outcome is null") == 0
      }
      // Each kind once; an update is either sent or made pointless by what came later.
      let sent = try s.backend.run(
        "select kind, count(*) as sent from nudge_audit where outcome = 'accepted' and kind <> 'activity_update' group by kind"
      )
      #expect(
        sent.map { "\($0["kind"].text ?? "") \($0["sent"].integer ?? 0)" }
          == ["activity_end 1", "activity_start 1", "alert 1"])
      #expect(
        try s.backend.count(
          "select count(*) from nudge_audit where outcome = 'accepted' or (kind = 'activity_update' and state = 'superseded')"
        )
          == 5)
      // The phone has shown all that Apple accepted, the reply last.
      try await eventually("the end is on the card", state: { simulator.output }) {
        simulator.output.contains(
          "Assistant | status: You said: What's \"new\" in Tromsø? 🎣")
      }
      #expect(simulator.output.contains("Live Activity 1 adopted by phone-1"))
      #expect(!simulator.output.contains("dropped"), "\(simulator.output)")
    }
  }

  private func register(_ s: Scenario, _ more: [String: String]) async throws {
    let token = String(repeating: more.isEmpty ? "a1" : "b2", count: 32)
    let flags = ["--device", "phone-1", "--topic", "com.example.chat", "--token", token]
    let result = try await s.nudged(
      ["register", "--database", s.database] + flags + more.flatMap { [$0.key, $0.value] })
    #expect(result.exit == .code(0), "\(result.errors)")
  }

  private func startSimulator(_ s: Scenario) async throws -> Child {
    let products = URL(filePath: try Paths.nudged()).deletingLastPathComponent().path
    let simulator = try s.run(
      "simulator",
      [
        "\(products)/apns-simulator", "--directory", s.path("sim"), "--adopt", s.database, "--adopt-after",
        "500ms",
      ])
    try await eventually("the simulator listens", state: { simulator.errors }) {
      FileManager.default.fileExists(atPath: s.path("sim/settings.env"))
    }
    return simulator
  }

  private func interpreter(_ example: String) throws -> String {
    example.hasSuffix(".py") ? Paths.python : try Paths.program("node")
  }
}
