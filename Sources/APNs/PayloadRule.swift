/// What makes a row's columns unfit for a payload, one function a rule.
enum PayloadRule {
  static let nothingToShow =
    "nothing to show: no title, subtitle or body, and no alert, badge or sound inside aps"

  /// Reads a JSON column.
  static func read(
    _ text: Span<UInt8>, of column: PayloadColumn, into object: inout JSONObject, maximumDepth: Int
  ) throws(PayloadFault) {
    do throws(JSONFault) {
      try object.read(text, maximumDepth: maximumDepth)
    } catch {
      throw PayloadFault("\(column.rawValue) \(error.words)")
    }
    if let (first, second) = object.repeated(in: text) {
      throw PayloadFault(
        "\(memberName(second, text)) is given twice inside \(column.rawValue),"
          + " at byte \(first.name.lowerBound - 1) and at byte \(second.name.lowerBound - 1)")
    }
  }

  /// No member inside `aps` is also given by a column.
  static func checkMembers(
    ofAps object: JSONObject, _ aps: Span<UInt8>, _ columns: PayloadColumns
  ) throws(PayloadFault) {
    if let column = columns.firstShown, object.member("alert", in: aps) != nil {
      throw PayloadFault("alert is given by \(column.rawValue) and inside aps")
    }
    if columns.conversationID != nil, object.member("thread-id", in: aps) != nil {
      throw PayloadFault("thread-id is given by conversation_id and inside aps")
    }
  }

  /// No member inside `data` is also given by a column.
  static func checkMembers(
    ofData object: JSONObject, _ data: Span<UInt8>, _ columns: PayloadColumns
  ) throws(PayloadFault) {
    if object.member("aps", in: data) != nil {
      throw PayloadFault("aps is given by the column aps and inside data")
    }
    if columns.conversationID != nil, object.member("conversation_id", in: data) != nil {
      throw PayloadFault("conversation_id is given by the column conversation_id and inside data")
    }
  }

  /// A kind that shows nothing has none of the columns that do.
  static func checkSilent(_ kind: Kind, _ columns: PayloadColumns) throws(PayloadFault) {
    if let column = columns.firstShown {
      throw PayloadFault("\(column.rawValue) is given, but \(kind.name) shows nothing")
    }
  }

  /// A kind that shows nothing has none of the members that do.
  static func checkSilent(
    _ kind: Kind, _ object: JSONObject, _ aps: Span<UInt8>
  ) throws(PayloadFault) {
    for name: StaticString in ["alert", "badge", "sound"] where object.member(name, in: aps) != nil {
      throw PayloadFault("\(name) is given inside aps, but \(kind.name) shows nothing")
    }
  }

  /// Whether the value of `alert` or `sound` is anything: text that is not empty, or an object with a
  /// member that is neither null nor an empty text.
  static func shows(
    _ value: Range<Int>, _ text: Span<UInt8>, using scratch: inout JSONObject
  ) -> Bool {
    switch text[value.lowerBound] {
    case JSONByte.quote: return isText(value, text)
    case JSONByte.openBrace:
      let inner = text.extracting(value)
      // It has been read before as a part of the whole.
      guard (try? scratch.read(inner)) != nil else { return false }
      return scratch.members.contains { member in
        let first = text[value.lowerBound + member.value.lowerBound]
        return first != UInt8(ascii: "n") && !(first == JSONByte.quote && member.value.count == 2)
      }
    default: return false
    }
  }

  /// Whether a value is a string that is not empty.
  static func isText(_ value: Range<Int>, _ text: Span<UInt8>) -> Bool {
    text[value.lowerBound] == JSONByte.quote && value.count > 2
  }

  /// One column alone is not larger than the payload may be; so no huge column is copied.
  static func checkSize(_ count: Int, of column: PayloadColumn, limit: Int) throws(PayloadFault) {
    guard count <= limit else {
      throw PayloadFault("\(column.rawValue) alone is \(count) bytes, limit \(limit) for the payload")
    }
  }

  /// The part of a huge body that can matter: more than `limit` bytes, ending between scalars.
  static func head(of body: Span<UInt8>, limit: Int) -> Int {
    var end = min(body.count, limit + 4)
    // Of four positions in a row one is a boundary, or the text is no UTF-8, which its reading will find.
    while end < body.count, end > limit + 1, body[end] & 0xC0 == 0x80 { end -= 1 }
    return end
  }

  /// A member's name for a message: only if it is a plain word, so that no text gets into the log.
  private static func memberName(_ member: JSONMember, _ text: Span<UInt8>) -> String {
    guard member.name.count <= 40 else { return "a member" }
    for index in member.name {
      let byte = text[index]
      let isWord =
        JSONByte.isDigit(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_")
        || byte == JSONByte.minus
      guard isWord else { return "a member" }
    }
    guard !member.name.isEmpty else { return "a member" }
    return text.extracting(member.name).withUnsafeBufferPointer {
      String(decoding: $0, as: UTF8.self)
    }
  }
}
