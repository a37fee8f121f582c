/// The tokens of JSON, each read by one pass that returns where the token ends.
package enum JSONToken {
  /// The end of the white space that starts at `start`.
  static func spaceEnd(_ text: Span<UInt8>, from start: Int) -> Int {
    var index = start
    while index < text.count, JSONByte.isSpace(text[index]) { index += 1 }
    return index
  }

  /// The end of the string, number or literal at `start`.
  static func scalarEnd(_ text: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
    switch text[start] {
    case JSONByte.quote: return try stringEnd(text, from: start)
    case JSONByte.minus, 0x30...0x39: return try numberEnd(text, from: start)
    case UInt8(ascii: "t"): return try literalEnd("true", text, from: start)
    case UInt8(ascii: "f"): return try literalEnd("false", text, from: start)
    case UInt8(ascii: "n"): return try literalEnd("null", text, from: start)
    default: throw fault(text, at: start, otherwise: .unexpected)
    }
  }

  private static func literalEnd(
    _ word: StaticString, _ text: Span<UInt8>, from start: Int
  ) throws(JSONFault) -> Int {
    let end = start + word.utf8CodeUnitCount
    guard end <= text.count, text.holds(word, in: start..<end) else {
      throw JSONFault(problem: .unexpected, offset: start)
    }
    return end
  }

  /// RFC 8259 section 6: `[-] (0 | 1-9 digits) [. digits] [e [+|-] digits]`.
  private static func numberEnd(_ text: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
    var index = start
    if text[index] == JSONByte.minus { index += 1 }
    let whole = index
    index = digitsEnd(text, from: index)
    guard index > whole, index == whole + 1 || text[whole] != UInt8(ascii: "0") else {
      throw JSONFault(problem: .malformedNumber, offset: start)
    }
    if index < text.count, text[index] == UInt8(ascii: ".") {
      let fraction = index + 1
      index = digitsEnd(text, from: fraction)
      guard index > fraction else { throw JSONFault(problem: .malformedNumber, offset: start) }
    }
    if index < text.count, text[index] | 0x20 == UInt8(ascii: "e") {
      index += 1
      if index < text.count, text[index] == UInt8(ascii: "+") || text[index] == JSONByte.minus {
        index += 1
      }
      let exponent = index
      index = digitsEnd(text, from: exponent)
      guard index > exponent else { throw JSONFault(problem: .malformedNumber, offset: start) }
    } else if index - start < 300 {
      return index
    }
    // Only a long number or an exponent can leave the range of a double, which Foundation does not parse.
    let number = text.extracting(start..<index).withUnsafeBufferPointer {
      Double(String(decoding: $0, as: UTF8.self))
    }
    guard let number, number.isFinite else {
      throw JSONFault(problem: .numberTooLarge, offset: start)
    }
    return index
  }

  private static func digitsEnd(_ text: Span<UInt8>, from start: Int) -> Int {
    var index = start
    while index < text.count, JSONByte.isDigit(text[index]) { index += 1 }
    return index
  }

  /// The end of the string whose opening quotation mark is at `start`, behind its closing one.
  static func stringEnd(_ text: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
    var index = start + 1
    while true {
      index = text.plainRunEnd(from: index)
      guard index < text.count else { throw JSONFault(problem: .endsEarly, offset: index) }
      let byte = text[index]
      if byte == JSONByte.quote { return index + 1 }
      if byte == JSONByte.solidus {
        index = try escapeEnd(text, from: index)
      } else if byte < 0x20 {
        throw fault(text, at: index, otherwise: .controlCharacter)
      } else {
        guard let length = text.scalarLength(at: index) else {
          throw JSONFault(problem: .notUTF8, offset: index)
        }
        index += length
      }
    }
  }

  private static func escapeEnd(_ text: Span<UInt8>, from start: Int) throws(JSONFault) -> Int {
    guard start + 1 < text.count else { throw JSONFault(problem: .endsEarly, offset: text.count) }
    switch text[start + 1] {
    case JSONByte.quote, JSONByte.solidus, UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return start + 2
    case UInt8(ascii: "u"):
      guard let unit = codeUnit(text, at: start) else {
        throw JSONFault(problem: .unknownEscape, offset: start)
      }
      guard unit & 0xF800 == 0xD800 else { return start + 6 }
      guard unit < 0xDC00, let low = codeUnit(text, at: start + 6), low & 0xFC00 == 0xDC00 else {
        throw JSONFault(problem: .loneSurrogate, offset: start)
      }
      return start + 12
    default:
      throw fault(text, at: start + 1, otherwise: .unknownEscape)
    }
  }

  /// The UTF-16 code unit of the escape `\uXXXX` at `start`; nil if there is no such escape.
  private static func codeUnit(_ text: Span<UInt8>, at start: Int) -> UInt32? {
    guard start + 6 <= text.count, text[start] == JSONByte.solidus,
      text[start + 1] == UInt8(ascii: "u")
    else { return nil }
    var unit: UInt32 = 0
    for index in (start + 2)..<(start + 6) {
      guard let digit = JSONByte.hexValue(text[index]) else { return nil }
      unit = unit << 4 | digit
    }
    return unit
  }

  /// What the inside of a string that has been read before says, escapes undone, as UTF-8.
  package static func decoded(_ text: Span<UInt8>, _ inside: Range<Int>) -> [UInt8] {
    var result: [UInt8] = []
    var index = inside.lowerBound
    while index < inside.upperBound {
      guard text[index] == JSONByte.solidus, index + 1 < inside.upperBound else {
        result.append(text[index])
        index += 1
        continue
      }
      if var code = codeUnit(text, at: index) {
        index += 6
        if code & 0xFC00 == 0xD800, let low = codeUnit(text, at: index) {
          code = 0x10000 + (code & 0x3FF) << 10 + low & 0x3FF
          index += 6
        }
        if let scalar = Unicode.Scalar(code) { result.append(contentsOf: UTF8.encode(scalar) ?? .init()) }
        continue
      }
      switch text[index + 1] {
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case let other: result.append(other)
      }
      index += 2
    }
    return result
  }

  /// A NUL and bytes that are no UTF-8 have names of their own wherever they stand.
  static func fault(
    _ text: Span<UInt8>, at index: Int, otherwise problem: JSONFault.Problem
  ) -> JSONFault {
    if text[index] == 0 { return JSONFault(problem: .nul, offset: index) }
    if text.scalarLength(at: index) == nil { return JSONFault(problem: .notUTF8, offset: index) }
    return JSONFault(problem: problem, offset: index)
  }

  /// The kind of a value by its first byte, in words.
  static func kindOfValue(_ first: UInt8) -> String {
    switch first {
    case JSONByte.openBracket: "an array"
    case JSONByte.quote: "a string"
    case UInt8(ascii: "t"), UInt8(ascii: "f"): "true or false"
    case UInt8(ascii: "n"): "null"
    default: "a number"
    }
  }
}
