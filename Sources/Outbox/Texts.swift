/// Texts in one run of bytes, so that none has memory of its own.
struct Texts {
  private var bytes: [UInt8] = []
  private var ends: [Int] = []

  /// The text at a position; traps when there is none.
  @_lifetime(borrow self)
  subscript(position: Int) -> Span<UInt8> {
    bytes.span.extracting((position == 0 ? 0 : ends[position - 1])..<ends[position])
  }

  /// The same for equal texts, from 0 on (FNV-1a, draft-eastlake-fnv).
  var hash: Int {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    let bytes = bytes.span
    for index in bytes.indices { hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01b3 }
    return Int(hash >> 1)
  }

  func isEqual(to other: borrowing Texts) -> Bool { bytes == other.bytes && ends == other.ends }

  mutating func append(_ text: Span<UInt8>) {
    bytes.append(copying: text)
    end()
  }

  mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { bytes.append(contentsOf: $0) }
    end()
  }

  mutating func append(_ text: [UInt8]) {
    bytes.append(contentsOf: text)
    end()
  }

  /// Appends what `write` appends to the bytes before it.
  mutating func append(_ write: (inout [UInt8]) -> Void) {
    write(&bytes)
    end()
  }

  /// The bytes since the last text are one more.
  private mutating func end() { ends.append(bytes.count) }

  /// Forgets the texts and keeps their memory.
  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    ends.removeAll(keepingCapacity: true)
  }
}
