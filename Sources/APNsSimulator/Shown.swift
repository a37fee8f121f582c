import APNs

/// What a phone would make of a push, as far as the push says it.
struct Shown: Equatable, Sendable {
  enum Style: Equatable, Sendable {
    /// On the lock screen, until another with the same collapse id takes its place.
    case notification
    /// A Live Activity's card has changed.
    case activity(ActivityEvent, Card)
    /// Nothing to see: the app is woken.
    case silent
    /// APNs refused it: nothing is shown, and this says why.
    case refused(String)
    /// APNs accepted it and the phone drops it without a word; this says why.
    case dropped(event: String, String)
  }

  var style: Style
  /// The bundle id.
  var app: String
  var alert = AlertText(nil)
  var badge: String?
  /// Pushes with the same key take each other's place; empty: with none.
  var key = ""

  /// - Parameter reception: what the phone made of a push for a Live Activity.
  init(_ push: Push, _ plan: Plan, _ reception: Phone.Reception? = nil) {
    let examination = Examination(push, host: plan.host, entry: nil, rules: .init(), wallMilliseconds: 0)
    app = String(decoding: examination.bundleID, as: UTF8.self)
    style = .silent
    let token = String(decoding: examination.token, as: UTF8.self)
    guard plan.reachesPhone else {
      let reason = plan.reason ?? (plan.status == nil ? "no answer" : "")
      let status = plan.status.map { "\($0) " } ?? ""
      style = .refused(status + reason)
      alert.body = "\(plan.host.rawValue), token \(token.prefix(8))…"
      return
    }
    if let reception {
      if let objection = reception.objection {
        style = .dropped(event: reception.event?.rawValue ?? "push", objection)
      } else if let event = reception.event, let card = reception.card {
        style = .activity(event, card)
      }
      return
    }
    guard let aps = (try? JSONValue.read(push.body))?["aps"] else { return }
    badge = aps["badge"].flatMap(Self.words)
    alert = AlertText(aps["alert"])
    if !alert.line.isEmpty || badge != nil || aps["sound"] != nil {
      style = .notification
    }
    if let collapse = push.text(push.collapseID), !collapse.isEmpty { key = "\(app) \(token) \(collapse)" }
  }

  private static func words(_ value: JSONValue) -> String? {
    if case .number(let digits) = value.content { digits } else { nil }
  }
}
