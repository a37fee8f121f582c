import Glibc
import HTTP2
import Testing

@Suite("Connection: awkward peers")
struct ScriptedPeerTests {
  private func connect(
    _ mode: String, _ options: ConnectionOptions = ConnectionOptions(),
    _ body: (Loop, Connection) throws -> Void
  ) throws {
    let server = try ScriptedPeer.start(mode)
    let loop = try Loop()
    let connection = try loop.connect("localhost", server.port, trusting: server.authority, options: options)
    try body(loop, connection)
  }

  @Test("takes the answers that came before the end of file")
  func answerThenEOF() throws {
    try connect("answer-eof") { loop, connection in
      try #require(loop.isOpen(connection))
      let ended = loop.send([1, 2], on: connection)
      #expect(ended.map(\.status) == [200, 200])
      #expect(ended.map(\.end) == [.complete, .lost])
      #expect(connection.phase == .closed)
      #expect(connection.fault?.stage == .lost)
      #expect(connection.freeStreams == 0)
      #expect(connection.stage(tag: 3) { _ in } == nil)
    }
  }

  @Test("reads the answers that arrived before a connection breaks under a write")
  func answerThenBrokenWrite() throws {
    let server = try ScriptedPeer.start("answer-reset")
    let loop = try Loop()
    let connection = try loop.connect("localhost", server.port, trusting: server.authority)
    try #require(loop.isOpen(connection))
    for tag in [1, 2] { _ = connection.stage(tag: UInt64(tag)) { $0.path.append(47) } }
    connection.submitStaged(now: ContinuousClock.now)
    // Nothing is read meanwhile: the next thing that happens to the connection is a write.
    try #require(waitForFile(server.folder + "/served"))
    connection.probe(now: ContinuousClock.now)
    var statuses: [Int?] = []
    connection.takeEnded { statuses.append($0.status) }
    #expect(statuses == [200, 200])
    #expect(connection.phase == .closed)
    #expect(connection.fault?.stage == .lost)
  }

  private func waitForFile(_ path: String) -> Bool {
    let limit = ContinuousClock.now + .seconds(20)
    while access(path, F_OK) != 0 {
      if ContinuousClock.now > limit { return false }
      usleep(1_000)
    }
    return true
  }

  @Test("loses handed over requests when the connection is reset")
  func reset() throws {
    try connect("reset") { loop, connection in
      try #require(loop.isOpen(connection))
      let ended = loop.send([1, 2], on: connection)
      #expect(ended.map(\.end) == [.lost, .lost])
      #expect(ended.allSatisfy { !$0.isProvablyUnprocessed })
      #expect(connection.fault?.stage == .lost)
    }
  }

  @Test("retires at GOAWAY, lets what is in flight finish, and closes by itself")
  func goaway() throws {
    try connect("goaway") { loop, connection in
      try #require(loop.isOpen(connection))
      let ended = loop.send([1, 2], on: connection)
      #expect(ended.first { $0.tag == 1 }?.status == 200)
      #expect(ended.first { $0.tag == 2 }?.isProvablyUnprocessed == true)
      #expect(loop.run(connection) { connection.phase == .closed })
      #expect(connection.fault?.stage == .goaway)
      #expect(connection.goawayDebug == "{\"reason\":\"Shutdown\"}")
    }
  }

  @Test("lets what is in flight finish when it is retired, then closes without a fault")
  func retire() throws {
    try connect("late") { loop, connection in
      try #require(loop.isOpen(connection))
      for tag in [1, 2] { _ = connection.stage(tag: UInt64(tag)) { $0.path.append(47) } }
      connection.submitStaged(now: ContinuousClock.now)
      connection.retire()
      #expect(connection.phase == .retired)
      #expect(connection.freeStreams == 0)
      #expect(connection.openStreams == 2)
      #expect(loop.run(connection) { connection.phase == .closed })
      var statuses: [Int?] = []
      connection.takeEnded { statuses.append($0.status) }
      #expect(statuses == [200, 200])
      #expect(connection.fault == nil)
    }
  }

  @Test("gives up swallowed requests and goes on with the connection")
  func swallow() throws {
    var options = ConnectionOptions()
    options.answerTimeout = .milliseconds(200)
    try connect("swallow", options) { loop, connection in
      try #require(loop.isOpen(connection))
      #expect(loop.send([1, 2], on: connection).map(\.end) == [.timedOut, .timedOut])
      #expect(connection.phase == .open)
      #expect(loop.send([3], on: connection).map(\.status) == [200])
    }
  }

  @Test("ends a connection that answers neither requests nor PING")
  func deaf() throws {
    var options = ConnectionOptions()
    options.silenceWhileAwaiting = .milliseconds(100)
    options.pingTimeout = .milliseconds(100)
    try connect("deaf", options) { loop, connection in
      try #require(loop.isOpen(connection))
      #expect(loop.send([1, 2], on: connection).map(\.end) == [.lost, .lost])
      #expect(connection.fault?.stage == .ping)
    }
  }

  @Test("ends a connection whose peer never sends SETTINGS")
  func mute() throws {
    var options = ConnectionOptions()
    options.dialTimeout = .milliseconds(300)
    try connect("mute", options) { loop, connection in
      #expect(!loop.isOpen(connection))
      #expect(connection.fault?.stage == .protocol)
      #expect(connection.fault?.words.contains("SETTINGS") == true)
    }
  }

  @Test("ends a connection whose peer talks something else, and says so")
  func text() throws {
    try connect("text") { loop, connection in
      try #require(loop.isOpen(connection))
      let ended = loop.send([1, 2], on: connection)
      #expect(ended.map(\.end) == [.lost, .lost])
      #expect(connection.fault?.stage == .protocol, "\(connection.fault?.description ?? "")")
    }
  }

  @Test("waits for a peer that reads slowly, and sends every byte")
  func slow() throws {
    try connect("slow") { loop, connection in
      try #require(loop.isOpen(connection))
      #expect(loop.run(connection) { connection.sendWindow > 60 * 100_000 })
      for tag in 1...60 {
        _ = connection.stage(tag: UInt64(tag)) { request in
          request.path.append(contentsOf: "/".utf8)
          request.body.append(contentsOf: [UInt8](repeating: 7, count: 100_000))
        }
      }
      connection.submitStaged(now: ContinuousClock.now)
      #expect(connection.openStreams == 60)
      var statuses: [Int?] = []
      _ = loop.run(connection) {
        connection.takeEnded { statuses.append($0.status) }
        return statuses.count == 60
      }
      #expect(statuses == [Int?](repeating: 200, count: 60))
      #expect(connection.sendWindow < 1 << 28)
    }
  }

  @Test("ends open requests as lost when it is closed on purpose, without a fault")
  func close() throws {
    try connect("swallow") { loop, connection in
      try #require(loop.isOpen(connection))
      _ = connection.stage(tag: 1) { $0.path.append(47) }
      connection.submitStaged(now: ContinuousClock.now)
      connection.close(now: ContinuousClock.now)
      var ends: [EndedStream.End] = []
      connection.takeEnded { ends.append($0.end) }
      #expect(ends == [.lost])
      #expect(connection.phase == .closed)
      #expect(connection.fault == nil)
    }
  }
}
