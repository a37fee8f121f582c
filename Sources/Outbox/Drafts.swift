/// The attempts that a claim has decided on and not written yet.
struct Drafts {
  /// The texts of an attempt.
  enum Text: Int, CaseIterable {
    case device, tokenKind, tokenHash, environment, pushType, topic, apnsID
  }

  private(set) var list: [(id: Int64, nudge: Int64)] = []
  /// Those of all attempts, each in the order of `Text`.
  private var texts = Texts()

  /// Adds an attempt.
  mutating func append(
    id: Int64, nudge: Int64, device: Span<UInt8>, tokenKind: String, tokenHash: Span<UInt8>,
    environment: String, pushType: [UInt8], topic: [UInt8], apnsID: [UInt8]
  ) {
    list.append((id, nudge))
    texts.append(device)
    texts.append(tokenKind)
    texts.append(tokenHash)
    texts.append(environment)
    texts.append(pushType)
    texts.append(topic)
    texts.append(apnsID)
  }

  /// One of the texts of the attempt at a position.
  @_lifetime(borrow self)
  func text(_ position: Int, _ text: Text) -> Span<UInt8> {
    texts[position * Text.allCases.count + text.rawValue]
  }

  /// Whether there is an attempt of the nudge to this device or token; the attempts of one nudge follow one
  /// another.
  func hold(_ nudge: Int64, device: Span<UInt8>, tokenHash: Span<UInt8>) -> Bool {
    for position in list.indices.reversed() {
      guard list[position].nudge == nudge else { return false }
      if text(position, .tokenHash).isEqual(to: tokenHash) || text(position, .device).isEqual(to: device) {
        return true
      }
    }
    return false
  }

  mutating func removeAll() {
    list.removeAll(keepingCapacity: true)
    texts.removeAll()
  }
}

extension Span<UInt8> {
  fileprivate func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }
}
