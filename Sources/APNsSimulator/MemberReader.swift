/// Reads the members of one object in a file that people write: each by its type, and none that is unknown.
struct MemberReader {
  struct Text {
    let text: String
    let offset: Int
  }

  private let members: [JSONValue.Member]
  private let what: String
  private let offset: Int
  private var known: [String] = []
  private let isObject: Bool

  /// - Parameter what: what the object describes, for messages, e.g. "a rule".
  init(_ value: JSONValue, _ what: String) {
    members = value.members ?? []
    isObject = value.members != nil
    self.what = what
    offset = value.place.lowerBound
  }

  /// The names that the object has, in its order.
  var names: [String] { members.map(\.name) }

  mutating func value(_ name: String) throws(TextFault) -> JSONValue? {
    guard isObject else { throw TextFault(offset: offset, words: "\(what) has to be an object") }
    known.append(name)
    return members.first { $0.name == name }?.value
  }

  mutating func string(_ name: String) throws(TextFault) -> Text? {
    guard let value = try value(name) else { return nil }
    guard let text = value.text else { throw wrong(name, value, "a string") }
    return Text(text: text, offset: value.place.lowerBound)
  }

  mutating func integer(_ name: String, in range: ClosedRange<Int64> = 0...Int64.max) throws(TextFault)
    -> Int64?
  {
    guard let value = try value(name) else { return nil }
    guard let number = value.integer, range.contains(number) else {
      let bounds =
        range.upperBound == Int64.max
        ? "\(range.lowerBound) or more" : "\(range.lowerBound) to \(range.upperBound)"
      throw wrong(name, value, "a whole number, \(bounds)")
    }
    return number
  }

  mutating func flag(_ name: String) throws(TextFault) -> Bool? {
    guard let value = try value(name) else { return nil }
    guard let flag = value.bool else { throw wrong(name, value, "true or false") }
    return flag
  }

  mutating func array(_ name: String) throws(TextFault) -> [JSONValue]? {
    guard let value = try value(name) else { return nil }
    guard let elements = value.elements else { throw wrong(name, value, "an array") }
    return elements
  }

  /// One of several words.
  mutating func word<Value>(_ name: String, _ words: [(String, Value)]) throws(TextFault) -> Value? {
    guard let value = try value(name) else { return nil }
    if let text = value.text, let found = words.first(where: { $0.0 == text }) { return found.1 }
    var list: [String] = []
    for (word, _) in words where !list.contains(word) { list.append(word) }
    throw wrong(name, value, "one of \(list.joined(separator: ", "))")
  }

  /// Throws when the object has a member that was not asked for.
  func end() throws(TextFault) {
    guard isObject else { throw TextFault(offset: offset, words: "\(what) has to be an object") }
    guard let other = members.first(where: { !known.contains($0.name) }) else { return }
    let name = TerminalText.clean(other.name, limit: 40)
    throw TextFault(
      offset: other.offset, words: "\(what) has no \"\(name)\"; it may have \(known.joined(separator: ", "))")
  }

  func missing(_ name: String) -> TextFault {
    TextFault(offset: offset, words: "\(what) needs a \"\(name)\"")
  }

  private func wrong(_ name: String, _ value: JSONValue, _ wanted: String) -> TextFault {
    TextFault(offset: value.place.lowerBound, words: "\"\(name)\" is \(value.kind), wanted \(wanted)")
  }
}
