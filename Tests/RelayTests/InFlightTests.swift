import APNs
import Testing

@testable import Relay

@Suite("InFlightTable")
struct InFlightTests {
  let bench: Bench

  init() throws { bench = try Bench() }

  private func entry(_ attempt: Int64) -> InFlight {
    InFlight(
      attempt: attempt, nudge: 1, apnsID: PushID(randomHigh: 0, randomLow: 0), startedAt: 0,
      started: bench.start,
      link: bench.link(), host: 0, topic: 0, keyGeneration: 1, tokenID: 1, registeredAt: 0, environment: nil,
      isProven: false)
  }

  @Test("what was put in comes out once, by its tag; foreign tags find nothing")
  func once() {
    var table = InFlightTable()
    #expect(table.isEmpty)
    let tags = (1...5).map { table.insert(entry($0)) }
    #expect(Set(tags).count == 5)
    #expect(table.count == 5)
    #expect(table.remove(tags[2])?.attempt == 3)
    #expect(table.remove(tags[2]) == nil)
    #expect(table.remove(99) == nil)
    #expect(table.remove(.max) == nil)
    #expect(table.count == 4)
  }

  @Test("places are reused, so that the table is as large as the most that was ever on its way")
  func reuse() {
    var table = InFlightTable()
    for attempt in 1...1000 as ClosedRange<Int64> {
      let tag = table.insert(entry(attempt))
      #expect(tag < 2)
      let other = table.insert(entry(-attempt))
      #expect(table.remove(tag)?.attempt == attempt)
      #expect(table.remove(other)?.attempt == -attempt)
    }
    #expect(table.isEmpty)
  }

  @Test("the oldest attempt is the lowest id still on its way")
  func oldest() {
    var table = InFlightTable()
    #expect(table.oldestAttempt == nil)
    let tags = ([7, 3, 9] as [Int64]).map { table.insert(entry($0)) }
    #expect(table.oldestAttempt == 3)
    _ = table.remove(tags[1])
    #expect(table.oldestAttempt == 7)
    #expect(Set(table.removeAll().map(\.attempt)) == [7, 9])
    #expect(table.isEmpty)
    #expect(table.oldestAttempt == nil)
    #expect(table.remove(tags[0]) == nil)
  }
}
