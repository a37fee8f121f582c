import Foundation
import Relay
import Testing

@testable import nudged

@Suite("Run")
struct RunTests {
  private let folder: TemporaryFolder
  private let key: String
  /// The least that `run` needs.
  private let least: [String]

  init() throws {
    folder = try TemporaryFolder()
    key = try folder.write("AuthKey_KEY4567890.p8", "a key")
    least = ["--database", "a.db", "--team-id", "TEAM567890", "--key-file", key]
  }

  private func parse(_ arguments: [String], _ environment: [String: String] = [:]) throws(Failure) -> Run {
    try Run.parse(Given(.run, arguments: arguments, environment: environment))
  }

  @Test("what is not given has the documented default")
  func defaults() throws {
    let run = try parse(least)
    let configuration = run.configuration
    #expect(configuration.database == "a.db")
    #expect(configuration.teamID == "TEAM567890")
    #expect(configuration.hosts.map(\.name) == ["api.push.apple.com", "api.sandbox.push.apple.com"])
    #expect(configuration.hosts.map(\.port) == [443, 443])
    #expect(configuration.hosts.map(\.environment.rawValue) == ["production", "sandbox"])
    #expect(configuration.expireAfter == .seconds(3600))
    #expect(configuration.storeFor == .seconds(24 * 3600))
    #expect(configuration.retain == .seconds(30 * 24 * 3600))
    #expect(configuration.pollInterval == .seconds(1))
    #expect(configuration.answerTimeout == .seconds(30))
    #expect(configuration.stopTimeout == .seconds(5))
    #expect(configuration.connections == 4)
    #expect(configuration.caFile == nil)
    #expect(!configuration.drain)
    #expect(run.logLevel == .info)
  }

  @Test("the defaults in the help are those that hold")
  func documentedDefaults() throws {
    let configuration = try parse(least).configuration
    let fields: [(String, Duration)] = [
      ("expire-after", configuration.expireAfter), ("store-for", configuration.storeFor),
      ("retain", configuration.retain), ("poll-interval", configuration.pollInterval),
      ("answer-timeout", configuration.answerTimeout), ("stop-timeout", configuration.stopTimeout),
    ]
    for (name, duration) in fields {
      let initial = Option.all.first { $0.isSetting && $0.name == name }?.initial
      #expect(initial.flatMap { Duration(setting: $0) } == duration, "\(name)")
    }
  }

  @Test("each setting reaches its field, by flag and by variable", arguments: [true, false])
  func fields(byFlag: Bool) throws {
    let ca = try folder.write("ca.pem", "a root")
    let settings = [
      "database": "b.db", "key-file": key, "key-id": "OTHER67890", "team-id": "TEAM567891",
      "production-url": "https://127.0.0.1:8443", "sandbox-url": "https://[::1]:8444", "ca-file": ca,
      "expire-after": "2h", "store-for": "3h", "retain": "4d", "poll-interval": "500ms",
      "answer-timeout": "6s", "stop-timeout": "0s", "connections": "64", "log-level": "debug",
    ]
    let run =
      byFlag
      ? try parse(settings.flatMap { ["--\($0)", $1] } + ["--drain"])
      : try parse(
        ["--drain"],
        Dictionary(
          uniqueKeysWithValues: settings.map {
            ("NUDGED_" + $0.uppercased().replacingOccurrences(of: "-", with: "_"), $1)
          }))
    let configuration = try run.complete()
    #expect(configuration.database == "b.db")
    #expect(configuration.teamID == "TEAM567891")
    #expect(configuration.hosts.map(\.name) == ["127.0.0.1", "::1"])
    #expect(configuration.hosts.map(\.port) == [8443, 8444])
    #expect(configuration.hosts.map(\.key?.id) == ["OTHER67890", "OTHER67890"])
    #expect(configuration.caFile == ca)
    #expect(configuration.expireAfter == .seconds(2 * 3600))
    #expect(configuration.storeFor == .seconds(3 * 3600))
    #expect(configuration.retain == .seconds(4 * 24 * 3600))
    #expect(configuration.pollInterval == .milliseconds(500))
    #expect(configuration.answerTimeout == .seconds(6))
    #expect(configuration.stopTimeout == .zero)
    #expect(configuration.connections == 64)
    #expect(configuration.drain)
    #expect(run.logLevel == .debug)
  }

  // MARK: Keys

  @Test("one key serves both hosts, its id read from Apple's file name")
  func sharedKey() throws {
    let hosts = try parse(least).complete().hosts
    #expect(hosts.map(\.key?.id) == ["KEY4567890", "KEY4567890"])
    #expect(hosts[0].key == hosts[1].key)
    #expect(hosts[0].key?.content == Array("a key".utf8))
    #expect(hosts[0].key?.file == key)
  }

  @Test("a key of one host leaves the other without")
  func sandboxOnly() throws {
    let hosts = try parse([
      "--database", "a.db", "--team-id", "TEAM567890", "--sandbox-key-file", key,
    ]).complete().hosts
    #expect(hosts.map(\.key?.id) == [nil, "KEY4567890"])
  }

  @Test("a key of one host goes before the shared one")
  func override() throws {
    let other = try folder.write("other.p8", "another key")
    let hosts = try parse(
      least + ["--production-key-file", other, "--production-key-id", "OTHER67890"]
    ).complete().hosts
    #expect(hosts.map(\.key?.id) == ["OTHER67890", "KEY4567890"])
    #expect(hosts.map(\.key?.file) == [other, key])
  }

