import Relay
import Testing

@testable import nudged

@Suite("WallTime")
struct WallTimeTests {
  @Test(
    "dates and times are read in UTC unless they say otherwise",
    arguments: [
      ("2026-11-30", 1_795_996_800_000), ("2026-11-30T10:00", 1_796_032_800_000),
      ("2026-11-30 10:00:15Z", 1_796_032_815_000), ("2026-11-30T10:00:15.250Z", 1_796_032_815_250),
      ("2026-11-30T10:00+02:00", 1_796_025_600_000), ("2026-11-30T10:00-00:30", 1_796_034_600_000),
      ("2028-02-29", 1_835_395_200_000), ("1970-01-01T00:00Z", 0), ("1969-12-31", -86_400_000),
    ] as [(String, Int64)])
  func read(text: String, milliseconds: Int64) {
    #expect(WallTime.parse(text) == milliseconds)
  }

  @Test(
    "anything else is no time",
    arguments: [
      "", "today", "2026", "2026-11", "2026-1-30", "26-11-30", "2026-11-31", "2027-02-29", "2026-13-01",
      "2026-00-10",
      "2026-11-30T", "2026-11-30T10", "2026-11-30T24:00", "2026-11-30T10:60", "2026-11-30T10:00:60",
      "2026-11-30T10:00:00.1", "2026-11-30T10:00:00.1234", "2026-11-30T10:00z", "2026-11-30T10:00+02",
      "2026-11-30 10:00 ", " 2026-11-30", "2026-11-30Z", "2026/11/30", "٢٠٢٦-11-30", "2026-11-30T10:00+24:00",
    ])
  func refused(text: String) {
    #expect(WallTime.parse(text) == nil)
  }

  @Test("a time is written so that it reads the same, to the second")
  func written() {
    #expect(WallTime.text(1_796_032_815_250) == "2026-11-30T10:00:15Z")
    #expect(WallTime.parse(WallTime.text(1_796_032_815_000)) == 1_796_032_815_000)
  }

  private func value(_ text: String) -> Given.Value {
    Given.Value(text: text, origin: "--since", exitCode: .usage)
  }

  @Test("a moment in the past is a time ago, a date, or milliseconds")
  func pastMoments() throws {
    #expect(try value("24h").pastMoment().resolved(now: 100_000_000) == 13_600_000)
    #expect(try value("2026-11-30").pastMoment() == .absolute(1_795_996_800_000))
    #expect(try value("1790000000000").pastMoment() == .absolute(1_790_000_000_000))
    for (text, words) in [
      ("1790000000", "are these seconds? 24 hours ago is 24h"), ("soon", "soon is no time: write 24h (ago)"),
      ("+10m", "is no time"), ("-24h", "is no time"),
    ] {
      do throws(Failure) {
        _ = try value(text).pastMoment()
        Issue.record("\(text) is taken")
      } catch {
        #expect(error.message.hasPrefix("--since: ") && error.message.contains(words), "\(error.message)")
        #expect(error.exitCode == .usage)
      }
    }
  }
}
