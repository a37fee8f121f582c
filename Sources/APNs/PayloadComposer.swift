/// Writes the JSON body of a request from the columns of a row.
///
/// `{"aps":{"alert":{...},"thread-id":...,<aps>},"conversation_id":...,<data>}`: the inside of the
/// columns `aps` and `data` travels as the app wrote it, byte for byte. A Live Activity has
/// `"timestamp":...,"event":...,"content-state":...` and the like before the alert, with `content_state` and
/// `attributes` as the app wrote them. One value serves a whole worker: it keeps the memory it reads JSON
/// with.
package struct PayloadComposer {
  /// Whether there is a payload.
  package enum Result: Equatable, Sendable {
    /// The payload has been appended.
    case composed
    /// Nothing has been appended; the words are for the row's `detail`.
    case invalid(String)
  }

  private var apsObject = JSONObject()
  /// The `aps` that `apsObject` was read from. A backend's rows mostly have the same, which is not read again.
  private var apsText: [UInt8] = []
  private var dataObject = JSONObject()
  private var innerObject = JSONObject()
  /// Where the number of `timestamp` stands in the last payload, if it has one.
  private var timestamp: Range<Int>?

  package init() {}

  /// Appends the payload to `output`, or nothing at all.
  ///
  /// What the kind has no use for in `activity` is ignored. A `body` that is too long for the kind's limit is
  /// shortened, see `BodyCut`; anything else too long is a fault. The `timestamp` of a Live Activity is
  /// a placeholder until `stamp` is called.
  package mutating func compose(
    _ kind: Kind, _ columns: PayloadColumns, activity: ActivityColumns = ActivityColumns(),
    into output: inout [UInt8]
  ) -> Result {
    let start = output.count
    timestamp = nil
    do throws(PayloadFault) {
      try read(kind, columns, activity)
      try write(kind, columns, activity, into: &output)
      return .composed
    } catch {
      output.removeLast(output.count - start)
      timestamp = nil
      return .invalid(error.words)
    }
  }

  /// Puts the number into `timestamp` of the payload that was composed last, as often as there are devices
  /// to send it to; a payload without one stays as it is.
  ///
  /// - Parameters:
  ///   - seconds: UNIX seconds. The limit on the size was checked for ten digits, which is right until 2286.
  ///   - payload: what `compose` appended to, with the same bytes before and up to that number.
  package mutating func stamp(_ seconds: Int64, in payload: inout [UInt8]) {
    guard let place = timestamp else { return }
    let digits = String(seconds).utf8
    payload.replaceSubrange(place, with: digits)
    timestamp = place.lowerBound..<(place.lowerBound + digits.count)
  }

  // MARK: What the columns say

  /// Reads the JSON columns, and checks whether the kind has what it needs and nothing twice.
  private mutating func read(
    _ kind: Kind, _ columns: PayloadColumns, _ activity: ActivityColumns
  ) throws(PayloadFault) {
    if let aps = columns.aps {
      if apsText.isEmpty || !aps.holds(apsText) {
        apsText.removeAll(keepingCapacity: true)
        try PayloadRule.read(aps, of: .aps, into: &apsObject, maximumDepth: JSONObject.deepest - 1)
        apsText.append(aps, 0..<aps.count)
      }
      try PayloadRule.checkMembers(ofAps: apsObject, aps, columns)
    }
    switch kind.pushType.content {
    case .alert:
      guard columns.firstShown != nil || apsShows(columns) else {
        throw PayloadFault(PayloadRule.nothingToShow)
      }
    case .contentAvailable, .contentChanged:
      try PayloadRule.checkSilent(kind, columns)
      if let aps = columns.aps { try PayloadRule.checkSilent(kind, apsObject, aps) }
    case .liveActivity(let event): try readActivity(event, columns, activity)
    case .free: break
    }
    if let data = columns.data {
      try PayloadRule.read(data, of: .data, into: &dataObject, maximumDepth: JSONObject.deepest)
      try PayloadRule.checkMembers(ofData: dataObject, data, columns)
    }
  }

  private mutating func readActivity(
    _ event: ActivityEvent, _ columns: PayloadColumns, _ activity: ActivityColumns
  ) throws(PayloadFault) {
    if let aps = columns.aps { try ActivityRule.checkMembers(ofAps: apsObject, aps, activity) }
    try ActivityRule.checkPresence(event, activity)
    // They stand in `aps` in the payload: two levels down.
    let depth = JSONObject.deepest - 2
    if event == .start, let attributes = activity.attributes {
      try PayloadRule.read(attributes, of: .attributes, into: &innerObject, maximumDepth: depth)
    }
    if let contentState = activity.contentState {
      try PayloadRule.read(contentState, of: .contentState, into: &innerObject, maximumDepth: depth)
    }
    if event == .start, columns.title == nil, columns.body == nil {
      guard let aps = columns.aps, let alert = apsObject.member("alert", in: aps),
        ActivityRule.hasText(alert.value, aps, using: &innerObject)
      else { throw PayloadFault(ActivityRule.noAlert) }
    }
  }

  /// Whether there is anything to show inside `aps`: text, a badge or a sound.
  private mutating func apsShows(_ columns: PayloadColumns) -> Bool {
    guard let aps = columns.aps else { return false }
    if let badge = apsObject.member("badge", in: aps), aps[badge.value.lowerBound] != UInt8(ascii: "n") {
      return true
    }
    for name: StaticString in ["alert", "sound"] {
      if let member = apsObject.member(name, in: aps),
        PayloadRule.shows(member.value, aps, using: &innerObject)
      {
        return true
      }
    }
    return false
  }

  private func hasAps(_ name: StaticString, _ columns: PayloadColumns) -> Bool {
    guard let aps = columns.aps else { return false }
    return apsObject.member(name, in: aps) != nil
  }

  // MARK: What is written

  private mutating func write(
    _ kind: Kind, _ columns: PayloadColumns, _ activity: ActivityColumns, into output: inout [UInt8]
  ) throws(PayloadFault) {
    let start = output.count
    let limit = kind.pushType.payloadLimit
    output.append("{\"aps\":{")
    if case .liveActivity(let event) = kind.pushType.content {
      try writeActivity(event, columns, activity, limit: limit, into: &output)
    }
    let body = try writeAlert(columns, limit: limit, into: &output)
    try output.appendMember(
      "\"thread-id\":\"", columns.conversationID, of: .conversationID, limit: limit)
    switch kind.pushType.content {
    case .contentAvailable where !hasAps("content-available", columns):
      output.beginMember("\"content-available\":1")
    case .contentChanged where !hasAps("content-changed", columns):
      output.beginMember("\"content-changed\":true")
    default: break
    }
    if let aps = columns.aps, !apsObject.members.isEmpty {
      try output.appendMembers(aps, apsObject.contents, of: .aps, limit: limit)
    }
    output.append(JSONByte.closeBrace)
    try output.appendMember(
      "\"conversation_id\":\"", columns.conversationID, of: .conversationID, limit: limit)
    if let data = columns.data, !dataObject.members.isEmpty {
      try output.appendMembers(data, dataObject.contents, of: .data, limit: limit)
    }
    output.append(JSONByte.closeBrace)

    let size = output.count - start
    guard size > limit else { return }
    guard let text = columns.body else {
      throw PayloadFault("payload is \(size) bytes, limit \(limit)")
    }
    try shorten(text, at: body, rest: size - body.count, limit: limit, in: &output)
  }

  /// Writes the members that only a Live Activity has.
  private mutating func writeActivity(
    _ event: ActivityEvent, _ columns: PayloadColumns, _ activity: ActivityColumns, limit: Int,
    into output: inout [UInt8]
  ) throws(PayloadFault) {
    output.beginMember("\"timestamp\":")
    let place = output.count
    output.append("1000000000")
    timestamp = place..<output.count
    output.beginMember("\"event\":\"")
    output.append(contentsOf: event.rawValue.utf8)
    output.append(JSONByte.quote)
    if let state = activity.contentState {
      try output.appendMember(
        "\"content-state\":", verbatim: state, of: .contentState, limit: limit)
    }
    if event == .start, let attributes = activity.attributes {
      try output.appendMember(
        "\"attributes-type\":\"", activity.attributesType, of: .attributesType, limit: limit)
      try output.appendMember(
        "\"attributes\":", verbatim: attributes, of: .attributes, limit: limit)
      if !hasAps("input-push-token", columns), !hasAps("input-push-channel", columns) {
        output.beginMember("\"input-push-token\":1")
      }
    }
    output.appendMember("\"stale-date\":", milliseconds: activity.staleAt)
    if event == .end { output.appendMember("\"dismissal-date\":", milliseconds: activity.dismissAt) }
  }

  /// Writes the alert, if there is one, and returns where the body stands in it, escaped.
  private func writeAlert(
    _ columns: PayloadColumns, limit: Int, into output: inout [UInt8]
  ) throws(PayloadFault) -> Range<Int> {
    guard columns.firstShown != nil else { return 0..<0 }
    output.beginMember("\"alert\":{")
    try output.appendMember("\"title\":\"", columns.title, of: .title, limit: limit)
    try output.appendMember("\"subtitle\":\"", columns.subtitle, of: .subtitle, limit: limit)
    var place = 0..<0
    if let body = columns.body {
      output.beginMember("\"body\":\"")
      let start = output.count
      let head = PayloadRule.head(of: body, limit: limit)
      try PayloadText.append(body.extracting(0..<head), of: .body, to: &output)
      if head < body.count { try PayloadText.check(body, from: head, of: .body) }
      place = start..<output.count
      output.append(JSONByte.quote)
    }
    output.append(JSONByte.closeBrace)
    return place
  }

  /// Cuts the body at `place` so that with the `rest` of the payload it just fits.
  private func shorten(
    _ body: Span<UInt8>, at place: Range<Int>, rest: Int, limit: Int, in output: inout [UInt8]
  ) throws(PayloadFault) {
    guard rest <= limit else {
      throw PayloadFault("payload is \(rest) bytes without the body, limit \(limit)")
    }
    let head = PayloadRule.head(of: body, limit: limit)
    guard let cut = BodyCut.place(in: body.extracting(0..<head), budget: limit - rest) else {
      throw PayloadFault(
        "payload is \(rest) bytes without the body, limit \(limit): not one character of the body fits")
    }
    output.replaceSubrange((place.lowerBound + cut.escaped)..<place.upperBound, with: BodyCut.ellipsis)
  }
}
