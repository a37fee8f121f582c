import OpenSSL
import Testing

@Suite("SHA256Hasher")
struct SHA256HasherTests {
  @Test("gives the digests of FIPS 180-2 again and again")
  func vectors() throws {
    var hasher = try SHA256Hasher()
    for _ in 0..<3 {
      #expect(hexadecimal(hasher.hash(Array("abc".utf8))).hasPrefix("ba7816bf8f01cfea414140de5dae2223"))
      #expect(hexadecimal(hasher.hash([])).hasSuffix("a495991b7852b855"))
    }
  }

  private func hexadecimal(_ bytes: InlineArray<32, UInt8>) -> String {
    bytes.indices.map { index in
      let text = String(bytes[index], radix: 16)
      return text.count == 1 ? "0" + text : text
    }.joined()
  }
}

@Suite("RandomBytes")
struct RandomBytesTests {
  @Test("never hands out the same 16 bytes twice, across its blocks")
  func distinct() {
    var random = RandomBytes()
    var seen: Set<[UInt64]> = []
    for _ in 0..<2_000 {
      let (first, second) = random.next16()
      #expect(seen.insert([first, second]).inserted)
    }
  }
}
