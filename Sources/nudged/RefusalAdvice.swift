import Outbox

/// What a refusal of Apple's means for whoever runs the worker, and what puts it right.
struct RefusalAdvice: Equatable {
  var meaning: String
  var fix: String
  /// Whether nothing goes to the host until it is put right.
  var stopsAll = false

  /// Nil for an answer that nobody has to do anything about.
  init?(_ answers: Health.Answers) {
    switch (answers.status, answers.reason) {
    case (403, "ExpiredProviderToken"):
      self.init("the clock is wrong", "timedatectl set-ntp true", stopsAll: true)
    case (403, "BadEnvironmentKeyInToken"), (403, "BadEnvironmentKeyIdInToken"):
      self.init(
        "the key is for the other environment",
        "--production-key-file and --sandbox-key-file, each with its key",
        stopsAll: true)
    case (403, _):
      self.init(
        "key, key id and team id do not belong together, or the key was revoked",
        "compare --key-id and --team-id with the developer account: Keys, and Membership details",
        stopsAll: true)
    case (429, "TooManyProviderTokenUpdates"):
      self.init("another program signs with this key too, and often", "a key for this worker alone")
    case (429, _): self.init("a device gets too many", "send less: collapse_id, background nudges")
    case (400, "BadDeviceToken"):
      self.init(
        "the app was built for the other environment",
        "give the key for that environment, too: `nudged help settings`")
    case (400, "DeviceTokenNotForTopic"), (400, "TopicDisallowed"), (400, "BadTopic"), (400, "MissingTopic"):
      self.init(
        "the topic is not the app's bundle id, or the key is of another team",
        "correct `topic` in nudge_registration, or the key")
    case (413, _): self.init("a nudge was too large", "nudged audit")
    case (400, _), (404, _), (405, _): self.init("a nudge cannot be sent so", "nudged audit")
    case (let status?, _) where status >= 500:
      self.init("Apple's side fails", "wait: https://developer.apple.com/system-status/")
    case (nil, _) where answers.outcome == "unanswered":
      self.init("no answer came", "journalctl -u nudged -p warning")
    default: return nil
    }
  }

  private init(_ meaning: String, _ fix: String, stopsAll: Bool = false) {
    self.meaning = meaning
    self.fix = fix
    self.stopsAll = stopsAll
  }
}
