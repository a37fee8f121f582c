/// One top-level member of a JSON object, as ranges of bytes in the text it was read from.
package struct JSONMember: Sendable {
  /// The name, between its quotation marks.
  package let name: Range<Int>
  /// The value, without white space around it.
  package fileprivate(set) var value: Range<Int>
  /// Whether the name has escapes, so that its bytes are not what it says.
  let isEscaped: Bool
  /// A hash of what the name says, so that unequal names are told apart cheaply.
  let hash: UInt64
}

/// A validated JSON object: where its top-level members are, and where its inside begins and ends.
///
/// One value is read into again and again: after the first few texts nothing is allocated. The text is RFC
/// 8259 to the letter, and UTF-8. Two things are legal there but refused here, since Foundation on the
/// phone does not parse them and the push would be accepted and never shown: half of a surrogate pair
/// (`\ud83d` alone), and a number beyond the range of a double. Open containers are kept as bits, one
/// for each level, so that depth costs neither stack nor heap.
package struct JSONObject: Sendable {
  /// The deepest nesting that Foundation on the phone reads.
  package static let deepest = 512

  /// No legal payload has more: a member takes five bytes (`"":0,`). What comes after is checked, not
  /// listed.
  private static let mostMembers = 1300

  /// The top-level members in the order of the text.
  package private(set) var members: [JSONMember] = []
  /// What stands between the outermost braces, white space included.
  package private(set) var contents = 0..<0

  package init() {}

  /// Reads `text`, which has to be one JSON object, white space around it allowed.
  ///
  /// - Parameter maximumDepth: the most containers within each other, the object itself included; at
  ///   most 512.
  package mutating func read(
    _ text: Span<UInt8>, maximumDepth: Int = JSONObject.deepest
  ) throws(JSONFault) {
    members.removeAll(keepingCapacity: true)
    contents = 0..<0
    guard text.count > 0 else { throw JSONFault(problem: .empty, offset: 0) }
    if text.count >= 3, text[0] == 0xEF, text[1] == 0xBB, text[2] == 0xBF {
      throw JSONFault(problem: .byteOrderMark, offset: 0)
    }
    let start = JSONToken.spaceEnd(text, from: 0)
    guard start < text.count else { throw JSONFault(problem: .blank, offset: 0) }
    let end = try readValue(text, from: start, maximumDepth: min(maximumDepth, JSONObject.deepest))
    let rest = JSONToken.spaceEnd(text, from: end)
    guard rest == text.count else { throw JSONToken.fault(text, at: rest, otherwise: .trailing) }
    guard text[start] == JSONByte.openBrace else {
      throw JSONFault(problem: .notAnObject(JSONToken.kindOfValue(text[start])), offset: start)
    }
    contents = (start + 1)..<(end - 1)
  }

  /// Walks one value of any kind and returns its end.
  private mutating func readValue(
    _ text: Span<UInt8>, from start: Int, maximumDepth: Int
  ) throws(JSONFault) -> Int {
    /// A set bit is an object, a clear one an array; bit `depth - 1` is the innermost.
    var isObject = InlineArray<8, UInt64>(repeating: 0)
    var depth = 0
    var index = start
    while true {
      // A value begins at `index`.
      guard index < text.count else { throw JSONFault(problem: .endsEarly, offset: index) }
      let first = text[index]
      if first == JSONByte.openBrace || first == JSONByte.openBracket {
        guard depth < maximumDepth else {
          throw JSONFault(problem: .tooDeep(maximumDepth), offset: index)
        }
        let bit = UInt64(1) << UInt64(depth & 63)
        let isBrace = first == JSONByte.openBrace
        if isBrace { isObject[depth >> 6] |= bit } else { isObject[depth >> 6] &= ~bit }
        depth += 1
        index = JSONToken.spaceEnd(text, from: index + 1)
        guard index < text.count else { throw JSONFault(problem: .endsEarly, offset: index) }
        if text[index] == (isBrace ? JSONByte.closeBrace : JSONByte.closeBracket) {
          index += 1
          depth -= 1
        } else {
          if isBrace { index = try readName(text, from: index, isTopLevel: depth == 1) }
          continue
        }
      } else {
        index = try JSONToken.scalarEnd(text, from: index)
      }
      // A value has ended at `index`: close what closes, up to the next value.
      while true {
        if depth == 0 { return index }
        let inObject = isObject[(depth - 1) >> 6] >> UInt64((depth - 1) & 63) & 1 == 1
        if depth == 1, inObject { endMember(at: index) }
        index = JSONToken.spaceEnd(text, from: index)
        guard index < text.count else { throw JSONFault(problem: .endsEarly, offset: index) }
        if text[index] == JSONByte.comma {
          index = JSONToken.spaceEnd(text, from: index + 1)
          if inObject { index = try readName(text, from: index, isTopLevel: depth == 1) }
          break
        }
        guard text[index] == (inObject ? JSONByte.closeBrace : JSONByte.closeBracket) else {
          throw JSONToken.fault(text, at: index, otherwise: .unexpected)
        }
        index += 1
        depth -= 1
      }
    }
  }

  /// Reads `"name" :` and returns where the value begins.
  private mutating func readName(
    _ text: Span<UInt8>, from start: Int, isTopLevel: Bool
  ) throws(JSONFault) -> Int {
    guard start < text.count else { throw JSONFault(problem: .endsEarly, offset: start) }
    guard text[start] == JSONByte.quote else {
      throw JSONToken.fault(text, at: start, otherwise: .unexpected)
    }
    let end = try JSONToken.stringEnd(text, from: start)
    var index = JSONToken.spaceEnd(text, from: end)
    guard index < text.count else { throw JSONFault(problem: .endsEarly, offset: index) }
    guard text[index] == JSONByte.colon else {
      throw JSONToken.fault(text, at: index, otherwise: .unexpected)
    }
    index = JSONToken.spaceEnd(text, from: index + 1)
    if isTopLevel, members.count < JSONObject.mostMembers {
      let name = (start + 1)..<(end - 1)
      let (hash, isEscaped) = JSONName.hash(text, name)
      members.append(
        JSONMember(name: name, value: index..<index, isEscaped: isEscaped, hash: hash))
    }
    return index
  }

  private mutating func endMember(at end: Int) {
    let last = members.count - 1
    // Past `mostMembers` the last one is already closed.
    guard members[last].value.isEmpty else { return }
    members[last].value = members[last].value.lowerBound..<end
  }

  /// The member that says `name`, which is plain ASCII, however the text spells it.
  package func member(_ name: StaticString, in text: Span<UInt8>) -> JSONMember? {
    for member in members where JSONName.says(name, text, member) { return member }
    return nil
  }

  /// The first pair of members that say the same name, in the order of the text.
  package func repeated(in text: Span<UInt8>) -> (first: JSONMember, second: JSONMember)? {
    for later in members.indices.dropFirst() {
      for earlier in 0..<later
      where members[earlier].hash == members[later].hash
        && JSONName.sayTheSame(text, members[earlier], members[later])
      {
        return (members[earlier], members[later])
      }
    }
    return nil
  }
}
