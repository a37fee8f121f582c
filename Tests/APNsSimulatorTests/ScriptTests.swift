import APNs
import HTTP2
import Testing

@testable import APNsSimulator

@Suite("Script")
struct ScriptTests {
  private func script(_ rules: String) throws -> Script { try Script(Array("{\"rules\": [\(rules)]}".utf8)) }

  private func subject(
    _ token: String = "ab", _ host: Environment = .production, server: Int = 1, host ofHost: Int = 1,
    connection: Int = 1, ofToken: Int = 1
  ) -> Script.Subject {
    Script.Subject(
      token: Array(token.utf8), host: host, ofServer: server, ofHost: ofHost, ofConnection: connection,
      ofToken: ofToken)
  }

  @Test("the first rule that matches is followed")
  func first() throws {
    let script = try script(
      #"{"token": "AB", "status": 500}, {"host": "sandbox", "status": 501}, {"status": 502}"#)
    func status(_ subject: Script.Subject) -> Int? {
      if case .status(let status, _) = script.rule(for: subject)?.action.answer { status } else { nil }
    }
    #expect(status(subject("ab", .sandbox)) == 500)
    #expect(status(subject("ac", .sandbox)) == 501)
    #expect(status(subject("ac", .production)) == 502)
  }

  @Test("requests are counted by what the rule says")
  func counts() throws {
    let cases: [(String, Script.Subject, Bool)] = [
      (#""request": 2"#, subject(server: 2), true), (#""request": 2"#, subject(server: 3), false),
      (#""request": "2-3""#, subject(server: 3), true), (#""request": "2-3""#, subject(server: 4), false),
      (#""request": "2-""#, subject(server: 9), true), (#""request": "2-""#, subject(server: 1), false),
      (#""request": 2, "of": "server""#, subject(server: 2), true),
      (#""request": 2, "of": "host""#, subject(server: 1, host: 2), true),
      (#""request": 2, "of": "connection""#, subject(server: 2, connection: 1), false),
      (#""request": 2, "of": "connection""#, subject(connection: 2), true),
      (#""request": 2, "of": "token""#, subject(server: 2, ofToken: 1), false),
      (#""request": 2, "of": "token""#, subject(ofToken: 2), true),
    ]
    for (rule, subject, matches) in cases {
      #expect((try script("{\(rule), \"silence\": true}").rule(for: subject) != nil) == matches, "\(rule)")
    }
    #expect(try script(#"{"of": "token", "request": 1}"#).countsTokens)
    #expect(try !script(#"{"request": 1}"#).countsTokens)
  }

  @Test("a reason of Apple's brings its own status")
  func reasons() throws {
    for reason in Reason.table {
      let rule = try script("{\"reason\": \"\(reason.name)\"}").rules[0]
      guard case .status(let status, let name) = rule.action.answer else {
        Issue.record("no status")
        continue
      }
      #expect(status == reason.status && name == reason.name)
    }
  }

  @Test(
    "a fault names its place and what may stand there",
    arguments: [
      ("[]", "is an array at byte 0, not a JSON object"), ("{}", "the script needs a \"rules\""),
      (
        "{\"rules\": [\n  {\"status\": 99}]}",
        "line 2, column 14: \"status\" is a number, wanted a whole number, 200 to 599"
      ),
      ("{\"rules\": [{\"stauts\": 500}]}", "a rule has no \"stauts\"; it may have token, host, request"),
      (
        "{\"rules\": [{\"reason\": \"Strange\"}]}",
        "this reason is not in Apple's table: it needs a \"status\""
      ),
      ("{\"rules\": [{\"status\": 500, \"silence\": true}]}", "a rule gives one answer"),
      ("{\"rules\": [{\"reset\": \"REFUSED\"}]}", "\"reset\" is an error code of HTTP/2"),
      ("{\"rules\": [{\"reset\": -1}]}", "\"reset\" is an error code of HTTP/2"),
      ("{\"rules\": [{\"delay\": 5}]}", "\"delay\" is a number, wanted a string"),
      ("{\"rules\": [{\"delay\": \"5\"}]}", "\"delay\" is a duration such as"),
      ("{\"rules\": [{\"delay\": \"2d\"}]}", "\"delay\" is a duration such as"),
      ("{\"rules\": [{\"request\": 0}]}", "\"request\" is a number from 1"),
      ("{\"rules\": [{\"request\": \"3-2\"}]}", "\"request\" is a number from 1"),
      ("{\"rules\": [{\"of\": \"phone\"}]}", "wanted one of server, host, connection, token"),
      ("{\"rules\": [{\"close\": \"now\"}]}", "wanted one of before, after"),
      ("{\"rules\": [{\"body\": {}}]}", "\"body\" needs a \"status\" or \"reason\""),
      (
        "{\"rules\": [{\"status\": 400, \"body\": {}, \"raw\": \"\"}]}",
        "a rule has \"body\" or \"raw\", not both"
      ),
      ("{\"rules\": [{\"status\": 400, \"body\": []}]}", "\"body\" is an object"),
      (
        "{\"rules\": [{\"goaway\": {\"last_stream\": -1}}]}",
        "\"last_stream\" is \"this\", \"before\" or a stream's number"
      ),
      (
        "{\"rules\": [{\"goaway\": {\"last\": 1}}]}",
        "\"goaway\" has no \"last\"; it may have last_stream, code, debug"
      ),
      ("{\"rules\": [{\"settings\": {\"max_streams\": 1}}]}", "\"settings\" has no \"max_streams\""),
      ("{\"rules\": [{\"settings\": {\"initial_window_size\": 2147483648}}]}", "0 to 2147483647"),
      ("{\"rules\": [{\"silence\": 1}]}", "\"silence\" is a number, wanted true or false"),
    ])
  func faults(_ text: String, _ words: String) {
    let fault = #expect(throws: TextFault.self) { try Script(Array(text.utf8)) }
    #expect(
      fault?.words(in: Array(text.utf8)).contains(words) == true,
      "\(fault?.words(in: Array(text.utf8)) ?? "")")
  }

  @Test("durations read as people write them")
  func durations() {
    #expect(Duration(spelled: "200ms") == .milliseconds(200))
    #expect(Duration(spelled: "2s") == .seconds(2))
    #expect(Duration(spelled: "1m") == .seconds(60))
    #expect(Duration(spelled: "24h") == .seconds(86_400))
    for text in ["", "5", "ms", "-5s", "1.5s", "25h", "5 s", "٣s", "99999999999999999999s"] {
      #expect(Duration(spelled: text) == nil, "\(text)")
    }
  }
}
