import Testing

@testable import Relay

@Suite("Pause")
struct PauseTests {
  let start = ContinuousClock.now

  private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

  @Test("it doubles from episode to episode up to the longest, with a tenth of jitter at most")
  func doubles() throws {
    var pause = Pause(from: .seconds(1), to: .seconds(10))
    var now = start
    for expected in [1.0, 2, 4, 8, 10, 10, 10] {
      let reported = pause.report(since: now, now: now)
      let length = try #require(reported)
      #expect(length >= .seconds(expected))
      #expect(length < .seconds(expected * 1.1))
      #expect(pause.isActive(now: now))
      let until = try #require(pause.until)
      #expect(until == now + length)
      #expect(!pause.isActive(now: until))
      now = until + .milliseconds(1)
    }
  }

  @Test("an episode counts once, however many answers report it and however late")
  func once() {
    var pause = Pause(from: .seconds(1), to: .seconds(10))
    #expect(pause.report(since: at(0), now: at(5)) != nil)
    // Sent before the pause began, whenever it comes.
    #expect(pause.report(since: at(1), now: at(5)) == nil)
    #expect(pause.report(since: at(5), now: at(5.5)) == nil)
    #expect(pause.report(since: at(5), now: at(100)) == nil)
    // Sent in the pause (a probe that was under way): still the same one.
    #expect(pause.report(since: at(5.5), now: at(5.6)) == nil)
    // Sent after it: the next episode.
    let second = pause.report(since: at(8), now: at(9))
    #expect(second.map { $0 >= .seconds(2) } == true)
  }

  @Test("something good ends it and makes the next one short, unless it was sent before")
  func ends() {
    var pause = Pause(from: .seconds(1), to: .seconds(10))
    _ = pause.report(since: at(0), now: at(0))
    _ = pause.report(since: at(2), now: at(2))
    pause.end(since: at(1))
    #expect(pause.isActive(now: at(2.5)))
    pause.end(since: at(2))
    #expect(pause.isActive(now: at(2.5)))
    pause.end(since: at(3))
    #expect(pause.until == nil)
    #expect(!pause.isActive(now: at(2.5)))
    let next = pause.report(since: at(4), now: at(4))
    #expect(next.map { $0 < .seconds(1.1) } == true)
  }

  @Test("forgotten, it is over and the next one short, and what was sent before begins none")
  func forgets() {
    var pause = Pause(from: .seconds(1), to: .seconds(10))
    _ = pause.report(since: at(0), now: at(0))
    _ = pause.report(since: at(2), now: at(2))
    pause.forget(now: at(3))
    #expect(pause.until == nil)
    #expect(pause.report(since: at(2.9), now: at(4)) == nil)
    #expect(!pause.isActive(now: at(4)))
    let next = pause.report(since: at(3.1), now: at(4))
    #expect(next.map { $0 < .seconds(1.1) } == true)
  }

  @Test("without an episode there is no pause")
  func fresh() {
    var pause = Pause(from: .seconds(1), to: .seconds(10))
    #expect(!pause.isActive(now: start))
    pause.end(since: start)
    #expect(pause.until == nil)
  }
}
