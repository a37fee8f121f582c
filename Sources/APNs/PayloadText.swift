/// Text of the backend as the inside of a JSON string: checked, and escaped where RFC 8259 section 7
/// demands it.
enum PayloadText {
  /// Appends what `text` is in JSON, without the quotation marks.
  ///
  /// A NUL makes the row invalid rather than travel as `\u0000`: it is the mark of a value gone wrong,
  /// and C on the way may end the text there.
  static func append(
    _ text: Span<UInt8>, of column: PayloadColumn, to output: inout [UInt8]
  ) throws(PayloadFault) {
    var copied = 0
    var index = text.plainRunEnd(from: 0)
    while index < text.count {
      let length = try checkedLength(text, at: index, of: column)
      if length == 1 {
        output.append(text, copied..<index)
        appendEscape(text[index], to: &output)
        copied = index + 1
      }
      index += length
      // Most scripts come in words: the run of plain bytes between two letters is empty.
      if index < text.count, text[index] < 0x80 { index = text.plainRunEnd(from: index) }
    }
    if copied < index { output.append(text, copied..<index) }
  }

  /// Checks `text` from a boundary between scalars on, without writing it.
  static func check(
    _ text: Span<UInt8>, from start: Int, of column: PayloadColumn
  ) throws(PayloadFault) {
    var index = text.plainRunEnd(from: start)
    while index < text.count {
      index += try checkedLength(text, at: index, of: column)
      if index < text.count, text[index] < 0x80 { index = text.plainRunEnd(from: index) }
    }
  }

  private static func checkedLength(
    _ text: Span<UInt8>, at index: Int, of column: PayloadColumn
  ) throws(PayloadFault) -> Int {
    guard text[index] != 0 else {
      throw PayloadFault("\(column.rawValue) has a NUL at byte \(index)")
    }
    guard let length = text.scalarLength(at: index) else {
      throw PayloadFault("\(column.rawValue) is not UTF-8 at byte \(index)")
    }
    return length
  }

  /// How many bytes one byte of UTF-8 takes in a JSON string.
  static func escapedLength(_ byte: UInt8) -> Int {
    switch byte {
    case JSONByte.quote, JSONByte.solidus, 0x08, 0x09, 0x0A, 0x0C, 0x0D: 2
    case 0..<0x20: 6
    default: 1
    }
  }

  private static func appendEscape(_ byte: UInt8, to output: inout [UInt8]) {
    switch byte {
    case JSONByte.quote: output.append("\\\"")
    case JSONByte.solidus: output.append("\\\\")
    case 0x08: output.append("\\b")
    case 0x09: output.append("\\t")
    case 0x0A: output.append("\\n")
    case 0x0C: output.append("\\f")
    case 0x0D: output.append("\\r")
    case 0..<0x20:
      output.append("\\u00")
      output.append(Hex.digit(byte >> 4))
      output.append(Hex.digit(byte & 0xF))
    default: output.append(byte)
    }
  }
}
