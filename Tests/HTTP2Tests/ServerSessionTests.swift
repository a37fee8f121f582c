import HTTP2
import Testing

/// A client's session and a server's, joined without a socket.
private final class Pair {
  let client: Session
  let server: ServerSession
  let now = ContinuousClock.now

  init(streams: UInt32 = 10) throws {
    client = try Session(authority: "localhost", capture: "x-id", options: ConnectionOptions(), now: now)
    server = try ServerSession(settings: [.maximumStreams(streams)])
    exchange()
  }

  /// Carries bytes both ways until there are none.
  func exchange() {
    var moved = true
    while moved {
      moved = false
      let up = client.bytesToWrite()
      if !up.isEmpty {
        client.willWrite()
        server.receive(up)
        client.wrote(up.count)
        moved = true
      }
      let down = server.bytesToWrite()
      if !down.isEmpty {
        client.receive(down, now: now)
        server.wrote(down.count)
        moved = true
      }
    }
  }

  /// Sends a request for each tag and gives those that arrived.
  func send(_ tags: [UInt64], body: [UInt8] = []) -> [RequestID] {
    for tag in tags {
      _ = client.stage(tag: tag) { request in
        request.path = Array("/\(tag)".utf8)
        request.body = body
        request.fields.append("x-name", "value", .incremental)
      }
    }
    client.submitStaged(now: now)
    exchange()
    return server.takeRequests()
  }

  func ended() -> [EndedStream] {
    exchange()
    var list: [EndedStream] = []
    client.takeEnded { list.append(copy $0) }
    return list
  }
}

@Suite("ServerSession")
struct ServerSessionTests {
  @Test("a request arrives with its fields in order and its whole body")
  func request() throws {
    let pair = try Pair()
    let body = (0..<50_000).map { UInt8(truncatingIfNeeded: $0) }
    let ids = pair.send([7], body: body)
    let seen = ids.first.flatMap { id in
      pair.server.withRequest(id) { request in
        let fields = request.fields.map {
          String(decoding: request.bytes[$0.name] + [61] + request.bytes[$0.value], as: UTF8.self)
        }
        return (fields, request.body, request.bodyCount)
      }
    }
    #expect(seen?.0 == [":method=POST", ":scheme=https", ":authority=localhost", ":path=/7", "x-name=value"])
    #expect(seen?.1 == body && seen?.2 == body.count)
  }

  @Test("of a body that is too long its first part is kept, and its length")
  func longBody() throws {
    let pair = try Pair()
    let ids = pair.send([1], body: [UInt8](repeating: 1, count: 200_000))
    #expect(ids.count == 1)
    let counts = pair.server.withRequest(ids[0]) { ($0.body.count, $0.bodyCount) }
    #expect(counts?.0 == ServerRequest.bodyLimit && counts?.1 == 200_000)
  }

  @Test("answers arrive with status, fields and body, in whatever order they are given")
  func answers() throws {
    let pair = try Pair()
    let ids = pair.send([1, 2, 3])
    let body = [UInt8](repeating: 120, count: 40_000)
    for (index, id) in ids.enumerated().reversed() {
      var response = ServerResponse()
      response.status = 200 + index
      response.fields.append("x-id", "id", .never)
      if index == 1 { response.body = body }
      pair.server.inform(id, status: 103)
      pair.server.respond(id, response)
    }
    let ended = pair.ended().sorted { $0.tag < $1.tag }
    #expect(ended.map(\.status) == [200, 201, 202] && ended.allSatisfy { $0.end == .complete })
    #expect(ended.map { $0.body?.count } == [0, 40_000, 0])
    #expect(ended.allSatisfy { $0.captured == Array("id".utf8) })
    #expect(pair.server.openStreams == 0)
  }

  @Test("a stream that is gone takes no answer, also when its place serves another")
  func stale() throws {
    let pair = try Pair()
    let first = pair.send([1])[0]
    pair.server.reset(first, code: 7)
    #expect(pair.ended().map(\.end) == [.refused])
    let second = pair.send([2])[0]
    #expect(!pair.server.isOpen(first) && pair.server.isOpen(second))
    pair.server.respond(first, ServerResponse())
    pair.server.reset(first, code: 2)
    #expect(pair.server.withRequest(first) { _ in true } == nil)
    #expect(pair.ended().isEmpty)
    pair.server.respond(second, ServerResponse())
    #expect(pair.ended().map(\.status) == [200])
  }

  @Test("the stream limit is obeyed, and can be changed")
  func limit() throws {
    let pair = try Pair(streams: 1)
    #expect(pair.client.freeStreams == 1)
    pair.server.submit([.maximumStreams(5), .initialWindow(100)])
    pair.exchange()
    #expect(pair.client.freeStreams == 5)
  }

  @Test("GOAWAY refuses what is above its last stream, and the rest is answered")
  func goaway() throws {
    let pair = try Pair()
    let ids = pair.send([1, 2])
    pair.server.goaway(lastStream: ids[0].stream, code: 11, debug: Array("enough".utf8))
    #expect(pair.ended().map(\.end) == [.refused])
    #expect(pair.client.goawayDebug == "enough")
    pair.server.respond(ids[0], ServerResponse())
    #expect(pair.ended().map(\.status) == [200])
    #expect(pair.server.isDone)
  }

  @Test("bytes that are no HTTP/2 end the session")
  func noise() throws {
    let server = try ServerSession(settings: [])
    Array("GET / HTTP/1.1\r\n\r\n".utf8).withUnsafeBytes { server.receive($0) }
    #expect(server.isOver && server.isDone)
  }

  @Test("error codes have the names of RFC 9113")
  func codes() {
    #expect(errorCode(named: "NO_ERROR") == 0 && errorCode(named: "HTTP_1_1_REQUIRED") == 13)
    #expect(errorCode(named: "REFUSED_STREAM") == 7 && errorCode(named: "refused") == nil)
  }
}
