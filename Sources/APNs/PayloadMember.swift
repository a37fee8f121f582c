/// Members of a JSON object that stands unfinished at the end of the bytes.
///
/// A `name` is given as it stands in JSON up to the value: `"title":`, and for a text `"title":"`.
extension [UInt8] {
  /// Begins a member.
  mutating func beginMember(_ name: StaticString) {
    separate()
    append(name)
  }

  /// Writes the comma before a member that is not the first.
  private mutating func separate() {
    // No value ends with an opening brace.
    if last != JSONByte.openBrace { append(JSONByte.comma) }
  }

  /// Appends a text as a member, if there is one.
  mutating func appendMember(
    _ name: StaticString, _ text: Span<UInt8>?, of column: PayloadColumn, limit: Int
  ) throws(PayloadFault) {
    guard let text else { return }
    try PayloadRule.checkSize(text.count, of: column, limit: limit)
    beginMember(name)
    try PayloadText.append(text, of: column, to: &self)
    append(JSONByte.quote)
  }

  /// Appends a whole JSON text as a member, as it is.
  mutating func appendMember(
    _ name: StaticString, verbatim json: Span<UInt8>, of column: PayloadColumn, limit: Int
  ) throws(PayloadFault) {
    try PayloadRule.checkSize(json.count, of: column, limit: limit)
    beginMember(name)
    append(json, 0..<json.count)
  }

  /// Appends the members that stand in `contents` of a JSON text, as they are.
  mutating func appendMembers(
    _ json: Span<UInt8>, _ contents: Range<Int>, of column: PayloadColumn, limit: Int
  ) throws(PayloadFault) {
    try PayloadRule.checkSize(contents.count, of: column, limit: limit)
    separate()
    append(json, contents)
  }

  /// Appends a time as a member, in whole seconds, if there is one.
  mutating func appendMember(_ name: StaticString, milliseconds: Int64?) {
    guard let milliseconds else { return }
    beginMember(name)
    append(contentsOf: String(milliseconds / 1000).utf8)
  }
}
