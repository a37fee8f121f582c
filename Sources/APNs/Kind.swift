/// What kind of push a nudge is; everything that follows from it stands in one row of `PushType.table`.
///
/// The raw value is the position of that row.
package enum Kind: Int, Sendable, CaseIterable {
  case alert
  case background
  case voip
  case location
  case complication
  case fileprovider
  case pushtotalk
  case widgets
  case controls
  case activityStart
  case activityUpdate
  case activityEnd

  /// The kind that a `kind` column names; nil for a word that is none of ours.
  package init?(_ name: Span<UInt8>) {
    for row in PushType.table where name.holds(row.name) {
      self = row.kind
      return
    }
    return nil
  }

  /// The kind that a word names, as the `kind` column spells it.
  package init?(_ name: String) {
    guard let row = PushType.table.first(where: { String(decoding: $0.name, as: UTF8.self) == name })
    else { return nil }
    self = row.kind
  }

  /// This kind's row of the table.
  package var pushType: PushType { PushType.table[rawValue] }

  /// The word of the `kind` column, for messages.
  package var name: String { String(decoding: pushType.name, as: UTF8.self) }
}
