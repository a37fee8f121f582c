import Testing

@testable import Relay

@Suite("Clock")
struct ClockTests {
  @Test("the machine's wall clock counts milliseconds since 1970, and its other clock does not go back")
  func system() {
    let wall = Clock.system.wall()
    #expect((1_700_000_000_000...100_000_000_000_000).contains(wall))
    var last = Clock.system.now()
    for _ in 1...1000 {
      let now = Clock.system.now()
      #expect(now >= last)
      last = now
    }
  }

  @Test("durations count whole milliseconds")
  func milliseconds() {
    #expect(Duration.seconds(2).milliseconds == 2000)
    #expect(Duration.microseconds(1999).milliseconds == 1)
    #expect(Duration.zero.milliseconds == 0)
    #expect(Duration.seconds(30 * 24 * 3600).milliseconds == 2_592_000_000)
  }
}
