import Foundation
import Testing

/// A phone on the bench: an app that Xcode has installed has its alert token on the sandbox host, while the tokens
/// of its Live Activities are good on the production host only.
@Suite("Live Activities and the two hosts")
struct ActivityHostTests {
  /// Who writes what the app reports.
  enum Way: CaseIterable {
    case view, command
  }

  private func register(
    _ s: Scenario, _ way: Way, _ token: String, kind: String, scope: String?, environment: String?
  ) async throws {
    switch way {
    case .view:
      try s.backend.register(
        "phone-1", token: token, environment: environment, kind: kind, scope: scope)
    case .command:
      var arguments = [
        "register", "--database", s.database, "--device", "phone-1", "--topic", Backend.topic, "--kind", kind,
        "--token", token,
      ]
      if let scope { arguments += ["--scope", scope] }
      if let environment { arguments += ["--environment", environment] }
      let result = try await s.nudged(arguments)
      guard result.exit == .code(0) else { throw Failure("register: \(result.errors)") }
    }
  }

  /// What the app says at its launch, in the order in which iOS hands the tokens out.
  private func launch(
    _ s: Scenario, _ way: Way, startFirst: Bool, environment: String?
  ) async throws {
    for isStart in [startFirst, !startFirst] {
      try await register(
        s, way, isStart ? startToken(1) : token(1), kind: isStart ? "activity_start" : "alert",
        scope: isStart ? Backend.attributesType : nil, environment: environment)
    }
  }

  /// The hosts that are known for the phone's tokens, by kind.
  private func hosts(_ s: Scenario) throws -> [String: String] {
    var hosts: [String: String] = [:]
    for row in try s.backend.run(
      "select kind, environment || iif(proven_at is null, '', ', proven') as host from nudge_token")
    {
      hosts[row["kind"].text ?? ""] = row["host"].text ?? "unknown"
    }
    return hosts
  }

  @Test(
    "alerts on sandbox, Live Activities on production: each token finds its host once and keeps it",
    arguments: Way.allCases, [nil, "sandbox", "production"])
  func bench(_ way: Way, _ environment: String?) async throws {
    for startFirst in [true, false] {
      try await scenario { s in
        let production = try await s.peer(.python, PeerScript(tokens: [token(1): .wrong]))
        let sandbox = try await s.peer(
          .node, PeerScript(tokens: [startToken(1): .wrong, updateToken(1): .wrong]))
        try await launch(s, way, startFirst: startFirst, environment: environment)
        // Neither has taken anything away from the other.
        #expect(
          try s.backend.tokens("phone-1").map { $0["kind"].text }
            == ["activity_start", "alert"].sorted {
              ($0 == "alert" ? token(1) : startToken(1)) < ($1 == "alert" ? token(1) : startToken(1))
            })
        _ = try s.worker(production: production, sandbox: sandbox)
        for round in 1...2 {
          let alert = try s.backend.nudge(["title": "Hello"])
          let start = try s.backend.activity("start")
          for id in [alert, start] { try await s.backend.settled(id) }
          try await register(
            s, way, updateToken(1), kind: "activity_update", scope: "turn", environment: environment)
          let update = try s.backend.activity("update")
          try await s.backend.settled(update)
          #expect(
            try hosts(s) == [
              "alert": "sandbox, proven", "activity_start": "production, proven",
              "activity_update": "production, proven",
            ])
          // What the app says at its next launch outweighs nothing that was proven.
          try await launch(s, way, startFirst: startFirst, environment: environment)
          let end = try s.backend.activity("end")
          try await s.backend.settled(end)
          for (id, isFound) in [
            (alert, environment == "sandbox"), (start, environment != "sandbox"),
            (update, environment != "sandbox"), (end, true),
          ] {
            #expect(
              try s.backend.outcomes(id)
                == (isFound || (round == 2 && id != update) ? ["accepted"] : ["wrong_host", "accepted"]),
              "\(s.backend.describe(id))")
          }
          #expect(try hosts(s)["activity_update"] == nil)
        }
      }
    }
  }

  @Test("a newer update does not wait for the older one's host: it finds it itself, and no state is lost")
  func newerMeanwhile() async throws {
    try await scenario { s in
      let production = try await s.peer()
      try production.script(
        PeerScript(
          rules: [Rule(times: 1, [.hold(s.path("go")), .answer(400, reason: "BadDeviceToken")])],
          tokens: [updateToken(1): .wrong]))
      let sandbox = try await s.peer()
      try s.backend.registerUpdate(1, environment: nil)
      _ = try s.worker(production: production, sandbox: sandbox)
      let first = try s.backend.activity("update")
      try await production.waitForRequests(1)
      let second = try s.backend.activity("update", ["content_state": #"{"step":2}"#])
      try s.release("go")
      try await s.backend.settled(second)
      #expect(try s.backend.outcomes(first) == ["wrong_host"])
      #expect(try s.backend.state(first) == "attempted")
      #expect(try s.backend.outcomes(second) == ["wrong_host", "accepted"])
      #expect(try sandbox.requests().map(\.step) == [2])
    }
  }

  @Test("an update token that both hosts refuse is waited for anew")
  func setAside() async throws {
    try await scenario { s in
      let production = try await s.peer(.python, PeerScript(tokens: [updateToken(1): .wrong]))
      let sandbox = try await s.peer(.python, PeerScript(tokens: [updateToken(1): .wrong]))
      try s.backend.registerUpdate(1, environment: nil)
      _ = try s.worker(production: production, sandbox: sandbox)
      let first = try s.backend.activity("update")
      try await s.backend.settled(first)
      #expect(try s.backend.outcomes(first) == ["wrong_host", "wrong_host"])
      let end = try s.backend.activity("end")
      try await s.backend.waits(end)
      try s.backend.registerUpdate(1, token: updateToken(2), environment: nil)
      try await s.backend.settled(end)
      #expect(try s.backend.outcomes(end) == ["accepted"])
    }
  }
}
