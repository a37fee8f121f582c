import APNs
import Foundation
import Testing

@Suite("Scripted answers, as Node sees them")
struct ScriptedAnswersTests {
  @Test("every status and reason of Apple's table arrives with its body, its id and its content type")
  func everyReason() throws {
    let tokens = Reason.table.indices.map { String(format: "%04x", $0) }
    let rules = zip(tokens, Reason.table).map { "{\"token\": \"\($0)\", \"reason\": \"\($1.name)\"}" }
    let simulator = try SimulatorProcess(script: "{\"rules\": [\(rules.joined(separator: ","))]}")
    let jwt = try simulator.jwt()
    let id = "123e4567-e89b-12d3-a456-426614174000"
    let answer = try simulator.node(tokens.map { TestPush(token: $0, jwt: jwt, ["apns-id": id]) })
    #expect(answer.results.count == Reason.table.count)
    for (result, reason) in zip(answer.results, Reason.table) {
      #expect(result.status == reason.status && result.reason == reason.name)
      #expect(result.header("apns-id") == id)
      #expect(result.header("content-type") == "application/json")
      #expect((result.json?["timestamp"] != nil) == (reason.status == 410), "\(reason.name)")
    }
    #expect(simulator.log.count == Reason.table.count)
    #expect(simulator.log.allSatisfy { ($0["answer"] as? [String: Any])?["reason"] != nil })
  }

  @Test("a 200 has no body, the id that was sent, and only on the sandbox a unique id")
  func accepted() throws {
    let simulator = try SimulatorProcess()
    let jwt = try simulator.jwt()
    let upper = "123E4567-E89B-12D3-A456-426614174000"
    for host in ["production", "sandbox"] {
      let answer = try simulator.node(host, [TestPush(jwt: jwt, ["apns-id": upper]), TestPush(jwt: jwt)])
      for result in answer.results {
        #expect(result.status == 200 && result.body.isEmpty && result.header("content-type") == nil)
        #expect((result.header("apns-unique-id") != nil) == (host == "sandbox"))
      }
      #expect(answer.results[0].header("apns-id") == upper)
      #expect(answer.results[1].header("apns-id")?.count == 36)
      // One stream until the first good provider token.
      #expect(answer.settings == [1, 1000])
    }
  }

  @Test("without a good provider token the stream limit stays at 1")
  func unproven() throws {
    let simulator = try SimulatorProcess(["--streams", "77"])
    let bad = try simulator.node([TestPush(jwt: nil), TestPush(jwt: "x")])
    #expect(bad.results.map(\.reason) == ["MissingProviderToken", "InvalidProviderToken"])
    #expect(bad.settings == [1])
    // What is refused for another fault has posted a valid token all the same.
    let good = try simulator.node([TestPush(jwt: try simulator.jwt(), ["apns-topic": nil])])
    #expect(good.results[0].reason == "MissingTopic")
    #expect(good.settings == [1, 77])
  }

  @Test("silence, resets and lost connections look as they should")
  func streams() throws {
    let simulator = try SimulatorProcess(
      script: """
        {"rules": [
          {"token": "01", "silence": true}, {"token": "02", "reset": "REFUSED_STREAM"}, {"token": "03", "reset": 2},
          {"token": "04", "delay": "150ms"}, {"token": "05", "early_hints": true, "reason": "Unregistered"},
          {"token": "06", "settings": {"max_concurrent_streams": 3}},
          {"token": "07", "status": 200, "raw": "not json"},
          {"token": "08", "status": 418, "reason": "Teapot", "body": {"timestamp": 7, "more": [1, {"a": null}]}},
          {"token": "09", "status": 410, "reason": "Unregistered", "body": {"timestamp": 1234}}
        ]}
        """)
    let jwt = try simulator.jwt()
    let silent = try simulator.node([TestPush(token: "01", jwt: jwt)], timeout: 300)
    #expect(silent.results[0].status == nil && silent.results[0].error == "TIMEOUT")
    let answer = try simulator.node((2...9).map { TestPush(token: "0\($0)", jwt: jwt) })
    // By the number of the token.
    let results = [silent.results[0]] + answer.results
    #expect(results[1].status == nil && results[1].code == 7)
    #expect(results[2].status == nil && results[2].code == 2)
    #expect(results[3].status == 200 && results[3].ms >= 149)
    #expect(results[4].status == 410 && results[4].informational == [103])
    #expect(results[5].status == 200 && answer.settings == [1, 1000, 3])
    #expect(results[6].status == 200 && results[6].body == "not json")
    #expect(results[7].body == #"{"reason":"Teapot","timestamp":7,"more":[1, {"a": null}]}"#)
    #expect(results[8].json?["timestamp"] as? Int == 1234)
  }

