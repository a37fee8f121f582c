/// The attempts that a claim has decided on and not written yet.
///
/// Their texts lie in one run of bytes, so that none has memory of its own.
struct Drafts {
  /// One attempt.
  struct Draft {
    let id: Int64
    let nudge: Int64
    /// Where the texts begin, in the order of `Text`, and where the last one ends.
    fileprivate var bounds: InlineArray<8, Int>
  }

  /// The texts of a draft.
  enum Text: Int {
    case device, tokenKind, tokenHash, environment, pushType, topic, apnsID
  }

  private(set) var list: [Draft] = []
  private var bytes: [UInt8] = []

  /// Adds an attempt.
  mutating func append(
    id: Int64, nudge: Int64, device: Span<UInt8>, tokenKind: String, tokenHash: Span<UInt8>,
    environment: String,
    pushType: [UInt8], topic: [UInt8], apnsID: [UInt8]
  ) {
    var draft = Draft(id: id, nudge: nudge, bounds: InlineArray(repeating: bytes.count))
    append(.device, of: &draft) { $0.append(copying: device) }
    append(.tokenKind, of: &draft) { $0 += tokenKind.utf8 }
    append(.tokenHash, of: &draft) { $0.append(copying: tokenHash) }
    append(.environment, of: &draft) { $0 += environment.utf8 }
    append(.pushType, of: &draft) { $0 += pushType }
    append(.topic, of: &draft) { $0 += topic }
    append(.apnsID, of: &draft) { $0 += apnsID }
    list.append(draft)
  }

  private mutating func append(_ text: Text, of draft: inout Draft, _ write: (inout [UInt8]) -> Void) {
    write(&bytes)
    draft.bounds[text.rawValue + 1] = bytes.count
  }

  /// One of a draft's texts.
  @_lifetime(borrow self)
  func text(_ draft: borrowing Draft, _ text: Text) -> Span<UInt8> {
    bytes.span.extracting(draft.bounds[text.rawValue]..<draft.bounds[text.rawValue + 1])
  }

  /// Whether there is an attempt of the nudge to this device or token; the attempts of one nudge follow one
  /// another.
  func hold(_ nudge: Int64, device: Span<UInt8>, tokenHash: Span<UInt8>) -> Bool {
    for draft in list.reversed() {
      guard draft.nudge == nudge else { return false }
      if text(draft, .tokenHash).isEqual(to: tokenHash) || text(draft, .device).isEqual(to: device) {
        return true
      }
    }
    return false
  }

  mutating func removeAll() {
    list.removeAll(keepingCapacity: true)
    bytes.removeAll(keepingCapacity: true)
  }
}

extension Span<UInt8> {
  fileprivate func isEqual(to other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    for index in indices where self[index] != other[index] { return false }
    return true
  }
}
