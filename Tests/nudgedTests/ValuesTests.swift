import Relay
import Testing

@testable import nudged

@Suite("Values")
struct ValuesTests {
  private func value(_ text: String) -> Given.Value {
    Given.Value(text: text, origin: "--flag", exitCode: .usage)
  }

  private func message(_ body: () throws(Failure) -> Void) -> String {
    do throws(Failure) {
      try body()
      return ""
    } catch {
      return error.message
    }
  }

  @Test(
    "durations have a whole number and a unit",
    arguments: [
      ("500ms", 500), ("0s", 0), ("30s", 30_000), ("10m", 600_000), ("8h", 28_800_000),
      ("30d", 2_592_000_000),
      ("007s", 7000), ("1000d", 86_400_000_000),
    ] as [(String, Int64)])
  func durations(text: String, milliseconds: Int64) {
    #expect(Duration(setting: text) == .milliseconds(milliseconds))
    #expect(Duration(setting: text)?.milliseconds == milliseconds)
  }

  @Test(
    "anything else is no duration",
    arguments: [
      "", "s", "ms", "5", "5 s", " 5s", "5s ", "5S", "5min", "-5s", "+5s", "1.5h", "1h30m", "٣s", "1e3s",
      "5w",
    ])
  func noDurations(text: String) {
    #expect(Duration(setting: text) == nil)
  }

  @Test(
    "a duration is written so that it reads the same",
    arguments: [0, 1, 999, 1000, 1500, 60_000, 90_000, 3_600_000, 86_400_000] as [Int64])
  func written(milliseconds: Int64) {
    let duration = Duration.milliseconds(milliseconds)
    #expect(Duration(setting: duration.setting) == duration)
  }

  @Test("times are milliseconds, or from now")
  func moments() throws {
    #expect(try value("1790000000000").moment() == .absolute(1_790_000_000_000))
    #expect(try value("0").moment() == .absolute(0))
    #expect(try value("+10m").moment() == .fromNow(.seconds(600)))
    #expect(try value("+10m").moment().resolved(now: 5) == 600_005)
    for text in ["tomorrow", "+10", "+", "2026-11-30", "1790000000000.5", "", "10m"] {
      #expect(
        message { () throws(Failure) in _ = try value(text).moment() }.contains("is no time"), "\(text)")
    }
  }

  @Test(
    "hosts are a name or an address, and a port",
    arguments: [
      ("https://api.push.apple.com", "api.push.apple.com", 443),
      ("https://localhost:8443", "localhost", 8443),
      ("HTTPS://API.Push.Apple.com", "api.push.apple.com", 443), ("https://127.0.0.1:1", "127.0.0.1", 1),
      ("https://[::1]", "::1", 443), ("https://[2001:DB8::1]:65535", "2001:db8::1", 65535),
    ] as [(String, String, UInt16)])
  func hosts(text: String, name: String, port: UInt16) throws {
    #expect(try HostURL.parse(value(text)) == HostURL(name: name, port: port))
  }

  @Test(
    "anything else is refused in words",
    arguments: [
      ("http://localhost", "TLS only"), ("api.push.apple.com", "write https://host"),
      ("", "write https://host"),
      ("ftp://x", "write https://host"), ("https://x/", "has a path"), ("https://x/3/device", "has a path"),
      ("https://x?y", "has a query"), ("https://x#y", "has a fragment"), ("https://u:p@x", "user name"),
      ("https://", "no host name"), ("https://:443", "no host name"), ("https://x:", "no port"),
      ("https://x:0", "no port"), ("https://x:65536", "no port"), ("https://x:-1", "no port"),
      ("https://x:+1", "no port"), ("https://x:https", "no port"), ("https://::1", "in brackets"),
      ("https://[::1", "not closed"), ("https://[::1]x", "only :port"), ("https://[x]", "no IPv6 address"),
      ("https://[127.0.0.1]", "no IPv6 address"), ("https://[]:1", "no IPv6 address"),
      ("https://a b", "no host name"), ("https://a..b", "no host name"), ("https://-a", "no host name"),
      ("https://bücher.example", "no host name"), ("https://a\r\nb", "no host name"),
    ])
  func noHosts(text: String, words: String) {
    let message = message { () throws(Failure) in _ = try HostURL.parse(value(text)) }
    #expect(message.contains(words), "\(message)")
    #expect(message.hasPrefix("--flag: "))
    #expect(!message.contains("u:p"), "a password is not repeated")
  }

  @Test(
    "ids come from Apple's file names only",
    arguments: [
      ("AuthKey_ABCDE12345.p8", "ABCDE12345"), ("/etc/nudged/AuthKey_ABCDE12345.p8", "ABCDE12345"),
      ("AuthKey_ABCDE1234.p8", nil), ("AuthKey_ABCDE12345.pem", nil), ("authkey_ABCDE12345.p8", nil),
      ("AuthKey_ABCDE12345.p8/x", nil), ("", nil), ("AuthKey_abcde12345.p8", nil),
      ("AuthKey_ABCDE12345 (1).p8", nil),
    ] as [(String, String?)])
  func fileNames(path: String, id: String?) {
    #expect(KeySettings.id(fromFileName: path) == id)
  }
}
