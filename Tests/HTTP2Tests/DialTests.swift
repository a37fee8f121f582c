import CLinux
import Glibc
import Testing

@testable import HTTP2

@Suite("Dial and Resolver")
struct DialTests {
  private func addresses(_ host: String, _ port: UInt16) throws -> [SocketAddress] {
    try SocketAddress.lookUp(host, port, isNumeric: true).get()
  }

  private func listener() throws -> (Int32, UInt16) {
    let port = try freePort()
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    try #require(withLoopback(port) { bind(listener, $0, $1) } == 0)
    listen(listener, 1)
    return (listener, port)
  }

  @Test("goes on at once to the next address when one refuses")
  func refusing() throws {
    let (live, port) = try listener()
    defer { close(live) }
    let epoll = epoll_create1(0)
    defer { close(epoll) }
    let list = try addresses("127.0.0.2", port) + addresses("127.0.0.1", port)
    let dial = Dial(
      Lookup("x", port, .success(list)), Interest(epoll: epoll, tag: 0), stagger: .seconds(3_600))
    let now = ContinuousClock.now
    #expect(try finish(dial, now, epoll) == "127.0.0.1:\(port)")
  }

  @Test("starts the next address after the pause while the first is silent, and takes who connects first")
  func silent() throws {
    // A queue of connections that nobody accepts: the kernel drops further ones in silence.
    let (full, fullPort) = try listener()
    defer { close(full) }
    listen(full, 0)
    var fillers: [Int32] = []
    defer { fillers.forEach { close($0) } }
    for _ in 0..<3 {
      let filler = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
      _ = withLoopback(fullPort) { connect(filler, $0, $1) }
      fillers.append(filler)
    }
    let (live, port) = try listener()
    defer { close(live) }
    let epoll = epoll_create1(0)
    defer { close(epoll) }
    let list = try addresses("127.0.0.1", fullPort) + addresses("127.0.0.1", port)
    let dial = Dial(
      Lookup("x", port, .success(list)), Interest(epoll: epoll, tag: 0), stagger: .milliseconds(250))
    let now = ContinuousClock.now
    guard case .pending = dial.advance(now: now) else { throw Problem() }
    #expect(dial.deadline == now + .milliseconds(250))
    guard case .pending = dial.advance(now: now + .milliseconds(249)) else { throw Problem() }
    #expect(try finish(dial, now + .milliseconds(250), epoll) == "127.0.0.1:\(port)")
  }

  @Test("fails with the last reason when no address is left")
  func allFail() throws {
    let port = try freePort()
    let epoll = epoll_create1(0)
    defer { close(epoll) }
    let list = try addresses("127.0.0.1", port) + addresses("127.0.0.2", port)
    let dial = Dial(Lookup("x", port, .success(list)), Interest(epoll: epoll, tag: 0), stagger: .seconds(1))
    let fault = #expect(throws: ConnectionFault.self) { try finish(dial, ContinuousClock.now, epoll) }
    #expect(fault?.stage == .connect)
  }

  @Test("takes IPv6 and IPv4 by turns")
  func interleaved() throws {
    let list =
      try addresses("::1", 1) + addresses("::2", 1) + addresses("::3", 1) + addresses("127.0.0.1", 1)
      + addresses("127.0.0.2", 1)
    #expect(
      SocketAddress.interleaved(list).map(\.text)
        == ["[::1]:1", "127.0.0.1:1", "[::2]:1", "127.0.0.2:1", "[::3]:1"])
    #expect(SocketAddress.interleaved([]).isEmpty)
  }

  @Test("answers an address at once, and names one after the other through its thread")
  func resolver() throws {
    let epoll = epoll_create1(0)
    defer { close(epoll) }
    let resolver = try Resolver(epoll: epoll, tag: 7)
    #expect(resolver.lookUp("127.0.0.1", 443).result != nil)
    #expect(resolver.lookUp("::1", 443).result != nil)
    let first = resolver.lookUp("localhost", 443)
    let second = resolver.lookUp("localhost", 444)
    for lookup in [first, second] {
      while lookup.result == nil {
        var event = epoll_event()
        try #require(epoll_wait(epoll, &event, 1, 20_000) == 1)
        #expect(event.data.u64 == 7)
        resolver.collect()
      }
    }
    #expect(try first.result?.get().isEmpty == false)
    #expect(try second.result?.get().first?.text.hasSuffix(":444") == true)
  }

  @Test("writes authorities as RFC 9110 and 3986 say")
  func authority() {
    #expect(Endpoint(host: "a.test", port: 443).authority == "a.test")
    #expect(Endpoint(host: "a.test", port: 2197).authority == "a.test:2197")
    #expect(Endpoint(host: "::1", port: 8443).authority == "[::1]:8443")
  }

  private struct Problem: Error {}

  /// Turns until the dial ends; the address that won.
  private func finish(_ dial: Dial, _ now: ContinuousClock.Instant, _ epoll: Int32) throws -> String {
    for _ in 0..<100 {
      switch dial.advance(now: now) {
      case .pending:
        var event = epoll_event()
        try #require(epoll_wait(epoll, &event, 1, 20_000) == 1)
      case .failed(let fault): throw fault
      case .connected(let descriptor, let address):
        close(descriptor)
        return address.text
      }
    }
    throw Problem()
  }
}
