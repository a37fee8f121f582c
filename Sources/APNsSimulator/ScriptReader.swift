import APNs
import HTTP2

extension Script {
  /// Reads a script: `{"rules": [...]}`. A fault names the place and what may stand there.
  init(_ text: [UInt8]) throws(TextFault) {
    var reader = MemberReader(try JSONValue.read(text), "the script")
    guard let list = try reader.array("rules") else { throw reader.missing("rules") }
    try reader.end()
    var rules: [ScriptRule] = []
    for element in list { rules.append(try ScriptRule(element, text)) }
    self.init(rules: rules)
  }
}

extension ScriptRule {
  init(_ value: JSONValue, _ text: [UInt8]) throws(TextFault) {
    var reader = MemberReader(value, "a rule")
    if let given = try reader.string("token") {
      let key = TokenTable.key(given.text.utf8)
      if let fault = DeviceToken.fault(key.span) { throw TextFault(offset: given.offset, words: fault.words) }
      token = key
    }
    host = try reader.word("host", Environment.allCases.map { ($0.rawValue, $0) })
    if let given = try reader.value("request") { requests = try Self.range(given) }
    counted = try reader.word("of", Counted.allCases.map { ($0.rawValue, $0) }) ?? .server
    action = try ScriptAction(&reader, value, text)
    try reader.end()
  }

  /// `3`, `"3-5"` or `"3-"`.
  private static func range(_ value: JSONValue) throws(TextFault) -> ClosedRange<Int> {
    if let number = value.integer, number >= 1 { return Int(number)...Int(number) }
    if let text = value.text {
      let parts = text.split(separator: "-", omittingEmptySubsequences: false)
      if parts.count == 2, let first = Int(parts[0]), first >= 1 {
        if parts[1].isEmpty { return first...Int.max }
        if let last = Int(parts[1]), last >= first { return first...last }
      }
    }
    throw TextFault(
      offset: value.place.lowerBound, words: "\"request\" is a number from 1, or a range as \"2-5\" or \"2-\""
    )
  }
}

extension ScriptAction {
  init(_ reader: inout MemberReader, _ value: JSONValue, _ text: [UInt8]) throws(TextFault) {
    let place = value.place.lowerBound
    let status = try reader.integer("status", in: 200...599)
    let reason = try reader.string("reason")
    let silence = try reader.flag("silence") ?? false
    let reset = try reader.value("reset")
    var answers = 0
    if status != nil || reason != nil {
      answers += 1
      let implied = reason.flatMap { Refusal.status(of: $0.text) }
      guard let number = status.map({ Int($0) }) ?? implied else {
        throw TextFault(
          offset: reason?.offset ?? place, words: "this reason is not in Apple's table: it needs a \"status\""
        )
      }
      answer = .status(number, reason: reason?.text)
    }
    if silence {
      answers += 1
      answer = .silence
    }
    if let reset {
      answers += 1
      answer = .reset(try Self.code(reset, "reset"))
    }
    guard answers <= 1 else {
      throw TextFault(
        offset: place, words: "a rule gives one answer: a status or reason, \"silence\" or \"reset\"")
    }
    try readBody(&reader, text)
    if let delay = try reader.string("delay") {
      guard let duration = Duration(spelled: delay.text) else {
        throw TextFault(
          offset: delay.offset, words: "\"delay\" is a duration such as \"200ms\", \"2s\" or \"1m\"")
      }
      self.delay = duration
    }
    sendsHints = try reader.flag("early_hints") ?? false
    if let given = try reader.value("settings") { settings = try Self.settings(given) }
    if let given = try reader.value("goaway") { goaway = try Goaway(given) }
    close = try reader.word("close", [("before", Close.before), ("after", .after)])
  }

  private mutating func readBody(_ reader: inout MemberReader, _ text: [UInt8]) throws(TextFault) {
    if let raw = try reader.string("raw") { body = Array(raw.text.utf8) }
    guard let given = try reader.value("body") else { return }
    guard let members = given.members else {
      throw TextFault(
        offset: given.place.lowerBound, words: "\"body\" is an object; other bodies go into \"raw\"")
    }
    guard body == nil else {
      throw TextFault(offset: given.place.lowerBound, words: "a rule has \"body\" or \"raw\", not both")
    }
    guard case .status = answer else {
      throw TextFault(offset: given.place.lowerBound, words: "\"body\" needs a \"status\" or \"reason\"")
    }
    self.members = members.map { ($0.name, Array(text[$0.value.place])) }
  }

  private static func settings(_ value: JSONValue) throws(TextFault) -> [ServerSetting] {
    var reader = MemberReader(value, "\"settings\"")
    var settings: [ServerSetting] = []
    if let streams = try reader.integer("max_concurrent_streams", in: 0...Int64(UInt32.max)) {
      settings.append(.maximumStreams(UInt32(streams)))
    }
    if let window = try reader.integer("initial_window_size", in: 0...Int64(Int32.max)) {
      settings.append(.initialWindow(UInt32(window)))
    }
    try reader.end()
    return settings
  }

  /// An error code of HTTP/2, by its name or its number.
  static func code(_ value: JSONValue, _ name: String) throws(TextFault) -> UInt32 {
    if let number = value.integer, let code = UInt32(exactly: number) { return code }
    if let text = value.text, let code = errorCode(named: text) { return code }
    throw TextFault(
      offset: value.place.lowerBound,
      words: "\"\(name)\" is an error code of HTTP/2, such as \"REFUSED_STREAM\" or 7")
  }
}

extension ScriptAction.Goaway {
  init(_ value: JSONValue) throws(TextFault) {
    var reader = MemberReader(value, "\"goaway\"")
    if let given = try reader.value("last_stream") {
      switch (given.text, given.integer.flatMap { Int32(exactly: $0) }) {
      case ("this", _): last = .this
      case ("before", _): last = .before
      case (_, let stream?) where stream >= 0: last = .stream(stream)
      default:
        throw TextFault(
          offset: given.place.lowerBound,
          words: "\"last_stream\" is \"this\", \"before\" or a stream's number")
      }
    }
    if let given = try reader.value("code") { code = try ScriptAction.code(given, "code") }
    if let given = try reader.string("debug") { debug = Array(given.text.utf8) }
    try reader.end()
  }
}

extension Duration {
  /// A whole number with `ms`, `s`, `m` or `h`; nil for anything else, and for more than a day.
  init?(spelled text: String) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let number = Int64(digits), number <= 86_400_000 else { return nil }
    switch text.dropFirst(digits.count) {
    case "ms": self = .milliseconds(number)
    case "s": self = .seconds(number)
    case "m": self = .seconds(number * 60)
    case "h": self = .seconds(number * 3_600)
    default: return nil
    }
    if self > .seconds(86_400) { return nil }
  }
}
