/// What a push does to a Live Activity, by `aps.event`.
enum ActivityEvent: String, Sendable, CaseIterable { case start, update, end }

/// Why a phone shows nothing of a Live Activity push that APNs has accepted: a specification to read from top to
/// bottom.
///
/// All of it is inference, and labelled so wherever it is shown: Apple documents what a push has to hold, and
/// neither Apple nor the phone says what becomes of one that does not. Each rule names what it is drawn from.
struct ActivityRule: Sendable {
  /// A push for a Live Activity, and the card that it is for; nil: none yet.
  struct Delivery {
    let aps: JSONValue
    let card: Card?
    let wallMilliseconds: Int64
  }

  private let events: [ActivityEvent]
  private let objection: @Sendable (Delivery) -> String?

  private init(_ events: ActivityEvent..., objection: @escaping @Sendable (Delivery) -> String?) {
    self.events = events
    self.objection = objection
  }

  /// Why the push is dropped, in words; nil when it is applied.
  static func objection(to delivery: Delivery, _ event: ActivityEvent) -> String? {
    for rule in all where rule.events.contains(event) {
      if let words = rule.objection(delivery) { return words }
    }
    return nil
  }

  private static let all: [ActivityRule] = [
    // Documented: pushes after the end are ignored. A card that was swiped away does not come back.
    ActivityRule(.update, .end) {
      switch $0.card?.state {
      case .ended: "the activity has ended"
      case .gone: "the card is gone"
      case .active, .stale, nil: nil
      }
    },
    // Documented as required; users saw that the phone shows nothing without it.
    ActivityRule(.start) {
      AlertText($0.aps["alert"]).isReal ? nil : "a start needs an alert with a title or a body"
    },
    // Documented as required.
    ActivityRule(.start) {
      $0.aps["attributes-type"]?.text?.isEmpty == true
        ? "attributes-type is empty" : fault($0.aps, "attributes-type", "a string")
    },
    ActivityRule(.start) { fault($0.aps, "attributes", "an object") },
    ActivityRule(.start, .update) { fault($0.aps, "content-state", "an object") },
    // Documented: an end "should" have it.
    ActivityRule(.end) { $0.aps["content-state"] == nil ? nil : fault($0.aps, "content-state", "an object") },
    // Documented as required: whole seconds since 1970.
    ActivityRule(.start, .update, .end) {
      $0.aps["timestamp"]?.integer != nil
        ? nil : fault($0.aps, "timestamp", "a number") ?? "timestamp is not in whole seconds"
    },
    // Reported: an update "in the past" is dropped, an end is not. What it is compared with is not documented.
    ActivityRule(.update) {
      guard let card = $0.card, let timestamp = $0.aps["timestamp"]?.integer else { return nil }
      return timestamp > card.timestamp
        ? nil : "timestamp \(timestamp) is not newer than \(card.timestamp), the last one applied"
    },
    // Reported: so is one too far ahead.
    ActivityRule(.update) {
      let latest = ($0.wallMilliseconds + Card.longestActive) / 1000
      return $0.aps["timestamp"]?.integer.map { $0 > latest } ?? false
        ? "timestamp is more than 8 hours ahead" : nil
    },
  ]

  private static func fault(_ aps: JSONValue, _ name: String, _ kind: String) -> String? {
    guard let value = aps[name] else { return "\(name) is missing" }
    return value.kind == kind ? nil : "\(name) is \(value.kind), wanted \(kind)"
  }
}
