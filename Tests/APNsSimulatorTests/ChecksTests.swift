import APNs
import Testing

@testable import APNsSimulator

@Suite("Checks")
struct ChecksTests {
  static let tokens = """
    {"tokens": [
      {"token": "a0", "environment": "sandbox", "topic": "com.example.app"},
      {"token": "a1", "state": "unregistered", "since": 1700000000123},
      {"token": "a2", "state": "expired", "since": 1700000000456},
      {"token": "a3", "state": "unregistered"},
      {"token": "a4", "kind": "voip"},
      {"token": "a5", "kind": "activity_update", "topic": "com.example.app"},
      {"token": "a6", "topic": "com.example.other"},
      {"token": "a7", "kind": "alert"}
    ]}
    """

  struct Case: Sendable, CustomTestStringConvertible {
    let reason: String?
    let name: String
    let value: String?
    var body: String?
    var token = TestPush.token
    var and: (String, String?)?

    init(_ reason: String?, _ name: String, _ value: String?, and: (String, String?)? = nil) {
      (self.reason, self.name, self.value, self.and) = (reason, name, value, and)
    }

    static func body(
      _ reason: String?, _ body: String, type: String = "alert", topic: String = "com.example.app"
    )
      -> Case
    {
      var copy = Case(reason, "apns-push-type", type, and: ("apns-topic", topic))
      copy.body = body
      return copy
    }

    static func token(
      _ reason: String?, _ token: String, type: String = "alert", topic: String = "com.example.app"
    )
      -> Case
    {
      var copy = Case(reason, "apns-push-type", type, and: ("apns-topic", topic))
      copy.token = token
      return copy
    }

    var testDescription: String { "\(name): \(value?.prefix(40) ?? "none"), \(token) -> \(reason ?? "200")" }
  }

  static let cases: [Case] = [
    Case(nil, "x-other", "1"),
    // Method and path.
    Case("MethodNotAllowed", ":method", "GET"), Case("BadPath", ":path", "/3/devices/aa"),
    Case("BadPath", ":path", "/"), Case("MissingDeviceToken", ":path", "/3/device/"),
    // apns-id.
    Case(nil, "apns-id", nil), Case(nil, "apns-id", "123E4567-E89B-12D3-A456-426614174000"),
    Case("BadMessageId", "apns-id", "1"), Case("BadMessageId", "apns-id", ""),
    Case("BadMessageId", "apns-id", "123e4567-e89b-12d3-a456-42661417400g"),
    Case("BadMessageId", "apns-id", "123e4567e89b-12d3-a456-4266141740000"),
    // Topic.
    Case("MissingTopic", "apns-topic", nil), Case("MissingTopic", "apns-topic", ""),
    Case("BadTopic", "apns-topic", "com example"),
    Case("BadTopic", "apns-topic", String(repeating: "a", count: 256)),
    // Collapse id: bytes, not characters.
    Case(nil, "apns-collapse-id", nil), Case(nil, "apns-collapse-id", String(repeating: "c", count: 64)),
    Case("BadCollapseId", "apns-collapse-id", String(repeating: "c", count: 65)),
    Case("BadCollapseId", "apns-collapse-id", String(repeating: "é", count: 33)),
    // Priority.
    Case(nil, "apns-priority", nil), Case(nil, "apns-priority", "5"), Case(nil, "apns-priority", "1"),
    Case("BadPriority", "apns-priority", "7"), Case("BadPriority", "apns-priority", "high"),
    Case("BadPriority", "apns-priority", ""), Case("BadPriority", "apns-priority", "010"),
    Case("BadPriority", "apns-push-type", "background"),
    Case(nil, "apns-push-type", "background", and: ("apns-priority", "5")),
    // Push type.
    Case(nil, "apns-push-type", nil), Case("InvalidPushType", "apns-push-type", "Alert"),
    Case("InvalidPushType", "apns-push-type", ""),
    // Expiration.
    Case(nil, "apns-expiration", nil), Case(nil, "apns-expiration", "0"),
    Case("BadExpirationDate", "apns-expiration", "-1"), Case("BadExpirationDate", "apns-expiration", "soon"),
    Case("BadExpirationDate", "apns-expiration", ""),
    // Token.
    .token("BadDeviceToken", "abc"), .token("BadDeviceToken", "xy"),
    .token("BadDeviceToken", String(repeating: "ab", count: 201)),
    .token(nil, String(repeating: "AB", count: 200)),
    .token("BadDeviceToken", "a0"), .token("BadDeviceToken", "A0"),
    .token("Unregistered", "a1"), .token("ExpiredToken", "A2"), .token("Unregistered", "a3"),
    .token("DeviceTokenNotForTopic", "a4"), .token(nil, "a4", type: "voip", topic: "com.example.app.voip"),
    .token("DeviceTokenNotForTopic", "a5"),
    .token(nil, "a5", type: "liveactivity", topic: "com.example.app.push-type.liveactivity"),
    .token("DeviceTokenNotForTopic", "a6"), .token(nil, "a6", topic: "com.example.other"),
    .token("DeviceTokenNotForTopic", "ff", type: "voip"),
    .token("DeviceTokenNotForTopic", "ff", topic: "com.example.app.push-type.widgets"),
    .token("DeviceTokenNotForTopic", "ff", type: "liveactivity"),
    .token("DeviceTokenNotForTopic", "a5", type: "liveactivity"),
    .token("DeviceTokenNotForTopic", "ff", topic: "com.example.app.push-type.liveactivity"),
    .token("DeviceTokenNotForTopic", "a5", topic: "com.example.app.push-type.liveactivity"),
    .token(
      "DeviceTokenNotForTopic", "a7", type: "liveactivity", topic: "com.example.app.push-type.liveactivity"),
    // The suffix once only.
    .token(
      "DeviceTokenNotForTopic", "ff", type: "liveactivity",
      topic: "com.example.app.push-type.liveactivity.push-type.liveactivity"),
    // Payload.
    .body("PayloadEmpty", ""), .body(nil, String(repeating: " ", count: 4_096)),
    .body("PayloadTooLarge", String(repeating: " ", count: 4_097)),
    .body(nil, String(repeating: " ", count: 5_120), type: "voip", topic: "com.example.app.voip"),
    .body(
      "PayloadTooLarge", String(repeating: " ", count: 5_121), type: "voip", topic: "com.example.app.voip"),
    .body("PayloadTooLarge", String(repeating: " ", count: 100_000)),
  ]

