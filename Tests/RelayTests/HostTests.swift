import Testing

@testable import Relay

@Suite("Host")
struct HostTests {
  let bench: Bench
  let host: Relay.Host

  init() throws {
    bench = try Bench()
    host = bench.host()
  }

  private func at(_ seconds: Double) -> ContinuousClock.Instant { bench.start + .seconds(seconds) }

  @Test("without a connection it has no room, and one that dials gives none")
  func room() {
    #expect(host.room(now: at(0)) == 0)
    #expect(host.link(forBytes: 1, now: at(0)) == nil)
    host.links.append(bench.link())
    #expect(host.links[0].connection.phase == .dialing)
    #expect(host.room(now: at(0)) == 0)
    #expect(host.link(forBytes: 1, now: at(0)) == nil)
    #expect(!host.needsAnother(now: at(0), most: 4))
  }

  @Test("any of its pauses keeps claims away, and it is paused until the last of them ends")
  func pauses() throws {
    #expect(!host.isPaused(now: at(0)))
    #expect(host.pausedUntil(now: at(0)) == nil)
    _ = host.dialPause.report(since: at(0), now: at(0))
    #expect(host.isPaused(now: at(0.5)))
    let length = host.refusalPause.report(since: at(0), now: at(0))
    let refused = try #require(length)
    #expect(host.pausedUntil(now: at(0.5)) == at(0) + refused)
    #expect(host.isPaused(now: at(4)))
    #expect(!host.isPaused(now: at(6)))
    #expect(host.pausedUntil(now: at(6)) == nil)
  }

  @Test("a throttled provider token pauses every host of its key and no other")
  func throttled() throws {
    let sibling = bench.host(.sandbox)
    let stranger = bench.host(.sandbox, signer: try Bench.signer())
    _ = bench.signer.throttlePause.report(since: at(0), now: at(0))
    #expect(host.isPaused(now: at(1)) && sibling.isPaused(now: at(1)))
    #expect(!stranger.isPaused(now: at(1)))
  }

  @Test("an answer to a request that was sent after the pauses began ends them, and says so once")
  func proven() {
    _ = host.dialPause.report(since: at(0), now: at(1))
    _ = host.refusalPause.report(since: at(0), now: at(1))
    host.isProbing = true
    host.refusesKeyEnvironment = true
    host.trouble = "InvalidProviderToken"
    host.troubles = (2, 0, 0)
    #expect(host.prove(since: at(20)))
    #expect(!host.isProbing && !host.refusesKeyEnvironment)
    #expect(host.trouble == nil)
    #expect(host.troubles == (0, 0, 0))
    #expect(!host.isPaused(now: at(1)))
    #expect(!host.prove(since: at(21)))
  }

  @Test("a new key ends what was said about the old one, and retires what has carried it")
  func newKey() throws {
    host.links.append(bench.link())
    host.links.append(bench.link())
    host.links[0].keyGeneration = 1
    _ = host.refusalPause.report(since: at(0), now: at(0))
    host.isProbing = true
    host.refusesKeyEnvironment = true
    host.trouble = "BadEnvironmentKeyInToken"
    #expect(host.troubleWords == "production refuses our credentials (BadEnvironmentKeyInToken)")
    host.takeNewKey(now: at(1))
    #expect(!host.isPaused(now: at(1)) && !host.refusesKeyEnvironment)
    #expect(host.troubleWords == nil)
    #expect(host.isProbing, "it has proven nothing yet")
    #expect(host.links[0].wasRetiredByUs && !host.links[1].wasRetiredByUs)
    #expect(host.refusalPause.report(since: at(0.5), now: at(2)) == nil, "a late answer about the old key")
  }

  @Test("a new key does not mend a host that cannot be reached")
  func newKeyUnreachable() {
    _ = host.dialPause.report(since: at(0), now: at(0))
    host.trouble = "connection refused"
    host.takeNewKey(now: at(0.5))
    #expect(host.isPaused(now: at(0.5)))
    #expect(host.troubleWords == "production cannot be reached (connection refused)")
  }

  @Test("an answer to a request that was sent before a pause began does not end it")
  func provenTooEarly() {
    _ = host.dialPause.report(since: at(0), now: at(1))
    _ = host.refusalPause.report(since: at(4), now: at(5))
    host.isProbing = true
    host.trouble = "InvalidProviderToken"
    #expect(!host.prove(since: at(3)))
    #expect(host.isProbing)
    #expect(host.trouble != nil)
    #expect(host.isPaused(now: at(6)))
    #expect(host.prove(since: at(30)))
  }

  @Test("a paused host has no room, and while it is probed no connection beyond the first is opened")
  func probing() {
    host.links.append(bench.link())
    host.isProbing = true
    #expect(!host.needsAnother(now: at(9), most: 4))
    _ = host.troublePause.report(since: at(0), now: at(0))
    #expect(host.room(now: at(1)) == 0)
  }
}
