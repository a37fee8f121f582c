import Foundation

@testable import APNs

/// SplitMix64: the same numbers on every run.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

/// A row's columns as a test writes them.
struct Columns {
  var kind = Kind.alert
  var title: [UInt8]?
  var subtitle: [UInt8]?
  var body: [UInt8]?
  var conversationID: [UInt8]?
  var aps: [UInt8]?
  var data: [UInt8]?
  var attributesType: [UInt8]?
  var attributes: [UInt8]?
  var contentState: [UInt8]?
  var staleAt: Int64?
  var dismissAt: Int64?

  init(
    _ kind: Kind = .alert, title: String? = nil, subtitle: String? = nil, body: String? = nil,
    conversationID: String? = nil, aps: String? = nil, data: String? = nil,
    attributesType: String? = nil, attributes: String? = nil, contentState: String? = nil,
    staleAt: Int64? = nil, dismissAt: Int64? = nil
  ) {
    self.kind = kind
    self.title = title.map(bytes)
    self.subtitle = subtitle.map(bytes)
    self.body = body.map(bytes)
    self.conversationID = conversationID.map(bytes)
    self.aps = aps.map(bytes)
    self.data = data.map(bytes)
    self.attributesType = attributesType.map(bytes)
    self.attributes = attributes.map(bytes)
    self.contentState = contentState.map(bytes)
    self.staleAt = staleAt
    self.dismissAt = dismissAt
  }

  func compose(
    with composer: inout PayloadComposer, into output: inout [UInt8]
  ) -> PayloadComposer.Result {
    composer.compose(
      kind,
      PayloadColumns(
        title: title?.span, subtitle: subtitle?.span, body: body?.span,
        conversationID: conversationID?.span, aps: aps?.span, data: data?.span),
      activity: ActivityColumns(
        attributesType: attributesType?.span, attributes: attributes?.span,
        contentState: contentState?.span, staleAt: staleAt, dismissAt: dismissAt),
      into: &output)
  }

  /// The payload, or nil with the words.
  func composed() -> (payload: [UInt8]?, words: String?) {
    var composer = PayloadComposer()
    var output: [UInt8] = []
    switch compose(with: &composer, into: &output) {
    case .composed: return (output, nil)
    case .invalid(let words): return (output.isEmpty ? nil : output, words)
    }
  }

  var text: String? { composed().payload.map { String(decoding: $0, as: UTF8.self) } }
  var words: String? { composed().words }
}

func parsed(_ payload: [UInt8]) throws -> NSDictionary {
  try JSONSerialization.jsonObject(with: Data(payload)) as? NSDictionary ?? [:]
}
