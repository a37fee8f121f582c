import Foundation

/// What apps and backends write about Live Activities.
extension Backend {
  static let attributesType = "TurnAttributes"
  static let activityTopic = topic + ".push-type.liveactivity"

  /// Commits a row about a Live Activity and returns its id: a good one of its kind about the activity `turn`,
  /// but for the `columns` that are given.
  @discardableResult
  func activity(_ event: String, _ columns: KeyValuePairs<String, Value> = [:]) throws -> Int64 {
    try insert("nudge_outbox", Backend.activityRow(event, columns))
  }

  static func activityRow(
    _ event: String, _ columns: KeyValuePairs<String, Value> = [:]
  ) -> [(key: String, value: Value)] {
    var all: [(key: String, value: Value)] = [
      ("kind", .text("activity_\(event)")), ("activity_id", "turn"), ("content_state", #"{"step":1}"#),
    ]
    if event == "start" {
      all += [
        ("title", "Working"), ("attributes_type", .text(attributesType)),
        ("attributes", #"{"activityId":"turn"}"#),
      ]
    }
    for column in columns {
      all.removeAll { $0.key == column.key }
      all.append(column)
    }
    return all
  }

  /// The app on a phone, known as `phone-1` and so on, hands over its push-to-start token.
  func registerStart(
    _ phone: Int, environment: String? = "production", recipient: String? = nil
  ) throws {
    try register(
      "phone-\(phone)", token: startToken(phone), environment: environment, recipient: recipient,
      kind: "activity_start", scope: Backend.attributesType)
  }

  /// The app on a phone has adopted an activity and hands over its update token.
  func registerUpdate(
    _ phone: Int, _ activity: String = "turn", token: String? = nil, environment: String? = "production",
    recipient: String? = nil
  ) throws {
    try register(
      "phone-\(phone)", token: token ?? updateToken(phone), environment: environment, recipient: recipient,
      kind: "activity_update", scope: activity)
  }

  /// The update tokens that are known, in order.
  func updateTokens() throws -> [String] {
    try run("select token from nudge_token where kind = 'activity_update' order by token")
      .compactMap { $0["token"].text }
  }

  /// Waits until the row waits for a token; its attempts until then have ended.
  func waits(_ nudge: Int64) async throws { try await settled(nudge, as: "waiting") }
}

func startToken(_ phone: Int) -> String { token(0x1000 + phone) }
func updateToken(_ phone: Int) -> String { token(0x2000 + phone) }

extension TestPeer.Event {
  /// `start`, `update` or `end`; nil for what is no Live Activity.
  var activityEvent: String? { aps["event"] as? String }
  var timestamp: Int? { aps["timestamp"] as? Int }
  /// `content-state` as it came, without what JSON parsers make of it; nil without one.
  var state: [String: Any]? { aps["content-state"] as? [String: Any] }
  /// The member `step` of the content state, which the tests tell their rows by.
  var step: Int? { state?["step"] as? Int }
}
