import Testing

@testable import nudged_bench

@Suite struct SampleTests {
  @Test func theMedianIsTheMiddleOne() {
    #expect(Sample([3, 1, 2]).median == 2)
    #expect(Sample([5]).median == 5)
  }

  @Test func aQuantileHasItsShareBelow() {
    let sample = Sample((1...1000).map(Double.init))
    #expect(sample.quantile(0.99) == 991)
    #expect(sample.quantile(1) == 1000)
  }

  @Test func nothingMeasuredIsZero() {
    #expect(Sample().median == 0)
  }
}
