import APNs

/// One push under examination: the questions that the checks ask, each answered in one place.
struct Examination {
  let push: Push
  let host: Environment
  let entry: TokenTable.Entry?
  /// The row of `PushType.table`: an index, since a row is costly to copy.
  private let typeIndex: Int?
  let rules: Rules
  let wallMilliseconds: Int64
  /// The topic without the suffix of any push type.
  let bundleID: ArraySlice<UInt8>
  /// The suffix that the topic has, empty for none.
  let suffix: [UInt8]

  init(
    _ push: Push, host: Environment, entry: TokenTable.Entry?, rules: Rules, wallMilliseconds: Int64
  ) {
    self.push = push
    self.host = host
    self.entry = entry
    self.rules = rules
    self.wallMilliseconds = wallMilliseconds
    typeIndex = push.typeIndex
    let topic = push.topic ?? 0..<0
    suffix = Self.suffixes.first { topic.count > $0.count && push.holds($0, topic.suffix($0.count)) } ?? []
    bundleID = push.bytes[topic.dropLast(suffix.count)]
  }

  private static let suffixes = PushType.table.map(\.topicSuffix).filter { !$0.isEmpty }

  /// The kind that the push type names; the first of three for `liveactivity`.
  var kind: Kind? { typeIndex.flatMap { Kind(rawValue: $0) } }

  /// What the simulator was told to be strict about.
  struct Rules: Sendable {
    /// Where a token that is not in the table is accepted.
    var unknownTokens: Set<Environment> = [.production, .sandbox]
    /// The bundle ids that may be used; empty: all.
    var topics: [String] = []
  }

  var token: ArraySlice<UInt8> { push.token.map { push.bytes[$0] } ?? [] }

  var isTopicMalformed: Bool { Topic.fault(push.bytes.span.extracting(push.topic ?? 0..<0)) != nil }

  func isUUID(_ range: Range<Int>) -> Bool {
    guard range.count == 36 else { return false }
    let span = push.bytes.span
    for step in 0..<36 {
      let byte = span[range.lowerBound + step]
      let isDash = step == 8 || step == 13 || step == 18 || step == 23
      guard isDash ? byte == UInt8(ascii: "-") : Self.isHexadecimal(byte) else { return false }
    }
    return true
  }

  var isTopicAllowed: Bool {
    guard !rules.topics.isEmpty else { return true }
    return rules.topics.contains { $0.utf8.elementsEqual(bundleID) }
  }

  /// nil: there is none, and 10 is meant.
  var hasLegalPriority: Bool? {
    push.priority.map { [10, 5, 1].contains(push.number($0)) && push.bytes[$0.lowerBound] != 48 }
  }

  var isUrgentBackground: Bool {
    guard kind == .background, let priority = push.priority else { return false }
    return push.number(priority) == 10
  }

  var hasMalformedToken: Bool {
    let token = push.token ?? 0..<0
    guard token.count & 1 == 0, token.count <= DeviceToken.mostDigits else { return true }
    let span = push.bytes.span
    for index in token where !Self.isHexadecimal(span[index]) { return true }
    return false
  }

  var isInEnvironment: Bool {
    guard let entry else { return rules.unknownTokens.contains(host) }
    return entry.environment.map { $0 == host } ?? true
  }

  var death: Refusal? {
    switch entry?.state {
    case .unregistered(let since): Refusal("Unregistered", timestamp: since ?? wallMilliseconds)
    case .expired(let since): Refusal("ExpiredToken", timestamp: since ?? wallMilliseconds)
    case .good, nil: nil
    }
  }

  var isForTopic: Bool {
    guard let entry else { return true }
    if let topic = entry.topic, !topic.utf8.elementsEqual(bundleID) { return false }
    guard let kind = entry.kind else { return true }
    let wanted = PushType.table.first { $0.tokenKind == kind }?.topicSuffix ?? []
    return wanted == suffix
  }

  /// The topic has the suffix that the push type asks for, and has it once.
  var hasSuffixOfType: Bool {
    guard let typeIndex else { return true }
    return PushType.table[typeIndex].topicSuffix == suffix
      && (suffix.isEmpty || bundleID.suffix(suffix.count) != suffix[...])
  }

  var isTypeUnknown: Bool { push.type != nil && typeIndex == nil }

  var isPayloadTooLarge: Bool {
    push.bodyCount > (typeIndex.map { PushType.table[$0].payloadLimit } ?? 4_096)
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte | 0x20)
  }
}
