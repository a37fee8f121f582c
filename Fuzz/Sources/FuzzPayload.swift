import APNs
import Foundation

/// Any columns: there is a payload of a legal size that a foreign parser takes, with the text of `aps` and `data` in
/// it byte for byte, or words and nothing at all.
func fuzzPayload(_ input: Input) {
  var input = input
  let kind = Kind.allCases[Int(input.byte()) % Kind.allCases.count]
  let title = input.optional()
  let subtitle = input.optional()
  let body = input.optional()
  let conversation = input.optional()
  let aps = input.optional()
  let data = input.optional()
  var composer = PayloadComposer()
  let before = Array("before".utf8)
  var output = before
  let result = composer.compose(
    kind: kind, title: title?.span, subtitle: subtitle?.span, body: body?.span,
    conversationID: conversation?.span, aps: aps?.span, data: data?.span, into: &output)
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
  require(object["aps"] is [String: Any], "no aps")
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
