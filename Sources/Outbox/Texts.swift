/// A few texts in one run of bytes, so that none has memory of its own.
struct Texts {
  private var bytes: [UInt8] = []
  private var ends = InlineArray<6, Int>(repeating: 0)
  private var count = 0

  /// The text at a position; traps when there is none.
  @_lifetime(borrow self)
  subscript(position: Int) -> Span<UInt8> {
    precondition(position < count, "no such text")
    return bytes.span.extracting((position == 0 ? 0 : ends[position - 1])..<ends[position])
  }

  func isEqual(to other: borrowing Texts) -> Bool {
    guard count == other.count, bytes == other.bytes else { return false }
    for position in 0..<count where ends[position] != other.ends[position] { return false }
    return true
  }

  mutating func append(_ text: Span<UInt8>) {
    bytes.append(copying: text)
    end()
  }

  mutating func append(_ text: String) {
    bytes.append(contentsOf: text.utf8)
    end()
  }

  /// Appends what `write` appends to the bytes before it.
  mutating func append(_ write: (inout [UInt8]) -> Void) {
    write(&bytes)
    end()
  }

  /// The bytes since the last text are one more.
  private mutating func end() {
    ends[count] = bytes.count
    count += 1
  }

  /// Forgets the texts and keeps their memory.
  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }
}
