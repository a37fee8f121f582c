import APNs

/// What a phone would make of a push, as far as the push says it.
struct Shown: Equatable, Sendable {
  enum Style: Equatable, Sendable {
    /// On the lock screen, until another with the same collapse id takes its place.
    case notification
    /// A Live Activity: one place for each token, with the last state.
    case activity(event: String)
    /// Nothing to see: the app is woken.
    case silent
    /// APNs refused it, or the phone drops it without a word: nothing is shown, and this says why.
    case refused(String)
  }

  var style: Style
  /// The bundle id.
  var app: String
  var title = ""
  var subtitle = ""
  var body = ""
  var badge: String?
  /// Pushes with the same key take each other's place; empty: with none.
  var key = ""
  /// Of a Live Activity: an older one does not take the place of a newer one.
  var timestamp: Int64 = 0

  init(_ push: Push, _ plan: Plan) {
    let examination = Examination(push, host: plan.host, entry: nil, rules: .init(), wallMilliseconds: 0)
    app = String(decoding: examination.bundleID, as: UTF8.self)
    style = .silent
    let token = String(decoding: examination.token, as: UTF8.self)
    guard plan.reachesPhone else {
      let reason = plan.reason ?? (plan.status == nil ? "no answer" : "")
      let status = plan.status.map { "\($0) " } ?? ""
      style = .refused(status + reason)
      body = "\(plan.host.rawValue), token \(token.prefix(8))…"
      return
    }
    guard let aps = (try? JSONValue.read(push.body))?["aps"] else { return }
    badge = aps["badge"].flatMap(Self.words)
    readAlert(aps["alert"])
    if let event = aps["event"]?.text, examination.kind == .activityStart {
      guard event != "start" || aps["alert"] != nil else {
        // Seen by users: APNs accepts it, the phone drops it.
        style = .refused("Live Activity start without alert")
        return
      }
      style = .activity(event: event)
      key = "activity " + token
      timestamp = aps["timestamp"]?.integer ?? 0
      if title.isEmpty, body.isEmpty, let state = aps["content-state"] {
        body = String(decoding: push.body[state.place], as: UTF8.self)
      }
      return
    }
    if !(title.isEmpty && subtitle.isEmpty && body.isEmpty) || badge != nil || aps["sound"] != nil {
      style = .notification
    }
    if let collapse = push.text(push.collapseID), !collapse.isEmpty { key = "\(app) \(token) \(collapse)" }
  }

  private mutating func readAlert(_ alert: JSONValue?) {
    guard let alert else { return }
    if let text = alert.text {
      body = text
      return
    }
    title = Self.words(alert, "title")
    subtitle = Self.words(alert, "subtitle")
    body = Self.words(alert, "body")
  }

  /// A text, or the key of one that the app has in the phone's language.
  private static func words(_ alert: JSONValue, _ name: String) -> String {
    let key = name == "body" ? "loc-key" : name + "-loc-key"
    if let text = alert[name]?.text { return text }
    // In a Live Activity's alert `title` and `body` may be objects with a `loc-key`.
    return (alert[key] ?? alert[name]?["loc-key"])?.text ?? ""
  }

  private static func words(_ value: JSONValue) -> String? {
    if case .number(let digits) = value.content { digits } else { nil }
  }
}
