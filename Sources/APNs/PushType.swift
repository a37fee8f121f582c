/// All that a nudge's kind decides about its request: one row of the one table.
///
/// Sources: Apple, "Sending notification requests to APNs" (push types, topics, priorities) and "Generating a
/// remote notification" (sizes).
package final class PushType: Sendable {
  /// What the payload of a kind has to hold.
  package enum Content: Sendable {
    /// Something to show: text, a badge or a sound.
    case alert
    /// `content-available`, and nothing to show.
    case contentAvailable
    /// `content-changed`, and nothing to show.
    case contentChanged
    /// Whatever the app agreed on with itself; may be empty.
    case free
    /// A Live Activity's event: its state, and for a start all that the phone needs to show it.
    case liveActivity(ActivityEvent)
  }

  /// How long APNs keeps a push of this kind when the row does not say.
  package enum Storage: Sendable {
    /// As long as the worker's `--store-for` says.
    case stored
    /// Not at all: `apns-expiration: 0`, one try.
    case immediate
  }

  /// The kind this row is about.
  package let kind: Kind
  /// The word of the `kind` column, as UTF-8.
  package let name: [UInt8]
  /// The value of `apns-push-type`.
  package let header: [UInt8]
  /// What `apns-topic` has behind the bundle id; empty for most.
  package let topicSuffix: [UInt8]
  /// The word of `nudge_token.kind` whose token serves this kind.
  package let tokenKind: String
  /// The values of `apns-priority` that are legal, the default first.
  package let priorities: [Int]
  /// How long APNs keeps it when the row has no `expires_at`.
  package let storage: Storage
  /// The most bytes that the payload may have.
  package let payloadLimit: Int
  /// What the payload has to hold.
  package let content: Content

  /// The priority of a row that names none.
  package var defaultPriority: Int { priorities.first ?? 10 }

  private init(
    _ kind: Kind, _ name: String, _ header: String, suffix: String = "", token: String,
    priorities: [Int], storage: Storage = .stored, limit: Int = 4096, _ content: Content
  ) {
    self.kind = kind
    self.name = Array(name.utf8)
    self.header = Array(header.utf8)
    self.topicSuffix = Array(suffix.utf8)
    self.tokenKind = token
    self.priorities = priorities
    self.storage = storage
    self.payloadLimit = limit
    self.content = content
  }

  /// The table, in the order of `Kind`.
  ///
  /// Where Apple states no priority, all three values are legal and 10, the default of APNs, is ours too.
  package static let table: [PushType] = [
    PushType(.alert, "alert", "alert", token: "alert", priorities: [10, 5, 1], .alert),
    PushType(
      .background, "background", "background", token: "alert", priorities: [5], .contentAvailable),
    PushType(
      .voip, "voip", "voip", suffix: ".voip", token: "voip", priorities: [10, 5, 1], limit: 5120, .free),
    PushType(
      .location, "location", "location", suffix: ".location-query", token: "location",
      priorities: [10, 5], .free),
    PushType(
      .complication, "complication", "complication", suffix: ".complication", token: "complication",
      priorities: [10, 5, 1], .free),
    PushType(
      .fileprovider, "fileprovider", "fileprovider", suffix: ".pushkit.fileprovider",
      token: "fileprovider", priorities: [10, 5, 1], .free),
    PushType(
      .pushtotalk, "pushtotalk", "pushtotalk", suffix: ".voip-ptt", token: "pushtotalk",
      priorities: [10, 5, 1], storage: .immediate, .free),
    PushType(
      .widgets, "widgets", "widgets", suffix: ".push-type.widgets", token: "widgets",
      priorities: [10, 5, 1], .contentChanged),
    PushType(
      .controls, "controls", "controls", suffix: ".push-type.controls", token: "controls",
      priorities: [10, 5, 1], .contentChanged),
    PushType(
      .activityStart, "activity_start", "liveactivity", suffix: ".push-type.liveactivity",
      token: "activity_start", priorities: [10, 5], .liveActivity(.start)),
    PushType(
      .activityUpdate, "activity_update", "liveactivity", suffix: ".push-type.liveactivity",
      token: "activity_update", priorities: [5, 10], .liveActivity(.update)),
    PushType(
      .activityEnd, "activity_end", "liveactivity", suffix: ".push-type.liveactivity",
      token: "activity_update", priorities: [10, 5], .liveActivity(.end)),
  ]
}
