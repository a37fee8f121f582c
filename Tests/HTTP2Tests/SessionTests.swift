import HTTP2
import Testing

@Suite("Session: answers")
struct SessionAnswerTests {
  @Test("offers neither push nor a stream before the peer's SETTINGS")
  func settings() throws {
    let peer = try Peer(maximumStreams: nil)
    peer.drain()
    #expect(peer.session.freeStreams == 0)
    #expect(peer.frames(.settings).first?.payload == [0, 2, 0, 0, 0, 0])
    #expect(peer.frames(.windowUpdate).count == 1)
    peer.send(.maximumStreams(7))
    #expect(peer.session.freeStreams == 7)
  }

  @Test("ends a request with its status, body, captured field and path")
  func complete() throws {
    let peer = try Peer()
    peer.submit([5])
    #expect(peer.session.openStreams == 1)
    peer.send(
      .status(400, 1, fields: Frame.field("apns-unique-id", "abc")), .data(1, Array("{}".utf8), end: true))
    let ended = peer.ended()
    try #require(ended.count == 1)
    #expect(ended[0].tag == 5)
    #expect(ended[0].status == 400)
    #expect(ended[0].body == Array("{}".utf8))
    #expect(ended[0].captured == Array("abc".utf8))
    #expect(ended[0].path == Array("/3/device/5".utf8))
    #expect(ended[0].end == .complete)
    #expect(!ended[0].isProvablyUnprocessed)
    #expect(peer.session.openStreams == 0)
    #expect(peer.ended().isEmpty)
    #expect(peer.frames(.priority).isEmpty)
  }

  @Test("sends a request's body whole, with END_STREAM on its last frame")
  func requestBody() throws {
    let peer = try Peer()
    peer.submit([1], body: 20_000)
    let data = peer.frames(.data)
    #expect(data.map(\.payload.count).reduce(0, +) == 20_000)
    #expect(data.last?.hasEndStream == true)
    #expect(data.dropLast().allSatisfy { !$0.hasEndStream })
    peer.submit([2], body: 0)
    #expect(peer.frames(.headers).last?.hasEndStream == true)
  }

