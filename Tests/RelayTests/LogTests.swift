import Testing

@testable import Relay

@Suite("Log")
struct LogTests {
  @Test("a line is level, event and fields in their order, plain values bare")
  func plain() {
    #expect(
      Log.line(.warning, "started", ["host": "api.push.apple.com:443", "count": "3", "path": "/a/b-c_d.db"])
        == "level=warning event=started host=api.push.apple.com:443 count=3 path=/a/b-c_d.db")
  }

  @Test(
    "what could be taken for something else is quoted and escaped",
    arguments: [
      ("", "\"\""), ("two words", "\"two words\""), ("a=b", "\"a=b\""), ("say \"x\"", "\"say \\\"x\\\"\""),
      ("back\\ slash", "\"back\\\\ slash\""), ("line\nend", "\"line\\nend\""), ("\r\n", "\"\\r\\n\""),
      ("tab\t", "\"tab\\t\""), ("nul\0", "\"nul\\u{0}\""), ("\u{1b}[31mred", "\"\\u{1b}[31mred\""),
      ("\u{7f}", "\"\\u{7f}\""), ("\u{9b}0m", "\"\\u{9b}0m\""), ("Grüße", "\"Grüße\""), ("👩‍👩‍👧", "\"👩‍👩‍👧\""),
    ])
  func quoted(value: String, expected: String) {
    #expect(Log.quoted(value) == expected)
  }

  @Test(
    "nothing that breaks a line or turns its direction goes through",
    arguments: [
      0x85, 0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0x200e,
      0x200f,
      0x061c,
    ] as [UInt32])
  func directions(scalar: UInt32) throws {
    let scalar = try #require(Unicode.Scalar(scalar))
    #expect(Log.quoted("a\(scalar)b") == "\"a\\u{\(String(scalar.value, radix: 16))}b\"")
  }

  @Test("an event is escaped like any value")
  func event() {
    #expect(Log.line(.error, "evil\nlevel=debug", [:]) == "level=error event=\"evil\\nlevel=debug\"")
  }

  @Test("levels are ordered as syslog's priorities are")
  func levels() {
    #expect(Log.Level.allCases.map(\.rawValue) == [3, 4, 5, 6, 7])
    #expect(Log.Level.error < .debug)
    #expect(Log.Level.allCases.map(\.word) == ["error", "warning", "notice", "info", "debug"])
  }
}
