/// What libFuzzer made up, taken off from the front; after its end everything is 0.
struct Input {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isEmpty: Bool { rest.isEmpty }

  mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

  mutating func word() -> Int { Int(byte()) << 8 | Int(byte()) }

  /// At most `count` bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    let taken = rest.prefix(count)
    rest = rest.dropFirst(taken.count)
    return Array(taken)
  }

  mutating func all() -> [UInt8] { bytes(rest.count) }

  /// A length of two bytes and so many; nil where the length is 65,535.
  mutating func optional() -> [UInt8]? {
    let count = word()
    return count == 0xffff ? nil : bytes(count)
  }
}

/// Ends the run with these words when something does not hold that always has to.
func require(_ condition: Bool, _ words: @autoclosure () -> String) {
  if !condition { fatalError(words()) }
}
