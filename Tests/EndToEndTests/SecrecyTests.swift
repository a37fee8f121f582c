import Foundation
import Testing

@Suite("Secrecy")
struct SecrecyTests {
  @Test(
    "no token, provider token, key or message text is in any log or status, at the level debug, whatever goes wrong"
  )
  func logs() async throws {
    try await scenario { s in
      let rules = [
        Rule(token: token(2), [.answer(400, reason: "BadDeviceToken")]),
        Rule(token: token(3), [.answer(410, reason: "Unregistered")]),
        Rule(token: token(4), [.reset(.internal)]), Rule(token: token(5), times: 1, [.reset(.refused)]),
        Rule(token: token(6), [.answer(400, reason: "TopicDisallowed")]),
        Rule(token: token(7), [.answer(403, reason: "InvalidProviderToken")]),
      ]
      let peer = try await s.peer(.python, PeerScript(rules: rules))
      for number in 1...7 { try s.backend.register("phone-\(number)", token: token(number)) }
      let marker = "Xyzzy-Plugh"
      for number in 1...7 {
        try s.backend.nudge([
          "title": .text("\(marker) title"), "body": .text("\(marker) body"),
          "data": .text(#"{"m":"\#(marker)"}"#),
          "device_id": .text("phone-\(number)"),
        ])
      }
      let bad: [KeyValuePairs<String, Value>] = [
        ["title": .text(marker), "data": .text(#"{"m":"\#(marker)"#)],
        ["title": .text(marker), "aps": .text(marker)],
        ["title": .text(marker), "body": .textBytes("58797a7a792d506c7567680041")],
        ["title": .text(marker), "data": .text(#"{"\#(marker)":1,"aps":1}"#)],
        ["title": .text(String(repeating: marker, count: 500))],
        ["title": .text(marker), "kind": .text("kind-\(marker)")],
      ]
      for columns in bad { try s.backend.nudge(columns) }
      let manager = try ServiceManager(s.path("notify"))
      let keyFile = s.path("key.p8")
      let key = try String(contentsOfFile: s.credentials.providerKey, encoding: .utf8)
      try key.write(toFile: keyFile, atomically: true, encoding: .utf8)
      let settings = s.settings(production: peer).map { $0 == s.credentials.providerKey ? keyFile : $0 }
      let worker = try s.start(["run"] + settings, environment: ["NOTIFY_SOCKET": manager.name])
      try await eventually("the last is refused") {
        try s.backend.count("select count(*) from nudge_attempt where status = 403") == 1
          && s.backend.states()["invalid"] == bad.count
      }
      // A key that lost its last line, and so one that is broken in the middle.
      try key.split(separator: "\n").dropLast().joined(separator: "\n").write(
        toFile: keyFile, atomically: true, encoding: .utf8)
      try await eventually("the bad key is said", state: { worker.errors }) {
        worker.errors.contains("new signing key cannot be used")
      }
      try await manager.waitForStatus("production refuses our credentials")
      worker.signal(15)
      try await worker.wait()
      let log = worker.errors + worker.output + manager.messages.flatMap(\.lines).joined(separator: "\n")
      #expect(!log.isEmpty)
      for number in 1...7 { #expect(!log.lowercased().contains(token(number).suffix(16)), "token \(number)") }
      #expect(!log.contains(marker))
      let bearer = try #require(
        try peer.requests().first?.header("authorization")?.dropFirst("bearer ".count))
      for part in bearer.split(separator: ".") { #expect(!log.contains(part)) }
      for line in key.split(separator: "\n") where !line.hasPrefix("---") { #expect(!log.contains(line)) }
    }
  }

  @Test("a log is one line an event, key=value, with control characters escaped")
  func shape() async throws {
    try await scenario { s in
      let peer = try await s.peer(
        .python, PeerScript(rules: [Rule([.answer(400, body: #"{"reason":"a\nlevel=error \u001b[31m b"}"#)])])
      )
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge(["title": "T", "kind": "x\ny\u{1b}[31m"])
      let id = try s.backend.nudge()
      let log = try await s.drain(production: peer)
      let attempt = try #require(try s.backend.attempts(id).first)
      #expect(attempt["status"] == 400)
      #expect(attempt["reason"].text?.contains("level=error") == true)
      #expect(!log.isEmpty)
      for line in log.split(separator: "\n") {
        #expect(line.contains("="), "\(line)")
        #expect(!line.hasPrefix("level=error"))
        #expect(!line.unicodeScalars.contains { $0.value < 0x20 || $0.value == 0x7f }, "\(line)")
      }
    }
  }
}
