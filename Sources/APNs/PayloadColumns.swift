/// What a row of any kind gives to its payload, as borrowed bytes of the columns, nil for NULL.
///
/// An empty text counts as NULL. An empty `aps` or `data` does not: it is no JSON, and a fault.
package struct PayloadColumns: ~Escapable {
  let title: Span<UInt8>?
  let subtitle: Span<UInt8>?
  let body: Span<UInt8>?
  let conversationID: Span<UInt8>?
  let aps: Span<UInt8>?
  let data: Span<UInt8>?

  @_lifetime(copy title, copy subtitle, copy body, copy conversationID, copy aps, copy data)
  package init(
    title: Span<UInt8>? = nil, subtitle: Span<UInt8>? = nil, body: Span<UInt8>? = nil,
    conversationID: Span<UInt8>? = nil, aps: Span<UInt8>? = nil, data: Span<UInt8>? = nil
  ) {
    self.title = title.nonEmpty
    self.subtitle = subtitle.nonEmpty
    self.body = body.nonEmpty
    self.conversationID = conversationID.nonEmpty
    self.aps = aps
    self.data = data
  }

  /// The first of the columns that make up the alert; nil when none is given.
  var firstShown: PayloadColumn? {
    title != nil ? .title : subtitle != nil ? .subtitle : body != nil ? .body : nil
  }
}

extension Optional where Wrapped == Span<UInt8> {
  /// A text that is not empty.
  var nonEmpty: Self {
    @_lifetime(copy self)
    get {
      if let text = self, text.count > 0 { return text }
      return nil
    }
  }
}
