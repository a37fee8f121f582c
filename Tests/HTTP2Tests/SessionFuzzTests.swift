import HTTP2
import Testing

@Suite("Session: whatever a peer sends")
struct SessionFuzzTests {
  /// A small generator with a seed, so that a failure can be repeated (xorshift64).
  struct Generator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }

  @Test("ends every request exactly once, and never gives room below zero", arguments: 1...150)
  func everyRequestEndsOnce(_ seed: Int) throws {
    var random = Generator(state: UInt64(seed) &* 0x9e37_79b9_7f4a_7c15)
    let peer = try Peer(maximumStreams: Int.random(in: 0...20, using: &random))
    var submitted: Set<UInt64> = []
    var ended: [EndedStream] = []
    var tag: UInt64 = 0
    for _ in 0..<60 {
      var tags: [UInt64] = []
      for _ in 0..<min(peer.session.freeStreams, Int.random(in: 0...4, using: &random)) {
        tag += 1
        tags.append(tag)
      }
      peer.stage(tags, body: Int.random(in: 0...9_000, using: &random))
      if Int.random(in: 0..<8, using: &random) == 0 {
        peer.session.discardStaged()
      } else {
        peer.session.submitStaged(now: peer.now)
        submitted.formUnion(tags)
      }
      if Bool.random(using: &random) {
        peer.drain()
      } else {
        peer.writeOnce(limit: Int.random(in: 1...20_000, using: &random))
      }
      peer.receive(frame(&random).bytes)
      peer.pass(.milliseconds(Int.random(in: 0...3_000, using: &random)))
      if Bool.random(using: &random) { peer.session.judge(now: peer.now) }
      if Bool.random(using: &random) { ended += peer.ended() }
      #expect(peer.session.sendWindow >= 0 && peer.session.freeStreams >= 0)
      #expect(peer.session.openStreams >= 0)
    }
    peer.session.fail(ConnectionFault(.lost, "end of test"))
    ended += peer.ended()
    #expect(ended.count == submitted.count)
    #expect(Set(ended.map(\.tag)) == submitted)
    // What counts as not handed over never left.
    #expect(peer.frames(.headers).count <= ended.filter(\.wasHandedOver).count)
    #expect(ended.allSatisfy { $0.end != .notHandedOver || !$0.wasHandedOver })
    #expect(peer.session.openStreams == 0)
  }

  private func frame(_ random: inout Generator) -> Frame {
    let stream = Int.random(in: 0...20, using: &random) * 2 + 1
    let end = Bool.random(using: &random)
    switch Int.random(in: 0..<24, using: &random) {
    case 0: return .maximumStreams(Int.random(in: 0...20, using: &random))
    case 1: return .settings([(4, Int.random(in: 0...70_000, using: &random))])
    case 2: return .goaway(stream, Int.random(in: 0...2, using: &random))
    case 3...4: return .reset(stream, Int.random(in: 0...13, using: &random))
    case 5...6: return .data(stream, [UInt8](repeating: 1, count: 100), end: end)
    case 7: return .windowUpdate(0, Int.random(in: 1...100_000, using: &random))
    case 8: return .windowUpdate(stream, Int.random(in: 1...100_000, using: &random))
    case 9: return Frame(kind: .ping, flags: end ? 1 : 0, payload: [0, 0, 0, 0, 0, 0, 0, 1])
    case 10:
      let payload = (0..<Int.random(in: 0...40, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      let kinds: [Frame.Kind] = [.data, .headers, .settings, .priority, .pushPromise, .continuation]
      return Frame(
        kind: kinds[Int.random(in: 0..<kinds.count, using: &random)],
        flags: UInt8.random(in: 0...255, using: &random), stream: end ? stream : 0, payload: payload)
    case 11: return .status(103, stream, end: end)
    default: return .status([200, 400, 410, 503][Int.random(in: 0..<4, using: &random)], stream, end: end)
    }
  }
}
