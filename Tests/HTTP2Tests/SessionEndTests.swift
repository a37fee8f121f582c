import HTTP2
import Testing

@Suite("Session: refusals, resets and GOAWAY")
struct SessionEndTests {
  @Test("calls REFUSED_STREAM unprocessed, and no other reset")
  func refused() throws {
    let peer = try Peer()
    peer.submit([1, 2, 3])
    peer.send(.reset(1, 7), .reset(3, 2), .reset(5, 0))
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.refused, .reset(2), .reset(0)])
    #expect(ended.map(\.isProvablyUnprocessed) == [true, false, false])
    #expect(ended.allSatisfy { $0.status == nil })
  }

  @Test("retires at GOAWAY: streams above the last id are unprocessed, the others finish")
  func goaway() throws {
    let peer = try Peer()
    peer.submit([1, 2, 3])
    peer.send(.goaway(3, 0, "{\"reason\":\"Shutdown\"}"))
    #expect(peer.session.freeStreams == 0)
    #expect(peer.session.isRetiring)
    #expect(peer.session.goawayDebug == "{\"reason\":\"Shutdown\"}")
    let above = peer.ended()
    #expect(above.map(\.tag) == [3])
    #expect(above.map(\.end) == [.refused])
    #expect(above.map(\.isProvablyUnprocessed) == [true])
    #expect(peer.session.openStreams == 2)
    peer.send(.status(200, 1, end: true), .status(410, 3, end: true))
    #expect(peer.ended().map(\.status) == [200, 410])
  }

  @Test("follows a second GOAWAY with a lower last id")
  func twoGoaways() throws {
    let peer = try Peer()
    peer.submit([1, 2])
    peer.send(.goaway(0x7fff_ffff))
    #expect(peer.ended().isEmpty)
    #expect(peer.session.freeStreams == 0)
    peer.send(.goaway(1))
    #expect(peer.ended().map(\.tag) == [2])
    peer.send(.status(200, 1, end: true))
    #expect(peer.ended().map(\.status) == [200])
  }

  @Test("calls all three unprocessed after GOAWAY(last 0, PROTOCOL_ERROR)")
  func goawayZero() throws {
    let peer = try Peer()
    peer.submit([1, 2, 3])
    peer.send(.goaway(0, 1))
    #expect(peer.ended().map(\.isProvablyUnprocessed) == [true, true, true])
  }

  @Test("leaves streams at or below the last id of an error GOAWAY open until they are lost")
  func goawayError() throws {
    let peer = try Peer()
    peer.submit([1, 2])
    peer.send(.goaway(3, 2))
    #expect(peer.ended().isEmpty)
    peer.session.fail(ConnectionFault(.lost, "end of file"))
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.lost, .lost])
    #expect(ended.allSatisfy { !$0.isProvablyUnprocessed })
  }

  @Test("keeps GOAWAY's debug data printable and bounded")
  func goawayDebug() throws {
    let peer = try Peer()
    peer.send(.goaway(0, 0, String(repeating: "a\n", count: 1_000)))
    let debug = try #require(peer.session.goawayDebug)
    #expect(debug.utf8.count == 256)
    #expect(debug.hasPrefix("a?a?"))
  }

  @Test("ends what never was given to TLS as not handed over, and the rest as lost")
  func handedOver() throws {
    let peer = try Peer(settings: [(4, 1 << 20)])
    peer.send(.windowUpdate(0, 1 << 20))
    // The first request fills the record; the second one's HEADERS follow in a later one.
    peer.stage([1], body: 0)
    peer.session.submitStaged(now: peer.now)
    peer.writeOnce(limit: 1)
    peer.stage([2], body: 0)
    peer.session.submitStaged(now: peer.now)
    peer.session.fail(ConnectionFault(.lost, "reset"))
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.lost, .notHandedOver])
    #expect(ended.map(\.isProvablyUnprocessed) == [false, true])
  }

  @Test("counts a request in a buffer that was not passed to TLS as not handed over")
  func framedOnly() throws {
    let peer = try Peer()
    peer.drain()
    peer.stage([1])
    peer.session.submitStaged(now: peer.now)
    #expect(!peer.session.bytesToWrite().isEmpty)
    peer.session.fail(ConnectionFault(.lost, "reset"))
    #expect(peer.ended().map(\.end) == [.notHandedOver])
  }

  @Test("knows for each of many requests whether its record was given to TLS")
  func manyRecords() throws {
    let peer = try Peer(maximumStreams: 1_000, settings: [])
    peer.drain()
    for tag in 1...400 {
      _ = peer.session.stage(tag: UInt64(tag)) { request in
        request.path.append(contentsOf: (0..<100).map { UInt8(ascii: "a") + UInt8(($0 * tag) % 26) })
      }
    }
    peer.session.submitStaged(now: peer.now)
    peer.writeOnce()
    let written = peer.frames(.headers).count
    peer.session.fail(ConnectionFault(.lost, "reset"))
    let ended = peer.ended()
    let lost = ended.filter { $0.end == .lost }.count
    // The frame that is cut at the end of the record is handed over as well.
    #expect(written > 50 && written < 400)
    #expect(lost == written || lost == written + 1)
    #expect(ended.filter { $0.end == .notHandedOver }.count == 400 - lost)
    #expect(ended.prefix(lost).allSatisfy { $0.end == .lost })
  }

  @Test("never sends a request submitted while a GOAWAY was on its way")
  func goawayBeforeFraming() throws {
    let peer = try Peer()
    peer.drain()
    peer.stage([1])
    peer.session.submitStaged(now: peer.now)
    peer.receive(Frame.goaway(0).bytes)
    peer.drain()
    let ended = peer.ended()
    #expect(ended.map(\.end) == [.notHandedOver])
    #expect(ended.map(\.isProvablyUnprocessed) == [true])
    #expect(peer.frames(.headers).isEmpty)
    #expect(peer.session.openStreams == 0)
  }

  @Test("takes the answer that came before the end of the connection in the same read")
  func answerThenEnd() throws {
    let peer = try Peer()
    peer.submit([1, 2])
    peer.send(.status(200, 1, end: true), .status(200, 3))
    peer.session.fail(ConnectionFault(.lost, "end of file"))
    let ended = peer.ended()
    #expect(ended.map(\.status) == [200, 200])
    #expect(ended.map(\.end) == [.complete, .lost])
  }

  @Test("ends staged requests as not handed over when the connection is gone at submission")
  func stagedThenLost() throws {
    let peer = try Peer()
    peer.stage([1, 2])
    peer.session.fail(ConnectionFault(.lost, "end of file"))
    peer.session.submitStaged(now: peer.now)
    #expect(peer.ended().map(\.end) == [.notHandedOver, .notHandedOver])
  }

  @Test("sends nothing of discarded requests and gives their slots again")
  func discard() throws {
    let peer = try Peer(maximumStreams: 2)
    peer.drain()
    peer.stage([1, 2])
    #expect(peer.session.freeStreams == 0)
    peer.session.discardStaged()
    peer.session.submitStaged(now: peer.now)
    peer.drain()
    #expect(peer.frames(.headers).isEmpty)
    #expect(peer.ended().isEmpty)
    #expect(peer.session.freeStreams == 2)
  }

  @Test("survives a protocol error and says which")
  func protocolError() throws {
    let peer = try Peer()
    peer.submit([1])
    peer.send(.data(1, [1, 2, 3]))
    // DATA before HEADERS is the stream's error (RFC 9113, 8.1) or the connection's: either way no status.
    peer.send(Frame(kind: .headers, flags: 4, stream: 0, payload: [0x88]))
    #expect(peer.session.isFinished)
    #expect(!peer.frames(.goaway).isEmpty)
  }
}
