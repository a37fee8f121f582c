/// Writes the JSON body of a request from the columns of a row.
///
/// `{"aps":{"alert":{...},"thread-id":...,<aps>},"conversation_id":...,<data>}`: the inside of the
/// columns `aps` and `data` travels as the app wrote it, byte for byte. One value serves a whole worker: it keeps the memory it reads JSON with.
package struct PayloadComposer {
  /// Whether there is a payload.
  package enum Result: Equatable, Sendable {
    /// The payload has been appended.
    case composed
    /// Nothing has been appended; the words are for the row's `detail`.
    case invalid(String)
  }

  private var apsObject = JSONObject()
  private var dataObject = JSONObject()
  private var alertObject = JSONObject()

  package init() {}

  /// Appends the payload to `output`, or nothing at all.
  ///
  /// The spans are the columns' bytes, nil for NULL; an empty text counts as NULL, but an empty `aps` or
  /// `data` is a fault. A `body` that is too long for the kind's limit is shortened, see `BodyCut`;
  /// anything else too long is a fault.
  package mutating func compose(
    kind: Kind, title: Span<UInt8>?, subtitle: Span<UInt8>?, body: Span<UInt8>?,
    conversationID: Span<UInt8>?, aps: Span<UInt8>?, data: Span<UInt8>?, into output: inout [UInt8]
  ) -> Result {
    let start = output.count
    do throws(PayloadFault) {
      try write(
        kind.pushType, title: title, subtitle: subtitle, body: body, conversationID: conversationID,
        aps: aps, data: data, into: &output)
      return .composed
    } catch {
      output.removeLast(output.count - start)
      return .invalid(error.words)
    }
  }

  private mutating func write(
    _ type: PushType, title: Span<UInt8>?, subtitle: Span<UInt8>?, body: Span<UInt8>?,
    conversationID: Span<UInt8>?, aps: Span<UInt8>?, data: Span<UInt8>?, into output: inout [UInt8]
  ) throws(PayloadFault) {
    if type.content == .liveActivity {
      throw PayloadFault("Live Activities are not sent by this version")
    }
    let start = output.count
    let limit = type.payloadLimit
    var present = AlertColumns()
    if title.isGiven { present.insert(.title) }
    if subtitle.isGiven { present.insert(.subtitle) }
    if body.isGiven { present.insert(.body) }
    let hasConversation = conversationID.isGiven
    if let aps {
      try PayloadRule.read(aps, of: .aps, into: &apsObject, maximumDepth: JSONObject.deepest - 1)
      try PayloadRule.checkMembers(
        ofAps: apsObject, aps, columns: present, hasConversation: hasConversation)
      try checkContent(type, present, aps)
    } else if type.content == .alert, present.isEmpty {
      throw PayloadFault(PayloadRule.nothingToShow)
    } else if type.content == .contentAvailable || type.content == .contentChanged {
      try PayloadRule.checkSilent(type, present)
    }
    if let data {
      try PayloadRule.read(data, of: .data, into: &dataObject, maximumDepth: JSONObject.deepest)
      try PayloadRule.checkMembers(
        ofData: dataObject, data, hasConversation: hasConversation)
    }

    output.append("{\"aps\":{")
    var separator = Separator()
    var bodyStart = 0
    var bodyEnd = 0
    var isCut = false
    if !present.isEmpty {
      separator.write(to: &output)
      output.append("\"alert\":{")
      var inner = Separator()
      if let title, present.contains(.title) {
        inner.write(to: &output)
        output.append("\"title\":\"")
        try PayloadRule.checkSize(title.count, of: .title, limit: limit)
        try PayloadText.append(title, of: .title, to: &output)
        output.append(JSONByte.quote)
      }
      if let subtitle, present.contains(.subtitle) {
        inner.write(to: &output)
        output.append("\"subtitle\":\"")
        try PayloadRule.checkSize(subtitle.count, of: .subtitle, limit: limit)
        try PayloadText.append(subtitle, of: .subtitle, to: &output)
        output.append(JSONByte.quote)
      }
      if let body, present.contains(.body) {
        inner.write(to: &output)
        output.append("\"body\":\"")
        bodyStart = output.count
        isCut = body.count > limit
        if isCut {
          let head = PayloadRule.head(of: body, limit: limit)
          try PayloadText.append(body.extracting(0..<head), of: .body, to: &output)
          try PayloadText.check(body, from: head, of: .body)
        } else {
          try PayloadText.append(body, of: .body, to: &output)
        }
        bodyEnd = output.count
        output.append(JSONByte.quote)
      }
      output.append(JSONByte.closeBrace)
    }
    if let conversationID, hasConversation {
      try PayloadRule.checkSize(conversationID.count, of: .conversationID, limit: limit)
      separator.write(to: &output)
      output.append("\"thread-id\":\"")
      try PayloadText.append(conversationID, of: .conversationID, to: &output)
      output.append(JSONByte.quote)
    }
    switch type.content {
    case .contentAvailable where !hasMember("content-available", aps):
      separator.write(to: &output)
      output.append("\"content-available\":1")
    case .contentChanged where !hasMember("content-changed", aps):
      separator.write(to: &output)
      output.append("\"content-changed\":true")
    default: break
    }
    if let aps, !apsObject.members.isEmpty {
      try PayloadRule.checkSize(apsObject.contents.count, of: .aps, limit: limit)
      separator.write(to: &output)
      output.append(aps, apsObject.contents)
    }
    output.append(JSONByte.closeBrace)
    if let conversationID, hasConversation {
      output.append(",\"conversation_id\":\"")
      try PayloadText.append(conversationID, of: .conversationID, to: &output)
      output.append(JSONByte.quote)
    }
    if let data, !dataObject.members.isEmpty {
      try PayloadRule.checkSize(dataObject.contents.count, of: .data, limit: limit)
      output.append(JSONByte.comma)
      output.append(data, dataObject.contents)
    }
    output.append(JSONByte.closeBrace)

    let size = output.count - start
    guard size > limit || isCut else { return }
    guard let body, present.contains(.body) else {
      throw PayloadFault("payload is \(size) bytes, limit \(limit)")
    }
    let fixed = size - (bodyEnd - bodyStart)
    guard fixed <= limit else {
      throw PayloadFault("payload is \(fixed) bytes without the body, limit \(limit)")
    }
    let head = isCut ? PayloadRule.head(of: body, limit: limit) : body.count
    guard let cut = BodyCut.place(in: body.extracting(0..<head), budget: limit - fixed) else {
      throw PayloadFault(
        "payload is \(fixed) bytes without the body, limit \(limit): not one character of the body fits")
    }
    output.replaceSubrange((bodyStart + cut.escaped)..<bodyEnd, with: BodyCut.ellipsis)
  }

  private func hasMember(_ name: StaticString, _ aps: Span<UInt8>?) -> Bool {
    guard let aps else { return false }
    return apsObject.member(name, in: aps) != nil
  }

  /// Whether the kind may show what the row gives, and whether an alert shows anything.
  private mutating func checkContent(
    _ type: PushType, _ columns: AlertColumns, _ aps: Span<UInt8>
  ) throws(PayloadFault) {
    switch type.content {
    case .contentAvailable, .contentChanged:
      try PayloadRule.checkSilent(type, columns)
      try PayloadRule.checkSilent(type, apsObject, aps)
    case .alert where columns.isEmpty:
      if let alert = apsObject.member("alert", in: aps),
        PayloadRule.shows(alert.value, aps, using: &alertObject)
      {
        return
      }
      if let badge = apsObject.member("badge", in: aps), aps[badge.value.lowerBound] != UInt8(ascii: "n") {
        return
      }
      if let sound = apsObject.member("sound", in: aps),
        PayloadRule.shows(sound.value, aps, using: &alertObject)
      {
        return
      }
      throw PayloadFault(PayloadRule.nothingToShow)
    default: return
    }
  }
}

/// Writes a comma before every member but the first.
private struct Separator {
  private var isFirst = true

  mutating func write(to output: inout [UInt8]) {
    if isFirst { isFirst = false } else { output.append(JSONByte.comma) }
  }
}

extension Optional where Wrapped == Span<UInt8> {
  /// Whether there is a text that is not empty.
  fileprivate var isGiven: Bool { (self?.count ?? 0) > 0 }
}
