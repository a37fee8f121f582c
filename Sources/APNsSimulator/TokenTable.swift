import APNs

/// The device tokens that the simulator knows, out of `tokens.json`.
struct TokenTable: Sendable {
  enum State: Sendable, Equatable {
    case good
    /// Since when, in milliseconds since 1970; nil: since the request.
    case unregistered(since: Int64?)
    case expired(since: Int64?)
  }

  struct Entry: Sendable, Equatable {
    /// nil: in both.
    var environment: Environment?
    /// The bundle id, without the suffix of a push type; nil: any.
    var topic: String?
    /// A word of `PushType.tokenKind`; nil: any.
    var kind: String?
    var state = State.good
  }

  private(set) var entries: [[UInt8]: Entry] = [:]

  /// The entry of a token of either case.
  func entry(_ token: ArraySlice<UInt8>) -> Entry? {
    entries.isEmpty ? nil : entries[Self.key(token)]
  }

  /// Whether a push to the token is answered 410.
  func isDead(_ token: [UInt8]) -> Bool { entries[token].map { $0.state != .good } ?? false }

  static func key(_ token: some Sequence<UInt8>) -> [UInt8] {
    token.map { (65...70).contains($0) ? $0 | 0x20 : $0 }
  }

  init() {}

  /// Reads the file; a fault names the place.
  init(_ text: [UInt8]) throws(TextFault) {
    let root = try JSONValue.read(text)
    var reader = MemberReader(root, "the file")
    let list = try reader.array("tokens")
    try reader.end()
    for element in list ?? [] {
      var reader = MemberReader(element, "a token")
      guard let token = try reader.string("token") else { throw reader.missing("token") }
      let key = Self.key(token.text.utf8)
      if let fault = DeviceToken.fault(key.span) {
        throw TextFault(offset: token.offset, words: fault.words)
      }
      var entry = Entry()
      entry.environment = try reader.word("environment", Environment.allCases.map { ($0.rawValue, $0) })
      entry.topic = try reader.string("topic")?.text
      entry.kind = try reader.word("kind", PushType.table.map { ($0.tokenKind, $0.tokenKind) })
      let since = try reader.integer("since")
      let state = try reader.word(
        "state",
        [
          ("good", State.good), ("unregistered", .unregistered(since: since)),
          ("expired", .expired(since: since)),
        ])
      entry.state = state ?? .good
      if since != nil, entry.state == .good {
        throw TextFault(
          offset: element.place.lowerBound, words: "\"since\" is for an unregistered or expired token")
      }
      try reader.end()
      guard entries.updateValue(entry, forKey: key) == nil else {
        throw TextFault(offset: token.offset, words: "this token is listed twice")
      }
    }
  }
}
