/// Small readings of borrowed bytes that several rules share.
extension Span where Element == UInt8 {
  /// Whether these bytes are exactly `other`.
  func holds(_ other: [UInt8]) -> Bool {
    guard count == other.count else { return false }
    let (left, right) = (bytes, other.span.bytes)
    var index = 0
    while index + 8 <= count {
      let differing =
        left.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
        ^ right.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
      if differing != 0 { return false }
      index += 8
    }
    while index < count, self[index] == other[index] { index += 1 }
    return index == count
  }

  /// Whether the bytes of `range` are exactly the text `other`.
  func holds(_ other: StaticString, in range: Range<Int>) -> Bool {
    guard range.count == other.utf8CodeUnitCount else { return false }
    return other.withUTF8Buffer { expected in
      for index in 0..<expected.count where self[range.lowerBound + index] != expected[index] {
        return false
      }
      return true
    }
  }

  /// The end of the run of plain bytes that starts at `start`.
  ///
  /// Plain is ASCII that stands for itself inside a JSON string (RFC 8259 section 7): no control character,
  /// no quotation mark, no reverse solidus.
  func plainRunEnd(from start: Int) -> Int {
    let raw = bytes
    var index = start
    while index + 8 <= count {
      let word = UInt64(littleEndian: raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
      let marks = word.bytesOtherThanPlain
      if marks != 0 { return index + marks.trailingZeroBitCount / 8 }
      index += 8
    }
    while index < count, JSONByte.isPlain(self[index]) { index += 1 }
    return index
  }

  /// The length of the well-formed UTF-8 sequence at `index`, 1 to 4 bytes; nil if there is none.
  ///
  /// The table of well-formed sequences: RFC 3629 section 4. It leaves out overlong forms, surrogates and
  /// what is above U+10FFFF.
  func scalarLength(at index: Int) -> Int? {
    let first = self[index]
    if first < 0x80 { return 1 }
    guard first >= 0xC2, index + 1 < count else { return nil }
    let second = self[index + 1]
    if first < 0xE0 { return second & 0xC0 == 0x80 ? 2 : nil }
    guard index + 2 < count, self[index + 2] & 0xC0 == 0x80 else { return nil }
    if first < 0xF0 {
      let least: UInt8 = first == 0xE0 ? 0xA0 : 0x80
      let most: UInt8 = first == 0xED ? 0x9F : 0xBF
      return second >= least && second <= most ? 3 : nil
    }
    guard first <= 0xF4, index + 3 < count, self[index + 3] & 0xC0 == 0x80 else { return nil }
    let least: UInt8 = first == 0xF0 ? 0x90 : 0x80
    let most: UInt8 = first == 0xF4 ? 0x8F : 0xBF
    return second >= least && second <= most ? 4 : nil
  }
}

extension UInt64 {
  /// The highest bit of each of the eight bytes that is not plain, see `plainRunEnd`.
  ///
  /// `(x - 0x01…) & ~x & 0x80…` marks the zero bytes of x, and with `0x20…` those below 0x20. A borrow
  /// can mark a byte above a true hit as well, which is no matter here: the lowest mark is always true.
  fileprivate var bytesOtherThanPlain: UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let highs: UInt64 = 0x8080_8080_8080_8080
    let control = (self &- ones &* 0x20) & ~self
    let quote = self ^ (ones &* 0x22)
    let solidus = self ^ (ones &* 0x5C)
    let found =
      self | control | ((quote &- ones) & ~quote) | ((solidus &- ones) & ~solidus)
    return found & highs
  }
}

extension [UInt8] {
  /// Appends a literal.
  mutating func append(_ text: StaticString) {
    text.withUTF8Buffer { self.append(contentsOf: $0) }
  }

  /// Appends the bytes of `range` as they are.
  mutating func append(_ source: Span<UInt8>, _ range: Range<Int>) {
    source.extracting(range).withUnsafeBufferPointer { self.append(contentsOf: $0) }
  }
}
