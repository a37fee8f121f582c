import APNs

/// A JSON text as a tree, each value with its place in the text, for files that people write and for payloads
/// that are shown.
struct JSONValue: Sendable {
  struct Member: Sendable {
    let name: String
    /// Where the name begins.
    let offset: Int
    let value: JSONValue
  }

  indirect enum Content: Sendable {
    case null
    case bool(Bool)
    /// As it is spelled.
    case number(String)
    case string(String)
    case array([JSONValue])
    case object([Member])
  }

  let content: Content
  /// Where the value is in the text, in bytes.
  let place: Range<Int>

  /// Reads a text that has to be one JSON object without repeated names.
  static func read(_ text: [UInt8]) throws(TextFault) -> JSONValue {
    var object = JSONObject()
    do throws(JSONFault) { try object.read(text.span) } catch {
      throw TextFault(offset: error.offset, words: error.words)
    }
    // From here on the text is known to be well-formed, so the builder need not look for faults.
    var builder = Builder(text: text)
    let value = builder.value()
    if let fault = builder.fault { throw fault }
    return value
  }

  subscript(name: String) -> JSONValue? { members?.first { $0.name == name }?.value }

  var members: [Member]? { if case .object(let members) = content { members } else { nil } }
  var elements: [JSONValue]? { if case .array(let elements) = content { elements } else { nil } }
  var text: String? { if case .string(let text) = content { text } else { nil } }
  var bool: Bool? { if case .bool(let value) = content { value } else { nil } }
  var integer: Int64? { if case .number(let digits) = content { Int64(digits) } else { nil } }
  var isNull: Bool { if case .null = content { true } else { false } }

  /// What kind of value it is, in words.
  var kind: String {
    switch content {
    case .null: "null"
    case .bool: "true or false"
    case .number: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }

  private struct Builder {
    let text: [UInt8]
    var index = 0
    var fault: TextFault?

    mutating func skipSpace() {
      while index < text.count, text[index] <= 0x20 { index += 1 }
    }

    mutating func value() -> JSONValue {
      skipSpace()
      let start = index
      let content: Content
      switch text[index] {
      case UInt8(ascii: "{"): content = .object(members())
      case UInt8(ascii: "["): content = .array(elements())
      case UInt8(ascii: "\""): content = .string(string())
      case UInt8(ascii: "t"):
        index += 4
        content = .bool(true)
      case UInt8(ascii: "f"):
        index += 5
        content = .bool(false)
      case UInt8(ascii: "n"):
        index += 4
        content = .null
      default:
        while index < text.count, Self.isNumber(text[index]) { index += 1 }
        content = .number(String(decoding: text[start..<index], as: UTF8.self))
      }
      return JSONValue(content: content, place: start..<index)
    }

    private mutating func members() -> [Member] {
      var members: [Member] = []
      var names: Set<String> = []
      index += 1
      while true {
        skipSpace()
        if text[index] == UInt8(ascii: "}") { break }
        if text[index] == UInt8(ascii: ",") {
          index += 1
          skipSpace()
        }
        let offset = index
        let name = string()
        if !names.insert(name).inserted, fault == nil {
          fault = TextFault(offset: offset, words: "names \"\(TerminalText.clean(name, limit: 40))\" twice")
        }
        skipSpace()
        index += 1
        members.append(Member(name: name, offset: offset, value: value()))
      }
      index += 1
      return members
    }

    private mutating func elements() -> [JSONValue] {
      var elements: [JSONValue] = []
      index += 1
      while true {
        skipSpace()
        if text[index] == UInt8(ascii: "]") { break }
        if text[index] == UInt8(ascii: ",") { index += 1 }
        elements.append(value())
      }
      index += 1
      return elements
    }

    private mutating func string() -> String {
      let start = index + 1
      index = start
      while text[index] != UInt8(ascii: "\"") { index += text[index] == UInt8(ascii: "\\") ? 2 : 1 }
      let inside = start..<index
      index += 1
      return String(decoding: JSONToken.decoded(text.span, inside), as: UTF8.self)
    }

    private static func isNumber(_ byte: UInt8) -> Bool {
      (0x30...0x39).contains(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
        || byte == UInt8(ascii: ".") || byte | 0x20 == UInt8(ascii: "e")
    }
  }
}

/// What is wrong with a text, and where, in bytes from its start.
package struct TextFault: Error, Sendable, Equatable {
  let offset: Int
  let words: String

  /// The fault with its line and column, both counted from 1; the column counts bytes.
  package func words(in text: [UInt8]) -> String {
    let before = text.prefix(offset)
    let line = before.count { $0 == 10 } + 1
    let column = before.reversed().prefix { $0 != 10 }.count + 1
    return "line \(line), column \(column): \(words)"
  }
}
