import Foundation
import Testing

/// A host that sends nonsense, floods or bombs: memory stays bounded, the connection goes, the other host flows, and
/// the rows go when the host behaves.
@Suite("Hostile peers")
struct HostilePeerTests {
  struct Attack: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// What a connection begins with; the attack itself where nothing needs a stream.
    var hello: @Sendable () -> [RawStep] = { [.settings([])] }
    /// What is done with the first request of a connection.
    var steps: @Sendable () -> [RawStep] = { [] }
    /// The connection may live: nothing that came was against the rules.
    var isLegal = false
    /// All the same, so much of it is given up.
    var isEndless = false
  }

  static let attacks: [Attack] = [
    Attack(
      testDescription: "another protocol",
      hello: { [.bytes(hex: "485454502f312e3120343030204261640d0a0d0a")] }),
    Attack(
      testDescription: "a frame longer than allowed",
      hello: { [.settings([]), .bytes(hex: "ffffff0000000000010000")] }),
    Attack(testDescription: "SETTINGS of a bad length", hello: { [.frame(4, stream: 0, hex: "0003")] }),
    Attack(testDescription: "an initial window beyond 2^31", hello: { [.settings([(4, 0xffff_ffff)])] }),
    Attack(testDescription: "DATA on stream 0", steps: { [.frame(0, stream: 0, hex: "00")] }),
    Attack(
      testDescription: "HEADERS on a stream of the peer's",
      steps: { [.headers([(":status", "200")], end: true, stream: 2)] }),
    Attack(
      testDescription: "HEADERS on a stream not opened",
      steps: { [.headers([(":status", "200")], end: true, stream: 4001)] }),
    Attack(testDescription: "a server push", steps: { [.frame(5, flags: 4, hex: "00000002828684")] }),
    Attack(
      testDescription: "a window update of zero on the connection",
      steps: { [.frame(8, stream: 0, hex: "00000000")] }),
    Attack(
      testDescription: "a window beyond its limit",
      steps: { [.repeated(3, [.frame(8, stream: 0, hex: "7fffffff")])] }),
    Attack(
      testDescription: "broken header compression", steps: { [.frame(1, flags: 4, hex: "ffffffffffff")] }),
    Attack(testDescription: "CONTINUATION without HEADERS", steps: { [.frame(9, flags: 4, hex: "88")] }),
    Attack(testDescription: "padding longer than its frame", steps: { [.frame(0, flags: 8, hex: "ff00")] }),
    Attack(
      testDescription: "a flood of SETTINGS", steps: { [.flood(seconds: 3, [.settings([(3, 100)])])] }),
    Attack(
      testDescription: "a flood of PING",
      steps: { [.flood(seconds: 3, [.frame(6, stream: 0, hex: "0000000000000000")])] }),
    Attack(
      testDescription: "a flood of CONTINUATION",
      steps: {
        [
          .headers([(":status", "200")], endHeaders: false),
          .flood(seconds: 3, [.frame(9, hex: "00" + "01" + "61" + "01" + "62")]),
        ]
      }),
    Attack(
      testDescription: "a flood of empty CONTINUATION",
      steps: { [.headers([(":status", "200")], endHeaders: false), .flood(seconds: 3, [.frame(9)])] }),
    Attack(
      testDescription: "a header of megabytes",
      steps: {
        [
          .headers([(":status", "200")], endHeaders: false),
          .flood(seconds: 3, [.frame(9, hex: "0001617fff7c" + String(repeating: "62", count: 16_000))]),
        ]
      }),
    Attack(
      testDescription: "a bomb of header compression",
      // An entry of 4,000 bytes in the table, and then that entry by its index, 16,000 times a frame.
      steps: {
        [
          .frame(1, hex: "88" + "40" + "0161" + "7fa11e" + String(repeating: "62", count: 4000)),
          .flood(seconds: 3, [.frame(9, hex: String(repeating: "be", count: 16_000))]),
        ]
      }),
    Attack(
      testDescription: "a flood of empty DATA",
      steps: { [.headers([(":status", "200")]), .flood(seconds: 30, [.data()])] },
      isLegal: true, isEndless: true),
    Attack(
      testDescription: "a flood of empty DATA without an answer", steps: { [.flood(seconds: 30, [.data()])] },
      isLegal: true),
    Attack(
      testDescription: "a flood of RST_STREAM on what is closed",
      steps: { [.answer(200), .flood(seconds: 3, [.reset(8)])] },
      isLegal: true),
    Attack(
      testDescription: "a flood of frames of an unknown type",
      steps: { [.flood(seconds: 30, [.frame(0xbe, stream: 0, hex: "00")])] }, isLegal: true, isEndless: true),
    Attack(
      testDescription: "a flood of PRIORITY",
      steps: { [.flood(seconds: 30, [.frame(2, stream: 1, hex: "0000000010")])] },
      isLegal: true, isEndless: true),
    Attack(
      testDescription: "a flood of WINDOW_UPDATE", steps: { [.flood(seconds: 3, [.window(1)])] },
      isLegal: true),
    Attack(
      testDescription: "a body without end",
      steps: { [.headers([(":status", "400")]), .flood(seconds: 30, [.data(size: 16_384)])] }, isLegal: true,
      isEndless: true),
    Attack(
      testDescription: "1xx without end", steps: { [.flood(seconds: 3, [.headers([(":status", "103")])])] },
      isLegal: true),
    Attack(
      testDescription: "a GOAWAY of 16 KiB",
      steps: { [.frame(7, stream: 0, hex: "0000000000000000" + String(repeating: "41", count: 16_000))] }),
  ]

  @Test(
    "is survived: bounded memory, the other host flows, and the rows go when it behaves", arguments: attacks)
  func attack(_ attack: Attack) async throws {
    try await scenario { s in
      let production = try await s.peer(
        .raw, RawScript(hello: attack.hello(), rules: [RawRule(attack.steps())]))
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1), environment: "production")
      try s.backend.register("phone-2", token: token(2), environment: "sandbox")
      let worker = try s.worker(production: production, sandbox: sandbox, ["--answer-timeout", "2s"])
      try await s.backend.settled(try s.backend.nudge(["title": "T", "device_id": "phone-2"]))
      let before = memory(worker)
      let ids = try (1...3).map { _ in try s.backend.nudge(["title": "T", "device_id": "phone-1"]) }
      try await eventually("the attack begins", state: { worker.errors }) {
        try !production.events(attack.isLegal ? "request" : "closed").isEmpty
          || worker.errors.contains("host cannot be reached") || worker.errors.contains("connection closed")
      }
      // The other host flows meanwhile.
      for _ in 1...5 {
        let other = try s.backend.nudge(["title": "T", "device_id": "phone-2"])
        try await s.backend.settled(other, within: .seconds(10))
        #expect(try s.backend.outcomes(other) == ["accepted"])
      }
      if attack.isLegal {
        // No request stays open for longer than its time, however much there is to read.
        try await eventually("the first row has an end", within: .seconds(6), state: { worker.errors }) {
          try s.backend.count(
            "select count(*) from nudge_attempt where device_id = 'phone-1' and outcome is not null") >= 1
        }
      }
      if attack.isEndless {
        try await eventually("the connection is given up", within: .seconds(30), state: { worker.errors }) {
          worker.errors.contains("sends much and answers nothing")
        }
      }
      try production.script(RawScript())
      for id in ids { try await s.backend.settled(id, within: .seconds(60)) }
      // A flood that has begun may cost a few more.
      var last: [String] = []
      for _ in 1...10 where last != ["accepted"] {
        let id = try s.backend.nudge(["title": "T", "device_id": "phone-1"])
        try await s.backend.settled(id, within: .seconds(60))
        last = try s.backend.outcomes(id)
      }
      #expect(last == ["accepted"], "\(worker.errors.suffix(3000))")
      let after = memory(worker)
      #expect(after.peak - before.peak < 24_000, "\(before) then \(after) KiB")
      #expect(worker.isRunning)
      #expect(worker.errors.count < 60_000, "\(worker.errors.count) bytes of log")
      // Each row was requested at most three times, and only what was provably not processed more than once.
      #expect(
        try s.backend.count(
          "select count(*) from (select 1 from nudge_attempt where may_have_buzzed = 1 group by nudge_id having count(*) > 1)"
        ) == 0)
    }
  }

  /// Resident memory now and at its highest, in KiB.
  private func memory(_ child: Child) -> (now: Int, peak: Int) {
    let status = (try? String(contentsOfFile: "/proc/\(child.pid)/status", encoding: .utf8)) ?? ""
    func field(_ name: String) -> Int {
      let line = status.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
      return line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
    }
    return (field("VmRSS"), field("VmHWM"))
  }
}
