import APNs

/// One Live Activity on the phone: what its card shows, and until when.
struct Card: Equatable, Sendable {
  enum State: Equatable, Sendable {
    case active
    /// Past its `stale-date`.
    case stale
    /// Over, but still to be seen.
    case ended
    /// Not to be seen any more.
    case gone
  }

  /// Documented: active at most 8 h, and on the lock screen at most 4 h longer.
  static let longestActive: Int64 = 8 * 3_600_000
  static let longestEnded: Int64 = 4 * 3_600_000

  /// From 1, by appearance.
  let number: Int
  /// The bundle id.
  let app: String
  let host: Environment
  /// The backend's own id of the activity, as the app finds it in `attributes`; nil: in none of them.
  let activityID: String?
  /// Documented: a start has to ask for an update token by `"input-push-token": 1`.
  let asksForToken: Bool

  private(set) var state = State.active
  /// The text member `title` of the content state.
  private(set) var title = ""
  /// The other members of the content state.
  private(set) var text = ""
  /// The last one.
  private(set) var alert = ""
  /// Of the content that was applied last, in seconds since 1970.
  private(set) var timestamp: Int64 = 0
  /// What became of its adoption, for the reader.
  var note = ""

  // Milliseconds since 1970.
  private var staleAt: Int64?
  private var endedAt: Int64
  private(set) var goneAt: Int64

  /// A card for a push that no other card is tied to.
  init(_ number: Int, app: String, host: Environment, aps: JSONValue, wallMilliseconds: Int64) {
    self.number = number
    self.app = app
    self.host = host
    activityID = Self.activityIDNames.lazy.compactMap { aps["attributes"]?[$0]?.text }.first { !$0.isEmpty }
    asksForToken = aps["input-push-token"]?.integer == 1
    endedAt = wallMilliseconds + Self.longestActive
    goneAt = endedAt + Self.longestEnded
  }

  /// Where the app looks for the backend's id, in this order. The names are ours: Apple has none for it.
  static let activityIDNames = ["activityId", "activity_id", "activityID", "id"]

  /// Shows what a push says that the phone does not drop.
  mutating func apply(_ event: ActivityEvent, _ aps: JSONValue, of body: [UInt8], wallMilliseconds: Int64) {
    if let content = aps["content-state"] { setContent(content, body) }
    let alert = AlertText(aps["alert"])
    if alert.isReal { self.alert = alert.line }
    timestamp = aps["timestamp"]?.integer ?? timestamp
    // It belongs to the content: one without it is never stale.
    staleAt = Self.milliseconds(aps["stale-date"])
    if event == .end {
      endedAt = wallMilliseconds
      // Documented: a time in the past removes it at once, and 4 h is the longest.
      let latest = wallMilliseconds + Self.longestEnded
      goneAt = min(Self.milliseconds(aps["dismissal-date"]) ?? latest, latest)
    }
    pass(to: wallMilliseconds)
  }

  /// The person swiped it away.
  mutating func swipe() { state = .gone }

  /// Sets the state that it has at a time; false when it is the one it had.
  @discardableResult
  mutating func pass(to wallMilliseconds: Int64) -> Bool {
    let old = state
    if state == .gone || wallMilliseconds >= goneAt {
      state = .gone
    } else if wallMilliseconds >= endedAt {
      state = .ended
    } else {
      state = staleAt.map { wallMilliseconds >= $0 } ?? false ? .stale : .active
    }
    return state != old
  }

  /// When its state changes next by itself, in milliseconds since 1970.
  var nextChange: Int64? {
    switch state {
    case .active: min(staleAt ?? endedAt, endedAt)
    case .stale: endedAt
    case .ended: goneAt
    case .gone: nil
    }
  }

  /// The state in words; empty while it is active.
  var status: String {
    switch state {
    case .active: ""
    case .stale: "stale"
    case .ended: "ended, goes at \(RequestLog.time(goneAt).prefix(19))Z"
    case .gone: "gone"
    }
  }

  /// What it shows, on one line.
  var line: String {
    [title, text, alert.isEmpty ? "" : "alert: " + alert].filter { !$0.isEmpty }.joined(separator: " | ")
  }

  /// The text members read better without JSON's signs; what else there is stands as it came.
  private mutating func setContent(_ content: JSONValue, _ body: [UInt8]) {
    title = content["title"]?.text ?? ""
    let others = (content.members ?? []).filter { $0.name != "title" || $0.value.text == nil }
    text = others.map {
      "\($0.name): " + ($0.value.text ?? String(decoding: body[$0.value.place], as: UTF8.self))
    }
    .joined(separator: " · ")
  }

  /// Whole seconds since 1970, as Apple has them; anything else is none.
  private static func milliseconds(_ seconds: JSONValue?) -> Int64? {
    seconds?.integer.map { min(max($0, 0), Int64.max / 1000) * 1000 }
  }
}