  @Test("each check refuses what it should, and nothing else", arguments: cases)
  func check(_ given: Case) throws {
    var court = try Court(tokens: Self.tokens)
    var fields = court.good(token: given.token).with(given.name, given.value)
    if let (name, value) = given.and { fields = fields.with(name, value) }
    let refusal = court.judge(fields, body: Array((given.body ?? #"{"aps":{"alert":"hello"}}"#).utf8))
    #expect(refusal?.reason == given.reason)
    if let refusal { #expect(Reason.known(status: refusal.status, reason: refusal.reason) != nil) }
  }

  @Test("every field that APNs knows may come once only")
  func duplicates() throws {
    var court = try Court()
    let good = court.good()
    for (name, value) in good where !name.hasPrefix(":") {
      #expect(court.judge(good + [(name, value)])?.reason == "DuplicateHeaders", "\(name)")
    }
    #expect(court.judge(good + [("x-one", "1"), ("x-one", "2")])?.reason == "DuplicateHeaders")
    #expect(court.judge(good + [("accept", "a"), ("accept", "b")])?.reason == "DuplicateHeaders")
    #expect(court.judge(good + [("cookie", "a"), ("cookie", "b"), ("x-one", "1"), ("x-two", "1")]) == nil)
  }

  @Test("a token is good in its own environment, with its own topic")
  func environment() throws {
    var court = try Court(tokens: Self.tokens)
    #expect(court.judge(court.good(token: "a0"), host: .sandbox) == nil)
    #expect(court.judge(court.good(token: "a0"), host: .production) == Refusal("BadDeviceToken"))
  }

  @Test("410 says since when, in milliseconds; without a time in the table it is now")
  func timestamps() throws {
    var court = try Court(tokens: Self.tokens)
    #expect(
      court.judge(court.good(token: "a1")) == Refusal("Unregistered", timestamp: 1_700_000_000_123))
    #expect(
      court.judge(court.good(token: "a2")) == Refusal("ExpiredToken", timestamp: 1_700_000_000_456))
    #expect(
      court.judge(court.good(token: "a3")) == Refusal("Unregistered", timestamp: court.wallSeconds * 1000)
    )
  }

  @Test("tokens that nobody listed are good where the option says")
  func unknown() throws {
    var court = try Court(rules: .init(unknownTokens: [.sandbox]))
    #expect(court.judge(court.good(), host: .sandbox) == nil)
    #expect(court.judge(court.good(), host: .production)?.reason == "BadDeviceToken")
  }

  @Test("a topic that is not among those allowed is refused, whatever its suffix")
  func topics() throws {
    var court = try Court(rules: .init(topics: ["com.example.app"]))
    #expect(court.judge(court.good()) == nil)
    let other = court.good().with("apns-topic", "com.example.app2")
    #expect(court.judge(other)?.reason == "TopicDisallowed")
    let voip = court.good().with("apns-topic", "com.example.app.voip").with("apns-push-type", "voip")
    #expect(court.judge(voip) == nil)
  }

  @Test("credentials come before the token, so that a wrong key hides what is wrong with it")
  func order() throws {
    var court = try Court(tokens: Self.tokens)
    let fields = court.good(token: "a1").with("authorization", nil).with("apns-topic", nil)
    #expect(court.judge(fields)?.reason == "MissingProviderToken")
  }

  @Test("the table of cases has every reason that a check gives")
  func complete() {
    let tested = Set(Self.cases.compactMap(\.reason))
    let given = Set((Check.ofRequest + Check.ofPush).flatMap(\.reasons).map { "\($0)" })
    #expect(given.subtracting(tested) == ["DuplicateHeaders", "TopicDisallowed"])
  }
}
