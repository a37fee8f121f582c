import Testing

@testable import APNsSimulator

@Suite("TokenTable")
struct TokenTableTests {
  @Test("a token is found in either case, with what the file says")
  func reads() throws {
    let text = """
      {"tokens": [{"token": "AbCd", "environment": "sandbox", "topic": "com.example.app", "kind": "alert",
                   "state": "expired", "since": 5}, {"token": "00"}]}
      """
    let table = try TokenTable(Array(text.utf8))
    let wanted = TokenTable.Entry(
      environment: .sandbox, topic: "com.example.app", kind: "alert", state: .expired(since: 5))
    #expect(table.entry(Array("aBcD".utf8)[...]) == wanted)
    #expect(table.entry(Array("00".utf8)[...]) == TokenTable.Entry())
    #expect(table.entry(Array("01".utf8)[...]) == nil)
  }

  @Test(
    "a fault names its place and what may stand there",
    arguments: [
      ("{", "line 1, column 2: is not JSON: it ends early, at byte 1"),
      ("{\n \"tokens\": 5}", "line 2, column 12: \"tokens\" is a number, wanted an array"),
      ("{\"token\": []}", "line 1, column 2: the file has no \"token\"; it may have tokens"),
      ("{\"tokens\": [\n\n  {}]}", "line 3, column 3: a token needs a \"token\""),
      ("{\"tokens\": [4]}", "line 1, column 13: a token has to be an object"),
      ("{\"tokens\": [{\"token\": \"abc\"}]}", "token is 3 bytes, wanted 2 to 400, even"),
      ("{\"tokens\": [{\"token\": \"xy\"}]}", "token is not lower-case hexadecimal"),
      ("{\"tokens\": [{\"token\": \"ab\"}, {\"token\": \"AB\"}]}", "this token is listed twice"),
      ("{\"tokens\": [{\"token\": \"ab\", \"token\": \"ac\"}]}", "names \"token\" twice"),
      ("{\"tokens\": [{\"token\": \"ab\", \"environment\": \"prod\"}]}", "wanted one of production, sandbox"),
      ("{\"tokens\": [{\"token\": \"ab\", \"kind\": \"x\"}]}", "wanted one of alert, voip, location"),
      (
        "{\"tokens\": [{\"token\": \"ab\", \"state\": \"dead\"}]}",
        "wanted one of good, unregistered, expired"
      ),
      (
        "{\"tokens\": [{\"token\": \"ab\", \"since\": 5}]}",
        "\"since\" is for an unregistered or expired token"
      ),
      (
        "{\"tokens\": [{\"token\": \"ab\", \"since\": \"5\"}]}",
        "\"since\" is a string, wanted a whole number, 0 or more"
      ),
      ("{\"tokens\": [{\"token\": \"ab\", \"a\\u001b[2Jx\": 5}]}", "a token has no \"a[2Jx\""),
    ])
  func faults(_ text: String, _ words: String) {
    let fault = #expect(throws: TextFault.self) { try TokenTable(Array(text.utf8)) }
    #expect(
      fault?.words(in: Array(text.utf8)).contains(words) == true,
      "\(fault?.words(in: Array(text.utf8)) ?? "")")
  }
}
