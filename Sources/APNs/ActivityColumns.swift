/// What a row of a Live Activity gives to its payload besides, as borrowed bytes of the columns, nil for
/// NULL.
///
/// An empty `attributes_type` counts as NULL. An empty `attributes` or `content_state` does not: it is no
/// JSON, and a fault.
package struct ActivityColumns: ~Escapable {
  let attributesType: Span<UInt8>?
  let attributes: Span<UInt8>?
  let contentState: Span<UInt8>?
  let staleAt: Int64?
  let dismissAt: Int64?

  /// - Parameters:
  ///   - staleAt: milliseconds since 1970.
  ///   - dismissAt: milliseconds since 1970.
  @_lifetime(copy attributesType, copy attributes, copy contentState)
  package init(
    attributesType: Span<UInt8>? = nil, attributes: Span<UInt8>? = nil,
    contentState: Span<UInt8>? = nil, staleAt: Int64? = nil, dismissAt: Int64? = nil
  ) {
    self.attributesType = attributesType.nonEmpty
    self.attributes = attributes
    self.contentState = contentState
    self.staleAt = staleAt
    self.dismissAt = dismissAt
  }

  /// Whether the row gives the column.
  func gives(_ column: PayloadColumn) -> Bool {
    switch column {
    case .attributesType: attributesType != nil
    case .attributes: attributes != nil
    case .contentState: contentState != nil
    case .staleAt: staleAt != nil
    case .dismissAt: dismissAt != nil
    case .title, .subtitle, .body, .conversationID, .aps, .data: false
    }
  }
}
