import Testing

@testable import nudged_bench

@Suite struct TableTests {
  @Test(arguments: [
    (0, "0"), (0.0421, "0.042"), (8.456, "8.46"), (32.24, "32.2"), (999.6, "1,000"), (105_000, "105,000"),
    (1_234_567, "1,234,567"),
  ])
  func aFigureHasAsManyDigitsAsItIsWorth(value: Double, text: String) {
    #expect(Table.figure(value) == text)
  }

  @Test(arguments: [(1, "1"), (1.1, "1.1"), (1.25, "1.25"), (0.8, "0.8"), (100, "100")])
  func aBoundIsWrittenAsItWasChosen(value: Double, text: String) {
    #expect(Table.plain(value) == text)
  }

  @Test func aTargetIsHeldAgainstTheValue() {
    #expect(
      Line("idle", 11.9, "MiB", .atMost(12)).cells == ["idle", "11.9 MiB", "", "", "at most 12 MiB", "yes"])
    #expect(Line("idle", 12.1, "MiB", .atMost(12)).cells.last == "no")
  }

  @Test func aTargetIsHeldAgainstTheRatioWhereThereIsAReference() {
    func line(_ value: Double) -> Line {
      Line("rate", value, "nudges/s", of: Line.Reference(name: "ceiling", value: 1000), .atLeast(0.8))
    }
    #expect(line(810).cells == ["rate", "810 nudges/s", "ceiling 1,000", "0.81", "at least 0.8", "yes"])
    #expect(line(790).cells.last == "no")
  }

  @Test func everyRowIsAsWideAsTheOthers() {
    let table = Table(lines: [Line("a", 1, "ms", .atMost(1)), Line("something longer", 12_345, "")])
    let rows = table.text.split(separator: "\n")
    #expect(rows.count == 4)
    #expect(Set(rows.map(\.count)).count == 1)
    #expect(rows[1].allSatisfy { "|-: ".contains($0) })
  }
}
