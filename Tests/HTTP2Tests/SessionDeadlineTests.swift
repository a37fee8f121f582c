import HTTP2
import Testing

@Suite("Session: deadlines and limits")
struct SessionDeadlineTests {
  @Test("cancels a request at its deadline; the answer that crosses changes nothing")
  func timeout() throws {
    let peer = try Peer(maximumStreams: 2)
    peer.submit([1, 2])
    #expect(peer.session.freeStreams == 0)
    #expect(peer.session.deadline == peer.now + .seconds(10))
    peer.pass(.seconds(29))
    peer.send(Frame(kind: .ping, payload: [1, 2, 3, 4, 5, 6, 7, 8]))
    peer.judge()
    #expect(peer.ended().isEmpty)
    peer.pass(.seconds(1))
    peer.judge()
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.timedOut, .timedOut])
    #expect(ended.allSatisfy { $0.status == nil && !$0.isProvablyUnprocessed })
    #expect(peer.frames(.reset).map(\.word) == [8, 8])
    peer.send(.status(200, 1, end: true))
    #expect(peer.ended().isEmpty)
    #expect(peer.session.freeStreams == 2)
    peer.submit([3])
    peer.send(.status(200, 5, end: true))
    #expect(peer.ended().map(\.tag) == [3])
  }

  @Test("keeps a status that arrived without its end when the deadline comes")
  func timeoutWithStatus() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.status(410, 1), .data(1, [1]))
    peer.pass(.seconds(30))
    peer.judge()
    let ended = peer.ended()
    #expect(ended.map(\.status) == [410])
    #expect(ended.map(\.end) == [.timedOut])
  }

  @Test("judges each request by its own time of submission, also after others ended")
  func order() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.pass(.seconds(5))
    peer.submit([2])
    peer.pass(.seconds(5))
    peer.submit([3])
    peer.send(.status(200, 3, end: true))
    #expect(peer.ended().map(\.tag) == [2])
    peer.pass(.seconds(20))
    peer.judge()
    #expect(peer.ended().map(\.tag) == [1])
    peer.answerPing()
    peer.pass(.seconds(9))
    peer.judge()
    #expect(peer.ended().isEmpty)
    peer.pass(.seconds(1))
    peer.judge()
    #expect(peer.ended().map(\.tag) == [3])
    #expect(peer.session.deadline == nil)
  }

  @Test("sends a PING after 10 s of silence while an answer is due, and ends without its answer")
  func silence() throws {
    let peer = try Peer()
    peer.pass(.seconds(100))
    peer.judge()
    #expect(peer.frames(.ping).isEmpty)
    peer.submit([1])
    peer.judge()
    #expect(peer.frames(.ping).isEmpty)
    peer.pass(.seconds(10))
    peer.judge()
    #expect(peer.frames(.ping).count == 1)
    #expect(peer.session.deadline == peer.now + .seconds(5))
    peer.pass(.seconds(5))
    peer.judge()
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.lost])
    #expect(peer.session.freeStreams == 0)
  }

  @Test("is fresh again once the PING is answered, and only by its own bytes")
  func probe() throws {
    let peer = try Peer()
    #expect(peer.session.isFresh(now: peer.now))
    peer.pass(.seconds(60))
    #expect(!peer.session.isFresh(now: peer.now))
    peer.session.probe(now: peer.now)
    peer.session.probe(now: peer.now)
    peer.drain()
    let pings = peer.frames(.ping)
    try #require(pings.count == 1)
    peer.send(Frame(kind: .ping, flags: Frame.ack, payload: [9, 9, 9, 9, 9, 9, 9, 9]))
    #expect(!peer.session.isFresh(now: peer.now))
    peer.send(Frame(kind: .ping, flags: Frame.ack, payload: pings[0].payload))
    #expect(peer.session.isFresh(now: peer.now))
    peer.pass(.seconds(5))
    peer.judge()
    #expect(peer.session.freeStreams == 100)
  }

  @Test("obeys MAX_CONCURRENT_STREAMS at every change, 0 and 1 included")
  func streamLimit() throws {
    let peer = try Peer(maximumStreams: 1)
    #expect(peer.session.freeStreams == 1)
    peer.submit([1])
    #expect(peer.session.freeStreams == 0)
    peer.send(.maximumStreams(3))
    #expect(peer.session.freeStreams == 2)
    peer.submit([2, 3])
    peer.send(.maximumStreams(0))
    #expect(peer.session.freeStreams == 0)
    peer.send(.status(200, 1, end: true), .status(200, 3, end: true), .status(200, 5, end: true))
    #expect(peer.session.freeStreams == 0)
    #expect(peer.session.stage(tag: 9) { _ in } == nil)
    peer.send(.maximumStreams(1))
    #expect(peer.session.freeStreams == 1)
  }

  @Test("uses at most 1,000 streams of a peer that names no limit")
  func noLimit() throws {
    let peer = try Peer(maximumStreams: nil)
    peer.send(.settings([]))
    #expect(peer.session.freeStreams == Session.maximumStreams)
  }

  @Test("counts the send window down by what is submitted and up by what is credited")
  func sendWindow() throws {
    let peer = try Peer(settings: [(4, 1_000)])
    #expect(peer.session.sendWindow == 65_535)
    peer.stage([1, 2], body: 4_000)
    #expect(peer.session.sendWindow == 65_535)
    peer.session.submitStaged(now: peer.now)
    #expect(peer.session.sendWindow == 65_535 - 8_000)
    peer.drain()
    #expect(peer.session.sendWindow == 65_535 - 8_000)
    peer.send(.windowUpdate(1, 10_000))
    #expect(peer.session.sendWindow == 65_535 - 8_000)
    peer.send(.windowUpdate(0, 5_000))
    #expect(peer.session.sendWindow == 65_535 - 8_000 + 5_000)
    // A stream that ends takes what it did not send off the account.
    peer.send(.reset(3, 8))
    #expect(peer.session.sendWindow == 65_535 - 5_000 + 5_000)
  }

  @Test("has an exact send window while a record is blocked")
  func blockedWindow() throws {
    let peer = try Peer(settings: [(4, 1 << 20)])
    peer.drain()
    peer.stage([1], body: 40_000)
    peer.session.submitStaged(now: peer.now)
    for _ in 0..<4 {
      #expect(peer.session.sendWindow == 65_535 - 40_000)
      peer.writeOnce()
    }
    #expect(peer.session.sendWindow == 65_535 - 40_000)
  }

  @Test("retires before the stream ids run out")
  func streamIDs() throws {
    let nearEnd = try Peer(firstStreamID: Int32.max - 2 * 65_536 - 6)
    #expect(nearEnd.session.freeStreams == 3)
    nearEnd.submit([1, 2])
    #expect(nearEnd.session.freeStreams == 1)
    nearEnd.submit([3])
    #expect(nearEnd.session.freeStreams == 0)
    let stream = Int(Int32.max) - 2 * 65_536 - 6
    nearEnd.send(.status(200, stream, end: true))
    #expect(nearEnd.session.isRetiring)
    #expect(nearEnd.ended().map(\.tag) == [1])
  }

  @Test("never writes a request whose time came while the socket was blocked")
  func blockedTimeout() throws {
    let peer = try Peer(settings: [(4, 1 << 20)])
    peer.drain()
    peer.stage([1], body: 30_000)
    peer.session.submitStaged(now: peer.now)
    peer.writeOnce(limit: 100)
    peer.stage([2], body: 10)
    peer.session.submitStaged(now: peer.now)
    peer.pass(.seconds(30))
    peer.session.judge(now: peer.now)
    peer.drain()
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.timedOut, .notHandedOver])
    #expect(ended.map(\.isProvablyUnprocessed) == [false, true])
    #expect(peer.frames(.headers).map(\.stream) == [1])
    #expect(peer.frames(.reset).map(\.stream) == [1])
    #expect(peer.session.sendWindow >= 65_535 - 30_000)
    peer.submit([3])
    #expect(peer.frames(.headers).map(\.stream) == [1, 5])
  }

  @Test("leaves requests queued by a lowered limit unprocessed when their time comes")
  func loweredBeforeFraming() throws {
    let peer = try Peer(maximumStreams: 2)
    peer.drain()
    peer.stage([1, 2])
    peer.session.submitStaged(now: peer.now)
    peer.receive(Frame.maximumStreams(1).bytes)
    peer.drain()
    #expect(peer.frames(.headers).count == 1)
    peer.pass(.seconds(30))
    peer.judge()
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.timedOut, .notHandedOver])
    #expect(ended.map(\.isProvablyUnprocessed) == [false, true])
    #expect(peer.frames(.headers).count == 1)
    #expect(peer.session.freeStreams == 1)
  }
}
