import Foundation
import Testing

@testable import APNsSimulator

@Suite("Live Activities, through TLS")
struct ActivityTests {
  static let now = Int64(Date().timeIntervalSince1970)

  struct Case: Sendable, CustomTestStringConvertible {
    let event: String
    /// The member that is not as it should be; a value of nil leaves it out.
    let name: String?
    let value: String?
    /// After the last one applied.
    let seconds: Int64
    /// Why the phone drops it; nil: it does not.
    let words: String?

    init(
      _ event: String, _ name: String? = nil, _ value: String? = nil, seconds: Int64 = 1,
      drops words: String?
    ) {
      (self.event, self.name, self.value) = (event, name, value)
      (self.seconds, self.words) = (seconds, words)
    }

    var body: ActivityBody {
      var changes: [String: String?] = [:]
      if let name { changes[name] = .some(value) }
      return ActivityBody(event, timestamp: now + seconds, changes)
    }

    var testDescription: String { "\(event) \(name ?? "") \(value ?? "") \(seconds)" }
  }

  static let noAlert = "a start needs an alert with a title or a body"
  static let noEvent = "event is not start, update or end"
  static let starts: [Case] = [
    Case("start", drops: nil), Case("start", "alert", #""Hello""#, drops: nil),
    Case("start", "alert", #"{"body":{"loc-key":"GO"}}"#, drops: nil),
    Case("start", "alert", drops: noAlert), Case("start", "alert", "{}", drops: noAlert),
    Case("start", "alert", "true", drops: noAlert),
    Case("start", "alert", #"{"title":" ","body":""}"#, drops: noAlert),
    Case("start", "alert", #"{"sound":"default"}"#, drops: noAlert),
    Case("start", "alert", #"{"title":{"text":"x"}}"#, drops: noAlert),
    Case("start", "attributes-type", drops: "attributes-type is missing"),
    Case("start", "attributes-type", "5", drops: "attributes-type is a number, wanted a string"),
    Case("start", "attributes-type", #""""#, drops: "attributes-type is empty"),
    Case("start", "attributes", drops: "attributes is missing"),
    Case("start", "attributes", #""{}""#, drops: "attributes is a string, wanted an object"),
    Case("start", "content-state", drops: "content-state is missing"),
    Case("start", "content-state", "null", drops: "content-state is null, wanted an object"),
    Case("start", "timestamp", drops: "timestamp is missing"),
    Case("start", seconds: -100, drops: nil),
  ]
  static let others: [Case] = [
    Case("update", drops: nil), Case("update", "content-state", drops: "content-state is missing"),
    Case("update", "content-state", "[]", drops: "content-state is an array, wanted an object"),
    Case("update", "timestamp", #""1""#, drops: "timestamp is a string, wanted a number"),
    Case("update", "timestamp", "1.5", drops: "timestamp is not in whole seconds"),
    Case(
      "update", seconds: 0, drops: "timestamp \(now) is not newer than \(now), the last one applied"),
    Case(
      "update", seconds: -1, drops: "timestamp \(now - 1) is not newer than \(now), the last one applied"),
    Case("update", seconds: 28_000, drops: nil),
    Case("update", seconds: 29_800, drops: "timestamp is more than 8 hours ahead"),
    Case("end", drops: nil), Case("end", "content-state", drops: nil),
    Case("end", seconds: -100, drops: nil),
    Case("end", "content-state", "5", drops: "content-state is a number, wanted an object"),
    Case("end", "timestamp", drops: "timestamp is missing"),
    Case("stop", drops: noEvent), Case("stop", "event", drops: noEvent),
  ]

  @Test("what a phone drops is answered 200, and the log and the lock screen say why")
  func drops() throws {
    let simulator = try SimulatorProcess(quiet: false)
    let jwt = try simulator.jwt()
    let cases = Self.starts + Self.others
    var pushes: [TestPush] = []
    for (index, given) in cases.enumerated() {
      let token = String(format: "%04x", index)
      let before = ActivityBody("update", timestamp: Self.now)
      pushes.append(TestPush(activity: before, token: token, jwt: jwt))
      pushes.append(TestPush(activity: given.body, token: token, jwt: jwt))
    }
    let answer = try simulator.node(pushes)
    #expect(answer.results.allSatisfy { $0.status == 200 })
    #expect(eventually { simulator.output.split(separator: "\n").count == 5 + pushes.count })
    let lines = simulator.output.split(separator: "\n").dropFirst(5).map { String($0.dropFirst(9)) }
    for (index, given) in cases.enumerated() {
      let phone = simulator.log[2 * index + 1]["phone"] as? [String: Any]
      let line = lines[2 * index + 1]
      #expect(phone?["dropped"] as? String == given.words, "\(given.testDescription)")
      #expect(phone?["basis"] as? String == (given.words == nil ? nil : "inference"))
      guard let words = given.words else {
        #expect(phone?["card"] != nil && phone?["event"] as? String == given.event)
        #expect(line.hasPrefix("com.example.app: Live Activity \(phone?["card"] ?? "") \(given.event)"))
        continue
      }
      let event = given.event == "stop" ? "push" : given.event
      #expect(line == "com.example.app: Live Activity \(event) dropped (inference): \(words)")
    }
  }

  @Test(
    "a body that is no JSON object, or has no aps, is dropped",
    arguments: [
      ("x", "the body, line 1, column 1: "), ("[]", "the body, line 1, column 1: "),
      ("{}", "aps is no object"),
      (#"{"aps":[]}"#, "aps is no object"), (#"{"aps":{"a":1,"a":1}}"#, "the body, line 1, column 15: names"),
    ])
  func noJSON(_ body: String, _ words: String) throws {
    let simulator = try SimulatorProcess()
    let push = TestPush(
      jwt: try simulator.jwt(), ["apns-topic": ActivityBody.topic, "apns-push-type": "liveactivity"],
      body: body)
    #expect(try simulator.node([push]).results[0].status == 200)
    let phone = simulator.log[0]["phone"] as? [String: Any]
    #expect((phone?["dropped"] as? String)?.hasPrefix(words) == true, "\(phone ?? [:])")
  }

  @Test("what APNs refuses or disowns changes no card, and other pushes say nothing of a phone")
  func refused() throws {
    let simulator = try SimulatorProcess(
      script:
        #"{"rules": [{"token": "01", "request": 1, "reset": "REFUSED_STREAM"}, {"token": "02", "status": 500}]}"#
    )
    let jwt = try simulator.jwt()
    let body = ActivityBody("update", timestamp: Self.now)
    _ = try simulator.node([
      TestPush(activity: body, token: "01", jwt: jwt), TestPush(activity: body, token: "02", jwt: jwt),
      TestPush(jwt: jwt), TestPush(activity: body, token: "01", jwt: jwt),
    ])
    let phones = simulator.log.map { ($0["phone"] as? [String: Any])?["card"] as? Int }
    #expect(phones == [nil, nil, nil, 1])
    #expect(simulator.log.map { $0["phone"] != nil } == [false, false, false, true])
  }

  @Test("the plain lines follow a card: its content, its staleness, its end, its going")
  func lines() throws {
    let simulator = try SimulatorProcess(quiet: false)
    let jwt = try simulator.jwt()
    // Far enough that both arrive before it.
    let soon = Int64(Date().timeIntervalSince1970) + 6
    _ = try simulator.node([
      TestPush(
        activity: ActivityBody(
          "update", timestamp: Self.now,
          ["content-state": #"{"title":"Trains","state":"thinking"}"#, "stale-date": "\(soon)"]),
        token: "aa", jwt: jwt),
      TestPush(
        activity: ActivityBody(
          "end", timestamp: Self.now,
          ["alert": #"{"title":"Done","body":"At 9"}"#, "dismissal-date": "\(soon)"]),
        token: "bb", jwt: jwt),
    ])
    #expect(eventually { simulator.output.split(separator: "\n").count == 9 })
    let lines = simulator.output.split(separator: "\n").suffix(4).map { String($0.dropFirst(9)) }
    let end = "end, ended, goes at \(RequestLog.time(soon * 1000).prefix(19))Z: step: 1 | alert: Done | At 9"
    #expect(
      lines == [
        "com.example.app: Live Activity 1 update: Trains | state: thinking",
        "com.example.app: Live Activity 2 \(end)", "com.example.app: Live Activity 1 stale",
        "com.example.app: Live Activity 2 gone",
      ])
  }

  @Test("a token that tokens.json or a script kills takes its card along, and is answered 410")
  func swiped() throws {
    let folder = try Folder()
    let simulator = try SimulatorProcess(
      folder: folder,
      script: #"{"rules": [{"token": "0b", "request": "2-", "of": "token", "reason": "Unregistered"}]}"#,
      quiet: false)
    let jwt = try simulator.jwt()
    func push(_ token: String, _ seconds: Int64) throws -> Int? {
      let body = ActivityBody("update", timestamp: Self.now + seconds)
      return try simulator.node([TestPush(activity: body, token: token, jwt: jwt)]).results[0].status
    }
    #expect(try push("0a", 0) == 200 && push("0b", 0) == 200)
    try folder.write(#"{"tokens": [{"token": "0a", "state": "unregistered"}]}"#, to: "sim/tokens.json")
    #expect(eventually { simulator.output.contains("Live Activity 1 swiped away\n") })
    #expect(try push("0a", 1) == 410 && push("0b", 1) == 410)
    #expect(eventually { simulator.output.contains("Live Activity 2 swiped away\n") })
    // Should APNs take one all the same, it does not bring the card back.
    try folder.write(#"{"tokens": []}"#, to: "sim/tokens.json")
    #expect(try push("0a", 2) == 200)
    let phone = simulator.log.last?["phone"] as? [String: Any]
    #expect(phone?["dropped"] as? String == "the card is gone")
  }

  @Test("in a terminal the card stands in its place, with what became of it")
  func terminal() throws {
    let folder = try Folder()
    let body = ActivityBody("start", timestamp: Self.now, ["attributes": "{}"])
    try folder.write(body.text, to: "body.json")
    // script(1) gives the program a terminal of its own; curl is a client of its own.
    let command = """
      '\(try Programs.simulator())' --directory d --adopt none.db & \
      while [ ! -e d/settings.env ]; do sleep 0.05; done; . d/settings.env; \
      curl -s --http2 --cacert "$NUDGED_CA_FILE" \
      -H "authorization: $('\(try Programs.simulator())' --print-token --directory d)" \
      -H "apns-topic: \(ActivityBody.topic)" -H "apns-push-type: liveactivity" -d @body.json \
      "$NUDGED_SANDBOX_URL/3/device/aa"; kill -INT $!; wait $!
      """
    let ran = try run(try Programs.named("script"), ["-qec", command, "typescript"], in: folder)
    #expect(ran.code == 0)
    let picture = ran.output.replacing("\u{1B}[2m", with: "").replacing("\u{1B}[0m", with: "")
    #expect(
      picture.contains("┃ Live Activity 1 · com.example.app\r\n┃ step: 1\r\n┃ alert: On it | Looking\r\n"))
    #expect(picture.contains("┃ not adopted: attributes has no text activityId, activity_id, activi"))
    #expect(picture.contains("apns-simulator: Live Activity 1 not adopted: attributes has no text"))
  }
}
