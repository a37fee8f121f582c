/// Members of a JSON object that stands unfinished at the end of the bytes.
///
/// A `name` is given as it stands in JSON up to the value: `"title":`, and for a text `"title":"`.
extension [UInt8] {
  /// Begins a member: a comma unless it is the first, and the name.
  mutating func beginMember(_ name: StaticString) {
    // No value ends with an opening brace.
    if last != JSONByte.openBrace { append(JSONByte.comma) }
    append(name)
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

  /// Appends JSON as it is: the value of the member `name`, or with an empty name members of the app's own.
  mutating func appendMember(
    _ name: StaticString, verbatim json: Span<UInt8>, _ range: Range<Int>, of column: PayloadColumn,
    limit: Int
  ) throws(PayloadFault) {
    try PayloadRule.checkSize(range.count, of: column, limit: limit)
    beginMember(name)
    append(json, range)
  }

  /// Appends a time as a member, in whole seconds, if there is one.
  mutating func appendMember(_ name: StaticString, milliseconds: Int64?) {
    guard let milliseconds else { return }
    beginMember(name)
    append(contentsOf: String(milliseconds / 1000).utf8)
  }
}
