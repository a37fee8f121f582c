/// What makes a row's columns unfit for a Live Activity, one function a rule.
///
/// APNs accepts what the phone then drops without a word: so each rule is checked before anything is sent.
enum ActivityRule {
  /// The members of `aps` that a column gives, and whether nothing else may give them.
  private static let members: [(name: StaticString, column: PayloadColumn, isColumnOnly: Bool)] = [
    ("content-state", .contentState, true), ("attributes-type", .attributesType, true),
    ("attributes", .attributes, true), ("stale-date", .staleAt, false),
    ("dismissal-date", .dismissAt, false),
  ]

  /// No member inside `aps` is one that nudged writes, or that a column gives or has to give.
  static func checkMembers(
    ofAps object: JSONObject, _ aps: Span<UInt8>, _ columns: ActivityColumns
  ) throws(PayloadFault) {
    for name: StaticString in ["timestamp", "event"] where object.member(name, in: aps) != nil {
      throw PayloadFault("\(name) is given by nudged and inside aps: leave it out there")
    }
    for (name, column, isColumnOnly) in members where object.member(name, in: aps) != nil {
      if columns.gives(column) {
        throw PayloadFault("\(name) is given by \(column.rawValue) and inside aps")
      }
      if isColumnOnly {
        throw PayloadFault("\(name) is given inside aps: put it into the column \(column.rawValue)")
      }
    }
  }

  /// The event has the columns that it needs: a start describes all of the activity, an update what changes.
  static func checkPresence(_ event: ActivityEvent, _ columns: ActivityColumns) throws(PayloadFault) {
    if event == .start, !columns.gives(.attributesType) {
      throw PayloadFault(
        "activity_start needs attributes_type: the name of the app's ActivityAttributes type")
    }
    if event == .start, !columns.gives(.attributes) {
      throw PayloadFault("activity_start needs attributes: a JSON object, {} when the type has no members")
    }
    if event != .end, !columns.gives(.contentState) {
      throw PayloadFault(
        "activity_\(event.rawValue) needs content_state: the app's ContentState as a JSON object")
    }
  }

  static let noAlert =
    "activity_start needs an alert: give title or body, or alert with a text inside aps;"
    + " a phone drops a start without one, and does not say so"

  /// Whether an `alert` inside `aps` has a text: it is one, or its title or body is one, or names one in
  /// the app's string table.
  static func hasText(
    _ alert: Range<Int>, _ aps: Span<UInt8>, using scratch: inout JSONObject
  ) -> Bool {
    if PayloadRule.isText(alert, aps) { return true }
    let texts = values(
      of: ["title", "body", "title-loc-key", "loc-key"], in: alert, aps, using: &scratch)
    return texts.contains { text in
      PayloadRule.isText(text, aps)
        || values(of: ["loc-key"], in: text, aps, using: &scratch)
          .contains { PayloadRule.isText($0, aps) }
    }
  }

  /// The values that the members with these names have; none when `value` is no object.
  private static func values(
    of names: [StaticString], in value: Range<Int>, _ text: Span<UInt8>, using scratch: inout JSONObject
  ) -> [Range<Int>] {
    let inner = text.extracting(value)
    // It has been read before as a part of the whole: what is no good now is no object.
    guard (try? scratch.read(inner)) != nil else { return [] }
    return names.compactMap { name in
      scratch.member(name, in: inner).map { member in
        (value.lowerBound + member.value.lowerBound)..<(value.lowerBound + member.value.upperBound)
      }
    }
  }
}
