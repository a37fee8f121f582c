import Testing

@testable import nudged_bench

@Suite struct OptionsTests {
  private func read(_ words: String...) throws(Trouble) -> Options? {
    if case .run(let options) = try Options.read(words[...]) { return options }
    return nil
  }

  @Test func everythingIsMeasuredUnlessSomethingIsNamed() throws {
    #expect(try read()?.only.count == Measurement.all.count)
    #expect(try read("--only", "idle,backlog")?.only.map(\.name) == ["idle", "backlog"])
  }

  @Test func allSizesFollowTheBacklog() throws {
    let sizes = try #require(try read("--quick", "--rows", "10", "--runs", "2")).sizes
    #expect(sizes.rows == 10 && sizes.runs == 2 && sizes.commits == 10)
    #expect(sizes.histories == [50] && sizes.pending == 50)
    #expect(Sizes.full.histories == [1_000_000, 10_000_000] && Sizes.full.pending == 1_000_000)
  }

  @Test(arguments: [["--rows", "0"], ["--rows"], ["--only", "nothing"], ["--fast"]])
  func whatCannotBeReadIsRefusedByName(words: [String]) {
    let trouble = #expect(throws: Trouble.self) { _ = try Options.read(words[...]) }
    #expect(trouble?.description.contains(words == ["--only", "nothing"] ? "nothing" : words[0]) ?? false)
  }
}
