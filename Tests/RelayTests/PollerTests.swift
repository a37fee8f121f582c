import Foundation
import Testing

@testable import Relay

@Suite("Poller")
struct PollerTests {
  private func tags(_ poller: Poller, _ timeout: Duration?) -> [UInt64] {
    var tags: [UInt64] = []
    poller.wait(timeout) { tags.append($0) }
    return tags.sorted()
  }

  @Test("what is readable reports with its tag, and only that")
  func readable() throws {
    let poller = try Poller()
    let (first, second) = (Pipe(), Pipe())
    poller.watch(first.fileHandleForReading.fileDescriptor, tag: 7)
    poller.watch(second.fileHandleForReading.fileDescriptor, tag: .max)
    #expect(tags(poller, .zero) == [])
    try second.fileHandleForWriting.write(contentsOf: Data([1]))
    #expect(tags(poller, nil) == [.max])
    // Level-triggered: it reports until it is read.
    #expect(tags(poller, .seconds(5)) == [.max])
    try first.fileHandleForWriting.write(contentsOf: Data([1]))
    #expect(tags(poller, .seconds(5)) == [7, .max])
    _ = try second.fileHandleForReading.read(upToCount: 1)
    #expect(tags(poller, .seconds(5)) == [7])
  }

  @Test("it waits as long as it was told, in fractions of a millisecond too, and a past time not at all")
  func timeouts() throws {
    let poller = try Poller()
    let before = ContinuousClock.now
    #expect(tags(poller, .microseconds(1500)) == [])
    let between = ContinuousClock.now
    #expect(between - before >= .microseconds(1500))
    #expect(tags(poller, .seconds(-3)) == [])
    #expect(ContinuousClock.now - between < .seconds(2))
  }

  @Test("more descriptors than fit one call are all reported in the end")
  func many() throws {
    let poller = try Poller()
    let pipes = (0..<100).map { _ in Pipe() }
    for (index, pipe) in pipes.enumerated() {
      poller.watch(pipe.fileHandleForReading.fileDescriptor, tag: UInt64(index))
      try pipe.fileHandleForWriting.write(contentsOf: Data([1]))
    }
    var found: Set<UInt64> = []
    for _ in 1...10 { found.formUnion(tags(poller, .zero)) }
    #expect(found.count == 100)
  }
}
