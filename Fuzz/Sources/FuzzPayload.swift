import APNs
import Foundation

/// Any columns: there is a payload of a legal size that a foreign parser takes, with the text of the JSON columns in
/// it byte for byte, or words and nothing at all; and a Live Activity's time can be put in again and again.
func fuzzPayload(_ input: Input) {
  var input = input
  let kind = Kind.allCases[Int(input.byte()) % Kind.allCases.count]
  let title = input.optional()
  let subtitle = input.optional()
  let body = input.optional()
  let conversation = input.optional()
  let aps = input.optional()
  let data = input.optional()
  let attributesType = input.optional()
  let attributes = input.optional()
  let contentState = input.optional()
  let times = input.byte()
  var composer = PayloadComposer()
  let before = Array("before".utf8)
  var output = before
  let result = composer.compose(
    kind,
    PayloadColumns(
      title: title?.span, subtitle: subtitle?.span, body: body?.span,
      conversationID: conversation?.span, aps: aps?.span, data: data?.span),
    activity: ActivityColumns(
      attributesType: attributesType?.span, attributes: attributes?.span,
      contentState: contentState?.span, staleAt: times & 1 == 0 ? nil : 1_790_000_000_999,
      dismissAt: times & 2 == 0 ? nil : 1_790_000_001_000),
    into: &output)
  require(output.starts(with: before), "what stood there is gone")
  guard case .composed = result else {
    if case .invalid(let words) = result { require(!words.isEmpty, "invalid without a reason") }
    require(output == before, "half a payload")
    return
  }
  let payload = Array(output.dropFirst(before.count))
  require(payload.count <= kind.pushType.payloadLimit, "\(payload.count) bytes are too many")
  guard let object = try? JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any] else {
    fatalError("not an object: \(String(decoding: payload, as: UTF8.self))")
  }
  guard let members = object["aps"] as? [String: Any] else { fatalError("no aps") }
  if case .liveActivity(let event) = kind.pushType.content {
    require(members["event"] as? String == event.rawValue, "another event")
    if let contentState {
      require(Data(payload).range(of: Data(contentState)) != nil, "the state was changed")
    }
    if event == .start, let attributes {
      require(Data(payload).range(of: Data(attributes)) != nil, "the attributes were changed")
    }
    for seconds: Int64 in [1, 1_790_000_000, 10_000_000_000, 1_000_000_000] {
      composer.stamp(seconds, in: &output)
      let stamped = try? JSONSerialization.jsonObject(with: Data(output.dropFirst(before.count)))
      let aps = (stamped as? [String: Any])?["aps"] as? [String: Any]
      require((aps?["timestamp"] as? NSNumber)?.int64Value == seconds, "another time")
    }
    require(output.elementsEqual(before + payload), "a stamp leaves something behind")
  } else {
    composer.stamp(1, in: &output)
    require(output.elementsEqual(before + payload), "a stamp where there is no timestamp")
  }
  for text in [aps, data].compactMap(\.self) {
    // The inside between the braces, without the space around it, travels as it is.
    guard let first = text.firstIndex(of: 0x7b), let last = text.lastIndex(of: 0x7d) else { continue }
    let inside = trimmed(text[(first + 1)..<last])
    require(inside.isEmpty || Data(payload).range(of: Data(inside)) != nil, "a member was changed")
  }
}

private func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
  let space: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d]
  var bytes = bytes.drop { space.contains($0) }
  while let last = bytes.last, space.contains(last) { bytes.removeLast() }
  return bytes
}