  @Test("takes 103 for no answer and the 200 behind it for one")
  func informational() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(103, 1))
    #expect(peer.ended().isEmpty)
    peer.send(.status(200, 1, end: true))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [200])
    #expect(ended.map(\.end) == [.complete])
  }

  @Test("keeps the status that came before RST_STREAM")
  func statusThenReset() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(200, 1), .reset(1, 2))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [200])
    #expect(ended.map(\.end) == [.reset(2)])
    #expect(ended.allSatisfy { !$0.isProvablyUnprocessed })
  }

  @Test("keeps the status of an answer whose content-length is wrong")
  func wrongLength() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(200, 1, fields: Frame.literal(nameIndex: 28, "5")), .data(1, [1], end: true))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [200])
    #expect(ended.map(\.end) == [.reset(1)])
  }

  @Test("keeps the first final status when trailers follow")
  func trailers() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(410, 1), .data(1, [7]), .headers(1, end: true, Frame.field("x-status", "200")))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [410])
    #expect(ended.first?.body == [7])
  }

  @Test("drops a body over 64 KiB, credits it, and keeps the status")
  func largeBody() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(400, 1))
    let chunk = [UInt8](repeating: 65, count: 16_000)
    for _ in 0..<20 { peer.send(.data(1, chunk)) }
    peer.send(.data(1, [], end: true))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [400])
    #expect(ended.map(\.body) == [nil])
    let credit = peer.frames(.windowUpdate).filter { $0.stream == 1 }.map(\.word).reduce(0, +)
    #expect(credit >= 320_000 - 65_535)
    #expect(peer.session.freeStreams == 100)
  }

  @Test("takes a body of exactly 64 KiB")
  func bodyAtLimit() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(400, 1))
    for _ in 0..<4 { peer.send(.data(1, [UInt8](repeating: 65, count: 16_384))) }
    peer.send(.data(1, [], end: true))
    #expect(peer.ended().map { $0.body?.count } == [65_536])
  }

  @Test("bounds the bodies of all streams together")
  func allBodies() throws {
    let peer = try Peer()
    peer.submit(Array(1...30))
    for stream in stride(from: 1, to: 60, by: 2) {
      peer.send(.status(400, stream))
      for _ in 0..<4 { peer.send(.data(stream, [UInt8](repeating: 65, count: 15_000))) }
      peer.send(.data(stream, [], end: true))
    }
    let ended = peer.ended()
    #expect(ended.count == 30)
    #expect(ended.compactMap(\.body?.count).reduce(0, +) <= 1 << 20)
    #expect(ended.contains { $0.body == nil } && ended.contains { $0.body != nil })
    // The memory counts as free once the ends are taken.
    peer.submit([99])
    peer.send(.status(400, 61), .data(61, [1], end: true))
    #expect(peer.ended().first?.body == [1])
  }

  @Test("cuts the captured field at 128 bytes")
  func longCapture() throws {
    let peer = try Peer()
    peer.submit([1])
    let value = String(repeating: "v", count: 400)
    peer.send(.status(200, 1, end: true, fields: Frame.field("apns-unique-id", value)))
    #expect(peer.ended().first?.captured?.count == 128)
  }

  @Test("reads the 101st answer after 100 errors with a body of 1 KiB")
  func creditedBodies() throws {
    let peer = try Peer()
    for round in 0..<101 {
      peer.submit([UInt64(round)])
      let stream = 1 + 2 * round
      peer.send(.status(400, stream), .data(stream, [UInt8](repeating: 65, count: 1_024), end: true))
      #expect(peer.ended().map(\.status) == [400])
    }
  }

  @Test("frees the slots of a burst when all of it has ended and was taken, not before")
  func releaseMemory() throws {
    let peer = try Peer()
    peer.submit([1, 2, 3])
    peer.send(.status(200, 1, end: true), .status(200, 3, end: true))
    #expect(peer.ended().map(\.tag) == [1, 2])
    peer.session.releaseMemory()
    peer.send(.status(410, 5, end: true))
    peer.session.releaseMemory()
    let last = peer.ended()
    #expect(last.map(\.tag) == [3])
    #expect(last.map(\.status) == [410])
    peer.session.releaseMemory()
    // The one that was freed last would come first.
    #expect(peer.session.stage(tag: 4) { $0.path.append(contentsOf: "/4".utf8) } == 0)
    peer.session.releaseMemory()
    peer.session.submitStaged(now: peer.now)
    peer.drain()
    peer.send(.status(200, 7, end: true))
    #expect(peer.ended().map(\.tag) == [4])
  }

  @Test("does not mix the answer of one request into the next of the slot")
  func slotReuse() throws {
    let peer = try Peer(maximumStreams: 1)
    peer.submit([1], body: 500)
    peer.send(
      .status(400, 1, fields: Frame.field("apns-unique-id", "abc")), .data(1, [1, 2, 3], end: true))
    #expect(peer.ended().count == 1)
    peer.submit([2], body: 3)
    peer.send(.status(200, 3, end: true))
    let ended = peer.ended()
    #expect(ended.first?.body == [])
    #expect(ended.first?.captured == nil)
    #expect(ended.first?.path == Array("/3/device/2".utf8))
    #expect(peer.frames(.data).last?.payload.count == 3)
  }

  @Test("takes an answer while its own body is blocked, and resets its side")
  func answerWhileBlocked() throws {
    let peer = try Peer(settings: [(4, 100)])
    peer.submit([1], body: 5_000)
    #expect(peer.frames(.data).map(\.payload.count) == [100])
    peer.send(.status(200, 1, end: true))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [200])
    #expect(ended.map(\.end) == [.complete])
    #expect(peer.frames(.reset).map(\.word) == [8])
    #expect(peer.session.freeStreams == 100)
    #expect(peer.session.sendWindow == 65_535 - 100)
  }
}
