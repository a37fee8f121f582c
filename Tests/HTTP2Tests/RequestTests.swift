import HTTP2
import Testing

@Suite("Request")
struct RequestTests {
  /// How a field stands in a header block (RFC 7541, 6).
  enum Form { case indexed, incremental, without, never }

  @Test("indexes what repeats, names by index what does not, and never enters path and authorization")
  func indexing() throws {
    let peer = try Peer()
    for round in 0..<3 {
      _ = peer.session.stage(tag: UInt64(round)) { request in
        request.path.append(contentsOf: "/3/device/\(round)".utf8)
        request.fields.append("authorization", Array("bearer \(round)".utf8), .never)
        request.fields.append("apns-topic", "com.example.app", .incremental)
        request.fields.append("apns-id", Array("id \(round)".utf8).span, .without)
        request.fields.append("apns-expiration", 1_790_000_000 + Int64(round), .without)
      }
      peer.session.submitStaged(now: peer.now)
      peer.drain()
    }
    let blocks = peer.frames(.headers).map { forms($0.payload) }
    // :method, :scheme, :authority, :path, authorization, apns-topic, apns-id, apns-expiration
    try #require(blocks.count == 3)
    #expect(
      blocks[0]
        == [.indexed, .indexed, .incremental, .without, .never, .incremental, .incremental, .incremental])
    for block in blocks.dropFirst() {
      #expect(block == [.indexed, .indexed, .indexed, .without, .never, .indexed, .never, .never])
    }
    // Later literals name their field by index: a few bytes a request.
    #expect(peer.frames(.headers)[2].payload.count < 60)
  }

  @Test("writes numbers in decimal")
  func numbers() throws {
    for (number, text) in [
      (0, "0"), (7, "7"), (1_790_000_000, "1790000000"), (-12, "-12"),
      (Int64.min, "-9223372036854775808"), (Int64.max, "9223372036854775807"),
    ] as [(Int64, String)] {
      var first = Request()
      first.fields.append("a", number, .incremental)
      var second = Request()
      second.fields.append("a", Array(text.utf8), .incremental)
      #expect(first.fields.values.map(\.value) == [text])
      #expect(second.fields.values.map(\.value) == [text])
    }
  }

  @Test("is empty when it is filled again")
  func reuse() throws {
    let peer = try Peer(maximumStreams: 1)
    for _ in 0..<2 {
      _ = peer.session.stage(tag: 1) { request in
        #expect(request.path.isEmpty && request.body.isEmpty && request.fields.count == 0)
        request.path.append(1)
        request.body.append(1)
        request.fields.append("a", "b", .incremental)
      }
      peer.session.discardStaged()
    }
  }

  private func forms(_ block: [UInt8]) -> [Form] {
    var forms: [Form] = []
    var rest = block[...]
    func integer(_ bits: Int) -> Int {
      let mask = (1 << bits) - 1
      var value = Int(rest.popFirst() ?? 0) & mask
      guard value == mask else { return value }
      var shift = 0
      while let byte = rest.popFirst() {
        value += Int(byte & 127) << shift
        shift += 7
        if byte < 128 { break }
      }
      return value
    }
    func skipString() {
      let count = integer(7)
      rest = rest.dropFirst(count)
    }
    while let first = rest.first {
      if first & 0x80 != 0 {
        _ = integer(7)
        forms.append(.indexed)
        continue
      }
      if first & 0xe0 == 0x20 {
        _ = integer(5)
        continue
      }
      forms.append(first & 0x40 != 0 ? .incremental : first & 0x10 != 0 ? .never : .without)
      if integer(first & 0x40 != 0 ? 6 : 4) == 0 { skipString() }
      skipString()
    }
    return forms
  }
}