  @Test("GOAWAY carries its last stream, code and debug data; streams above it were never processed")
  func goaway() throws {
    let simulator = try SimulatorProcess(
      script: """
        {"rules": [{"request": 2, "of": "connection", "host": "production", "reason": "Shutdown",
                    "goaway": {"last_stream": "this", "debug": "{\\"reason\\":\\"Shutdown\\"}"}},
                   {"request": 2, "of": "connection", "goaway": {"last_stream": "before", "code": "ENHANCE_YOUR_CALM"}}]}
        """)
    let jwt = try simulator.jwt()
    let answer = try simulator.node([TestPush(jwt: jwt), TestPush(jwt: jwt)])
    #expect(answer.results[1].reason == "Shutdown")
    #expect(answer.goaway.first?.last == 3 && answer.goaway.first?.code == 0)
    #expect(answer.goaway.first?.debug == #"{"reason":"Shutdown"}"#)
    let refused = try simulator.node("sandbox", [TestPush(jwt: jwt), TestPush(jwt: jwt)])
    #expect(refused.results.map(\.status) == [200, nil])
    #expect(refused.goaway.first?.last == 1 && refused.goaway.first?.code == 11)
  }

  @Test("a socket closes before the answer, or after it")
  func close() throws {
    let simulator = try SimulatorProcess(
      script:
        #"{"rules": [{"host": "production", "close": "before"}, {"close": "after", "reason": "IdleTimeout"}]}"#
    )
    let jwt = try simulator.jwt()
    let before = try simulator.node([TestPush(jwt: jwt)])
    #expect(before.results[0].status == nil)
    let after = try simulator.node("sandbox", [TestPush(jwt: jwt), TestPush(jwt: jwt)])
    #expect(after.results[0].reason == "IdleTimeout")
    #expect(after.results[1].status == nil)
  }

  @Test("delayed answers come in the order of their times, others at once")
  func delays() throws {
    let simulator = try SimulatorProcess(
      ["--first-streams", "10"],
      script: """
        {"rules": [{"token": "01", "delay": "300ms"}, {"token": "02", "delay": "100ms"},
                   {"token": "03", "delay": "200ms"}]}
        """)
    let jwt = try simulator.jwt()
    let answer = try simulator.node(
      ["01", "02", "03", "04"].map { TestPush(token: $0, jwt: jwt) }, together: true)
    #expect(answer.results.allSatisfy { $0.status == 200 })
    let times = answer.results.map(\.ms)
    #expect(times[0] >= 299 && times[1] >= 99 && times[2] >= 199)
    #expect(answer.results.map(\.order) == [3, 1, 2, 0])
  }

  @Test("a script is read again when it changes; a bad one leaves the old one in force, and says so")
  func changes() throws {
    let simulator = try SimulatorProcess(script: #"{"rules": [{"request": 1, "status": 500}]}"#)
    let jwt = try simulator.jwt()
    func statuses() throws -> [Int?] {
      try simulator.node([TestPush(jwt: jwt), TestPush(jwt: jwt)]).results.map(\.status)
    }
    #expect(try statuses() == [500, 200])
    try simulator.folder.write(#"{"rules": [{"status": 503}]}"#, to: "script.json")
    #expect(try statuses() == [503, 503])
    try simulator.folder.write("{\"rules\": [\n{\"status\": 5}]}", to: "script.json")
    #expect(try statuses() == [503, 503])
    #expect(simulator.errors.contains("script.json: line 2, column 12: \"status\""))
    #expect(simulator.errors.contains("the old script stays in force"))
    // Numbers start again with a script that is new.
    try simulator.folder.write(#"{"rules": [{"request": 1, "status": 429}]}"#, to: "script.json")
    #expect(try statuses() == [429, 200])
    #expect(simulator.isRunning)
  }

  @Test("the table of tokens is read again when it changes")
  func tokens() throws {
    let simulator = try SimulatorProcess(["--unknown-tokens", "reject"])
    let jwt = try simulator.jwt()
    func reason() throws -> String? { try simulator.node([TestPush(jwt: jwt)]).results[0].reason }
    #expect(try reason() == "BadDeviceToken")
    try simulator.folder.write("{\"tokens\": [{\"token\": \"\(TestPush.token)\"}]}", to: "sim/tokens.json")
    #expect(try reason() == nil)
    try simulator.folder.write(
      "{\"tokens\": [{\"token\": \"\(TestPush.token)\", \"state\": \"expired\"}]}", to: "sim/tokens.json")
    #expect(try reason() == "ExpiredToken")
    try simulator.folder.write("{", to: "sim/tokens.json")
    #expect(try reason() == "ExpiredToken")
    #expect(simulator.errors.contains("tokens.json: line 1, column 2"))
    try FileManager.default.removeItem(atPath: simulator.folder.file("sim/tokens.json"))
    #expect(try reason() == "BadDeviceToken")
  }
}
