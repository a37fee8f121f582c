import Testing

@testable import APNs

@Suite struct AnswerTests {
  private func answer(_ status: Int?, _ body: String?, uniqueID: String? = nil) -> Answer {
    let body = body.map(bytes)
    let uniqueID = uniqueID.map(bytes)
    return Answer(status: status, body: body?.span, uniqueID: uniqueID?.span)
  }

  @Test("reason and timestamp are read, whatever else the body has")
  func read() {
    let full = answer(410, "{\"reason\":\"Unregistered\",\"timestamp\":1790000000123}", uniqueID: "u-1")
    #expect(full.status == 410)
    #expect(full.reason == "Unregistered")
    #expect(full.timestampMilliseconds == 1_790_000_000_123)
    #expect(full.uniqueID == "u-1")
    let odd = answer(
      400,
      " { \"x\":[{\"reason\":\"no\"}], \"timestamp\" : \"1790000000123\", \"r\\u0065ason\" : \"\\u0041b\" }\n"
    )
    #expect(odd.reason == "Ab")
    #expect(odd.timestampMilliseconds == 1_790_000_000_123)
  }

  @Test(
    "a body that cannot be read leaves the status",
    arguments: [
      nil, "", " ", "<html><h1>Bad Gateway</h1></html>", "{\"reason\":\"Unregis", "{\"reason\":}", "[]",
      "null",
      "{\"reason\":5}", "{\"reason\":null}", "{\"reason\":\"\"}", "{\"reason\":[\"x\"]}", "{}",
      "\u{FEFF}{\"reason\":\"x\"}",
      "{\"reason\":\"x\"} trailing",
    ])
  func unreadable(body: String?) {
    #expect(answer(502, body) == Answer(status: 502, body: nil))
    #expect(answer(410, body).meaning == .deadToken)
  }

  @Test("a body of more than 64 KiB is not looked at")
  func tooLong() {
    let head = "{\"reason\":\"Unregistered\",\"x\":\""
    let fits = head + String(repeating: "x", count: 64 * 1024 - head.utf8.count - 2) + "\"}"
    #expect(answer(410, fits).reason == "Unregistered")
    #expect(answer(410, fits + " ").reason == nil)
    #expect(answer(410, fits + " ").status == 410)
  }

  @Test("a reason is kept as it came, and bounded; an id has no control characters")
  func bounded() {
    #expect(answer(400, "{\"reason\":\"a\\nb\\u001b[31mc\u{85}d\"}").reason == "a\nb\u{1b}[31mc\u{85}d")
    #expect(answer(400, "{\"reason\":\"\(String(repeating: "x", count: 2_000))\"}").reason?.count == 1024)
    let marks = answer(400, "{\"reason\":\"e\(String(repeating: "\u{301}", count: 2_000))\"}").reason
    #expect(marks?.unicodeScalars.count == 1024)
    #expect(answer(200, nil, uniqueID: "a\r\nb").uniqueID == "ab")
    #expect(answer(200, nil, uniqueID: "\n").uniqueID == nil)
  }

  @Test(
    "a timestamp that is no whole number of milliseconds is none",
    arguments: [
      ("0", 0), ("9223372036854775807", Int64.max), ("1790000000123.9", 1_790_000_000_123), ("\"12\"", 12),
      ("9223372036854775808", nil), ("-1", nil), ("1e12", nil), ("\"\"", nil), ("\"1x\"", nil), ("null", nil),
      ("[1]", nil), ("true", nil), ("\".5\"", nil),
    ] as [(String, Int64?)])
  func timestamps(text: String, expected: Int64?) {
    let answer = answer(410, "{\"reason\":\"Unregistered\",\"timestamp\":\(text)}")
    #expect(answer.timestampMilliseconds == expected)
    #expect(answer.reason == "Unregistered")
  }

  @Test("200 with a body is accepted, and silence says nothing")
  func acceptedAndSilent() {
    #expect(answer(200, "{\"reason\":\"BadDeviceToken\"}").meaning == .accepted)
    #expect(answer(nil, "{\"reason\":\"BadDeviceToken\"}") == Answer(status: nil, body: nil))
  }
}