  @Test("half a configuration names every missing piece at once")
  func missing() {
    expectFailure(
      ["run"], .configuration, "--database (or NUDGED_DATABASE)", "--team-id (or NUDGED_TEAM_ID)",
      "--key-file (or NUDGED_KEY_FILE)", "nudged help run")
    expectFailure(
      ["run", "--key-id", "KEY4567890"], .configuration, "--database", "--team-id", "--key-file",
      "to which --key-id belongs")
    expectFailure(
      ["run", "--key-file", "renamed.p8"], .configuration, "--database", "--team-id",
      "--key-id (or NUDGED_KEY_ID), since renamed.p8 is not named AuthKey_<id>.p8")
    expectFailure(
      ["run"] + least, environment: ["NUDGED_SANDBOX_KEY_ID": "KEY4567890"], .configuration,
      "--sandbox-key-file (or NUDGED_SANDBOX_KEY_FILE), to which NUDGED_SANDBOX_KEY_ID belongs")
    expectFailure(["run", "--team-id", "TEAM567890", "--key-file", key], .configuration, "--database")
  }

  @Test("a lacking piece is not also asked for when it is there")
  func onlyWhatIsMissing() {
    let failure = failure(["run", "--database", "a.db", "--key-file", key])
    #expect(failure?.message.contains("--team-id") == true)
    #expect(failure?.message.contains("--database") == false)
    #expect(failure?.message.contains("--key-file") == false)
  }

  @Test(
    "ids are ten capital letters and digits",
    arguments: ["team567890", "TEAM56789", "TEAM5678901", "TEAM 67890", "TÉAM56789"])
  func shapes(id: String) {
    expectFailure(
      ["run", "--database", "a", "--key-file", key, "--team-id", id], .usage, "10 characters A-Z 0-9")
    expectFailure(["run"] + least + ["--key-id", id], .usage, "--key-id", "10 characters A-Z 0-9")
    expectFailure(["run"] + least, environment: ["NUDGED_KEY_ID": id], .configuration, "NUDGED_KEY_ID")
  }

  @Test("swapped ids are recognised")
  func swapped() {
    expectFailure(
      ["run", "--database", "a", "--key-file", key, "--team-id", "KEY4567890"], .configuration,
      "KEY4567890", "team id", "AuthKey_KEY4567890.p8")
    expectFailure(
      ["run", "--database", "a", "--key-file", key, "--team-id", "KEY4567890", "--key-id", "TEAM567890"],
      .configuration, "look swapped")
  }

  @Test("a key file that cannot be used is named with its fault")
  func keyFiles() throws {
    let large = try folder.write("AuthKey_LARGE67890.p8", String(repeating: "x", count: 64 * 1024 + 1))
    let empty = try folder.write("AuthKey_EMPTY67890.p8", "")
    let directory = folder.file("AuthKey_FOLDER7890.p8")
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    let fifo = folder.file("AuthKey_FIFO567890.p8")
    #expect(mkfifo(fifo, 0o600) == 0)
    let faults = [
      (folder.file("AuthKey_MISSING890.p8"), "No such file or directory"), (empty, "is empty"),
      (large, "larger than 64 KiB"), (directory, "is a directory"), (fifo, "is not a regular file"),
    ]
    for (file, words) in faults {
      expectFailure(
        ["run", "--database", "a", "--team-id", "TEAM567890", "--key-file", file], .configuration,
        "--key-file \(file): ", words)
      expectFailure(
        ["run", "--database", "a", "--team-id", "TEAM567890"],
        environment: ["NUDGED_SANDBOX_KEY_FILE": file], .configuration,
        "NUDGED_SANDBOX_KEY_FILE \(file): ", words)
    }
    _ = try folder.write("AuthKey_LARGE67890.p8", String(repeating: "x", count: 64 * 1024))
    #expect(
      try parse(["--database", "a", "--team-id", "TEAM567890", "--key-file", large])
        .complete().hosts[0].key?.content.count == 64 * 1024)
  }

  @Test("a trust root that cannot be read is named")
  func caFile() {
    expectFailure(
      ["run"] + least + ["--ca-file", "/no/ca.pem"], .configuration, "--ca-file /no/ca.pem: No such file")
    expectFailure(
      ["run"] + least, environment: ["NUDGED_CA_FILE": folder.path], .configuration,
      "NUDGED_CA_FILE \(folder.path): is a directory")
  }

  // MARK: Ranges

  @Test(
    "values out of range are refused with the range",
    arguments: [
      ("connections", "0", "1 to 64"), ("connections", "65", "1 to 64"), ("connections", "-1", "1 to 64"),
      ("connections", "four", "no whole number"), ("connections", "4.0", "no whole number"),
      ("connections", "99999999999999999999", "no whole number"), ("expire-after", "0s", "1ms to 365d"),
      ("expire-after", "366d", "1ms to 365d"), ("store-for", "0s", "1s to 30d"),
      ("store-for", "31d", "1s to 30d"), ("retain", "0d", "1ms to 3650d"),
      ("poll-interval", "1ms", "10ms to 1h"), ("poll-interval", "61m", "10ms to 1h"),
      ("answer-timeout", "0s", "10ms to 10m"), ("stop-timeout", "11m", "0s to 10m"),
      ("stop-timeout", "-5s", "is no duration"), ("stop-timeout", "5", "needs a unit"),
      ("stop-timeout", "99999999999999999999d", "is no duration"),
      ("stop-timeout", "9223372036854775807d", "is no duration"),
      ("log-level", "loud", "error, warning, notice"),
      ("log-level", "INFO", "is no level"),
    ])
  func ranges(name: String, value: String, words: String) {
    expectFailure(["run"] + least + ["--\(name)=\(value)"], .usage, "--\(name): \(value)", words)
    let variable = "NUDGED_" + name.uppercased().replacingOccurrences(of: "-", with: "_")
    expectFailure(
      ["run"] + least, environment: [variable: value], .configuration, "\(variable): \(value)", words)
  }
}
