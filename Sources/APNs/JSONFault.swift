/// Why bytes are not the JSON object that was asked for, and where.
package struct JSONFault: Error, Equatable, Sendable {
  /// What is wrong. None of the words quotes what was read: it may be a message's text.
  package enum Problem: Equatable, Sendable {
    case empty
    case blank
    case byteOrderMark
    case notAnObject(String)
    case tooDeep(Int)
    case nul
    case notUTF8
    case controlCharacter
    case unknownEscape
    case loneSurrogate
    case malformedNumber
    case numberTooLarge
    case unexpected
    case endsEarly
    case trailing
  }

  /// What is wrong.
  package let problem: Problem
  /// The place, in bytes from the start of the text.
  package let offset: Int

  /// The fault in words, to follow the name of the column: "aps " and these.
  package var words: String {
    switch problem {
    case .empty: "is empty, not a JSON object"
    case .blank: "holds only white space, not a JSON object"
    case .byteOrderMark: "begins with a byte order mark at byte \(offset)"
    case .notAnObject(let kind): "is \(kind) at byte \(offset), not a JSON object"
    case .tooDeep(let limit): "is nested deeper than \(limit) at byte \(offset)"
    case .nul: "has a NUL at byte \(offset)"
    case .notUTF8: "is not UTF-8 at byte \(offset)"
    case .controlCharacter: "is not JSON: unescaped control character at byte \(offset)"
    case .unknownEscape: "is not JSON: unknown escape at byte \(offset)"
    case .loneSurrogate: "has half of a surrogate pair at byte \(offset)"
    case .malformedNumber: "is not JSON: malformed number at byte \(offset)"
    case .numberTooLarge: "has a number beyond the range of a double at byte \(offset)"
    case .unexpected: "is not JSON: unexpected character at byte \(offset)"
    case .endsEarly: "is not JSON: it ends early, at byte \(offset)"
    case .trailing: "is not JSON: something follows the object, at byte \(offset)"
    }
  }
}