@Suite struct AnswerMeaningTests {
  private func answer(_ status: Int?, _ reason: String? = nil) -> Answer {
    let body = reason.map { bytes("{\"reason\":\"\($0)\"}") }
    return Answer(status: status, body: body?.span)
  }

  @Test("every status has an outcome, by the status and for 400 by the reason")
  func outcomes() {
    #expect(answer(nil).meaning == .silence)
    #expect(answer(400, "BadDeviceToken").meaning == .wrongHost)
    for status in 200...999 {
      for reason in [nil, "SomethingNew", "Unregistered"] {
        let expected: Answer.Meaning =
          status == 200 ? .accepted : status == 410 ? .deadToken : .rejected
        #expect(answer(status, reason).meaning == expected)
      }
      if status != 400 { #expect(answer(status, "BadDeviceToken").meaning != .wrongHost) }
    }
  }

  @Test(
    "an answer means to host, key, device, topic and connection what the table of pauses says",
    arguments: [
      (nil, nil, []), (200, nil, .provesConnection), (400, "BadDeviceToken", .provesConnection),
      (400, "SomethingNew", .provesConnection), (410, nil, .provesConnection),
      (413, "PayloadTooLarge", .provesConnection), (299, nil, .provesConnection),
      (400, "TopicDisallowed", [.topicRefused, .provesConnection]),
      (400, "BadTopic", [.topicRefused, .provesConnection]),
      (400, "MissingTopic", [.topicRefused, .provesConnection]),
      (400, "DeviceTokenNotForTopic", .provesConnection),
      (400, "IdleTimeout", [.connectionClosing, .provesConnection]),
      (403, nil, .credentialsRefused), (403, "SomethingNew", .credentialsRefused),
      (403, "InvalidProviderToken", .credentialsRefused),
      (403, "ExpiredProviderToken", [.credentialsRefused, .expiredProviderToken]),
      (403, "BadEnvironmentKeyInToken", [.credentialsRefused, .badEnvironmentKey]),
      (403, "BadEnvironmentKeyIdInToken", [.credentialsRefused, .badEnvironmentKey]),
      (403, "BadDeviceToken", .credentialsRefused), (403, "TopicDisallowed", .credentialsRefused),
      (429, "TooManyProviderTokenUpdates", .tooManyProviderTokenUpdates),
      (429, "TooManyRequests", [.tooManyRequests, .provesConnection]),
      (429, nil, [.tooManyRequests, .provesConnection]), (500, nil, .serverError),
      (500, "InternalServerError", .serverError), (503, "ServiceUnavailable", .serverError),
      (503, "Shutdown", .connectionClosing), (500, "Shutdown", .serverError), (599, nil, .serverError),
      (600, nil, .provesConnection), (400, "ExpiredProviderToken", .provesConnection),
    ] as [(Int?, String?, Consequence)])
  func consequences(status: Int?, reason: String?, expected: Consequence) {
    #expect(answer(status, reason).consequences == expected)
  }
}

@Suite struct ReasonTests {
  @Test("each reason stands in the table once, with a status of its class")
  func once() {
    #expect(Set(Reason.table.map(\.name)).count == Reason.table.count)
    for reason in Reason.table {
      #expect((reason.class == .credentials) == (reason.status == 403), "\(reason.name)")
      #expect((reason.class == .deadToken) == (reason.status == 410), "\(reason.name)")
      #expect(Reason.known(status: reason.status, reason: reason.name)?.name == reason.name)
      #expect(Reason.known(status: reason.status + 1, reason: reason.name) == nil)
    }
    #expect(Reason.known(status: 400, reason: "SomethingNew") == nil)
    #expect(Reason.known(status: 400, reason: nil) == nil)
  }
}

@Suite struct EnvironmentTests {
  @Test("each environment is the other one's other")
  func other() {
    #expect(Environment(rawValue: "production") == .production)
    for environment in Environment.allCases {
      #expect(environment.other != environment)
      #expect(environment.other.other == environment)
    }
  }
}
