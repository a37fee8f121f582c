import Foundation
import Testing

@Suite("Hostile text, tokens and tables")
struct PayloadFaultTests {
  /// The columns of the outbox that hold text, and what they need around them.
  private static let textColumns = [
    "kind", "event", "record_id", "recipient", "surface", "device_id", "conversation_id", "title", "subtitle",
    "body", "aps", "data", "activity_id", "attributes_type", "attributes", "content_state", "collapse_id",
    "delivered_by", "dedupe_key",
  ]

  /// What is put into them, as the bytes of the value.
  enum Content: String, CaseIterable, CustomTestStringConvertible {
    case nul = "TEXT with a NUL inside"
    case broken = "TEXT that is no UTF-8"
    case truncated = "TEXT that ends within a character"
    case blob = "a BLOB of good UTF-8"
    case badBlob = "a BLOB of anything"

    var testDescription: String { rawValue }

    var value: Value {
      switch self {
      case .nul: .textBytes("68616c6600726573742d68616c66")
      case .broken: .textBytes("68616c66fffe68616c66")
      case .truncated: .textBytes("68616c66f09f98")
      case .blob: .blob("68616c66c3a9")
      case .badBlob: .blob("00ff80c0")
      }
    }

    /// The whole text, where it is one.
    var text: String? { self == .blob ? "halfé" : self == .nul ? "half\0rest-half" : nil }
  }

  @Test(
    "whatever bytes stand in a text column, the row is sent whole or is invalid, and the row behind is sent within a second",
    arguments: Content.allCases)
  func bytes(_ kind: Content) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let first = try s.backend.nudge(["title": "first"])
      try await s.backend.settled(first)
      var ids: [(String, Int64)] = []
      for column in Self.textColumns {
        let sql =
          column == "title"
          ? "insert into nudge_outbox (title) values (?)"
          : "insert into nudge_outbox (title, \(column)) values ('\(column)', ?)"
        try s.backend.run(sql, [kind.value])
        ids.append((column, try s.backend.value("select last_insert_rowid()").integer ?? 0))
      }
      let (_, committed) = try s.backend.transaction([
        .init("insert into nudge_outbox (title) values ('behind')")
      ])
      try await eventually("the row behind arrives") {
        try peer.requests().contains { $0.alert["title"] as? String == "behind" }
      }
      let behind = try #require(try peer.requests().first { $0.alert["title"] as? String == "behind" })
      #expect(behind.atMs - committed < 1000)
      for (column, id) in ids {
        try await eventually("\(column) is settled", state: { s.backend.describe(id) }) {
          try s.backend.state(id) != "pending" && !s.backend.outcomes(id).contains("open")
        }
        switch try s.backend.state(id) {
        case "invalid":
          #expect(try s.backend.row(id)["detail"].text?.contains(column) == true, "\(s.backend.describe(id))")
        case "unaddressed":
          #expect(["recipient", "surface", "device_id"].contains(column), "\(s.backend.describe(id))")
        case "attempted":
          #expect(try s.backend.outcomes(id) == ["accepted"])
        default:
          Issue.record("\(column): \(s.backend.describe(id))")
        }
      }
      // What is shown is whole.
      for request in try peer.requests() {
        let shown = [
          request.alert["title"], request.alert["subtitle"], request.alert["body"], request.aps["thread-id"],
        ].compactMap { $0 as? String }
        for text in shown where text.hasPrefix("half") { #expect(text == kind.text) }
        for header in request.headers ?? [] {
          #expect(header.last?.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f } == true, "\(header)")
        }
      }
    }
  }

  @Test(
    "each poison row has a reason of its own in few log lines, and the good row behind is sent within a second"
  )
  func poison() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge(["title": "first"])
      try await s.backend.settled(first)
      let lines = worker.errors.split(separator: "\n").count
      let deep = String(repeating: "[", count: 5000) + String(repeating: "]", count: 5000)
      let poisons: [KeyValuePairs<String, Value>] = [
        ["title": "T", "data": "not json"], ["title": "T", "data": "[]"], ["title": "T", "aps": #""x""#],
        ["title": "T", "data": .text(#"{"a":\#(deep)}"#)], ["title": "T", "data": #"{"aps":1}"#],
        ["title": "T", "kind": nil], ["title": "T", "kind": "fax"], ["title": nil],
        ["title": "T", "created_at": 1_790_000_000], ["title": "T", "body": .textBytes("6100")],
        ["title": "T", "priority": 11],
      ]
      var statements: [Backend.Statement] = []
      for _ in 1...20 {
        for poison in poisons {
          let names = poison.map(\.key).joined(separator: ", ")
          let marks = poison.map { _ in "?" }.joined(separator: ", ")
          statements.append(
            .init("insert into nudge_outbox (\(names)) values (\(marks))", poison.map(\.value)))
        }
      }
      statements.append(.init("insert into nudge_outbox (title) values ('behind')"))
      let (_, committed) = try s.backend.transaction(statements)
      let request = try #require(try await peer.waitForRequests(2).last)
      #expect(request.alert["title"] as? String == "behind")
      #expect(request.atMs - committed < 1000)
      try await eventually("all are settled") { try s.backend.states()["pending"] == nil }
      let reasons = try s.backend.run(
        "select detail, count(*) as count from nudge_outbox where state = 'invalid' group by detail")
      #expect(reasons.count == poisons.count, "\(reasons)")
      #expect(reasons.allSatisfy { $0["count"] == 20 }, "\(reasons)")
      #expect(worker.errors.split(separator: "\n").count < lines + 10, "\(worker.errors)")
    }
  }

  @Test("long texts in every script are cut between characters")
  func graphemes() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let parts = [
        "👨‍👩‍👧‍👦", "🇮🇸🇩🇪", "é̂̃", "क्षत्रिय", "👩🏽‍🚀", "한국어", "각", "ภาษาไทย", "நிலம்",
        "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "1️⃣", "ﷺ", "\r\n", "مُحَمَّد", "a",
      ]
      // Shifted by one byte each, so that the limit falls on every place within a character.
      var texts: [String] = []
      for (index, part) in parts.enumerated() {
        for shift in 0..<8 {
          let mixed = part + (index % 2 == 0 ? "" : parts[(index + 1) % parts.count])
          texts.append(String(repeating: "x", count: shift * 3) + String(repeating: mixed, count: 5000))
        }
      }
      for text in texts { try s.backend.nudge(["title": "T", "body": .text(text)]) }
      try await s.drain(production: peer)
      let requests = try peer.requests()
      try #require(requests.count == texts.count)
      for (request, text) in zip(requests, texts) {
        let size = (request.bodyHex?.count ?? 0) / 2
        #expect(size <= 4096 && size > 3900, "\(size) for \(text.prefix(40))")
        let shown = try #require(request.alert["body"] as? String)
        #expect(shown.last == "…")
        let kept = Array(shown.dropLast())
        // Scalar by scalar: Swift holds canonically equivalent texts for equal.
        #expect(
          Array(String(kept).unicodeScalars) == Array(String(Array(text).prefix(kept.count)).unicodeScalars),
          "\(text.prefix(40))")
      }
    }
  }

  @Test("a token, topic or environment written past the view never reaches the wire malformed")
  func pastTheView() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let good = token(1)
      let bad: [Value] = [
        .text(good + "\n"), .text("\n" + good), "(null)", "null", "", " ", "../../../etc/passwd", "..", ".",
        .text(good + "/.."), .text("%2f" + good), .text("%2e%2e%2f"), .text(good + "?x=1"),
        .text(good + "#x"),
        .text(good.uppercased()), .text("c0ff ee00"), .text("<c0ffee00>"), "abc", "g0", "０１",
        .text(String(repeating: "a", count: 402)), .text(String(repeating: "a", count: 100_000)),
        .textBytes("6161006161"), .blob("00ff"), .blob(""), 123, .integer(-5), .real(1.5),
        .textBytes("6161ff"),
      ]
      let topics: [Value] = [
        "a\r\nx: y", "a b", "a\n", "a\r", "a\tb", "", " ", .blob("610d0a62"), .textBytes("610062"), "naïve",
        nil,
        .text(String(repeating: "t", count: 100_000)),
      ]
      for (index, value) in bad.enumerated() {
        try s.backend.register("bad-\(index)", token: token(1000 + index), surface: "bad-\(index)")
        try s.backend.run("update nudge_token set token = ? where device_id = 'bad-\(index)'", [value])
        try s.backend.nudge(["title": "bad", "surface": .text("bad-\(index)")])
      }
      for (index, value) in topics.enumerated() {
        try s.backend.register("topic-\(index)", token: token(2000 + index), surface: "topic-\(index)")
        try s.backend.run("update nudge_device set topic = ? where device_id = 'topic-\(index)'", [value])
        try s.backend.nudge(["title": "bad", "surface": .text("topic-\(index)")])
      }
      try s.backend.register("long", token: String(repeating: "ab", count: 80), surface: "long")
      try s.backend.nudge(["title": "long", "surface": "long"])
      try s.backend.register("phone-1", token: good)
      try s.backend.nudge(["title": "good"])
      try await s.drain(production: peer)
      #expect(try peer.events("protocol_error").isEmpty)
      #expect(
        try peer.requests().map { $0.header(":path") } == [
          "/3/device/" + String(repeating: "ab", count: 80), "/3/device/" + good,
        ])
      let states = try s.backend.states()
      #expect(states == ["invalid": bad.count + topics.count, "attempted": 2], "\(states)")
      let silent = try s.backend.run("select detail from nudge_outbox where state = 'invalid'")
        .filter {
          $0["detail"].text?.contains("token") != true && $0["detail"].text?.contains("topic") != true
        }
      #expect(silent.isEmpty, "\(silent)")
    }
  }

  @Test("collapse ids over 64 bytes or with bytes that no header may hold are replaced, each by its own")
  func collapseIDs() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let ids: [Value] = [
        .text(String(repeating: "é", count: 40)), .text(String(repeating: "k", count: 5000)), "a\rb", "a\nb",
        "a\r\n\r\nb", .textBytes("610062"), .textBytes("61ff"), .blob("ff00"), "\u{7f}", " ", "a b", 7,
        .real(0.5),
      ]
      for id in ids { try s.backend.nudge(["title": "T", "collapse_id": id]) }
      try s.backend.nudge(["title": "T", "collapse_id": ""])
      try await s.drain(production: peer)
      let requests = try peer.requests()
      try #require(requests.count == ids.count + 1)
      let sent = requests.prefix(ids.count).map { $0.header("apns-collapse-id") ?? "" }
      #expect(Set(sent).count == ids.count, "\(sent)")
      for id in sent {
        #expect((1...64).contains(id.utf8.count) && id.utf8.allSatisfy { (0x20...0x7e).contains($0) })
      }
    }
  }

  @Test(
    "whatever stands in nudge_device and nudge_token, the worker goes on, and each request is well-formed")
  func hostileTables() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let values: [Value] = [
        .blob(""), .blob("00ff"), .blob("70686f6e65"), "", "\0", "x",
        .text(String(repeating: "y", count: 1_000_000)),
        0, -1, .integer(.max), .integer(.min), .real(1e300), .real(-0.5), .textBytes("ff"),
        .textBytes("610062"),
        "owner", "phone", "production", "sandbox", "*",
      ]
      var number = 0
      for (table, columns) in [
        ("nudge_device", ["device_id", "recipient", "surface", "topic", "created_at", "updated_at"]),
        (
          "nudge_token",
          ["device_id", "kind", "scope", "token", "environment", "proven_at", "registered_at", "rejected_at"]
        ),
      ] {
        for column in columns {
          for value in values {
            number += 1
            try s.backend.register("victim-\(number)", token: token(number))
            try s.backend.run(
              "update or ignore \(table) set \(column) = ? where device_id = 'victim-\(number)'", [value])
          }
        }
      }
      // Orphans both ways.
      try s.backend.run(
        "insert into nudge_token (device_id, kind, token, registered_at) values ('nobody', 'alert', 'aa', 'soon')"
      )
      try s.backend.run("insert into nudge_device (device_id) values (x'0001')")
      let script = PeerScript(
        tokens: Dictionary(
          uniqueKeysWithValues: (1...number).map {
            (token($0), [Verdict.good, .dead, .wrong, .topic][$0 % 4])
          }))
      try peer.script(script)
      let worker = try s.worker(production: peer, sandbox: try await s.peer(.python, script))
      for surface in ["phone", "*"] {
        let id = try s.backend.nudge(["title": "all", "surface": .text(surface)])
        try await s.backend.settled(id, within: .seconds(60))
        #expect(try s.backend.outcomes(id).count > 100)
      }
      try s.backend.register("good", token: token(4000))
      let last = try s.backend.nudge(["title": "good", "device_id": "good"])
      try await s.backend.settled(last)
      #expect(try s.backend.outcomes(last) == ["accepted"])
      #expect(worker.isRunning)
      #expect(try peer.events("protocol_error").isEmpty)
      for request in try peer.requests() {
        #expect(request.token?.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) } == true)
        #expect((2...400).contains(request.token?.count ?? 0))
        for header in request.headers ?? [] {
          #expect(header.last?.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f } == true, "\(header)")
        }
      }
      // Every token that is dead is gone, whatever its other columns say.
      let dead = Set(
        try peer.requests().compactMap(\.token).filter { script.tokens[$0] == .dead })
      #expect(!dead.isEmpty)
      let left = Set(try s.backend.run("select token from nudge_token").compactMap { $0["token"].text })
      #expect(dead.isDisjoint(with: left), "\(dead.intersection(left))")
      let twice = try s.backend.count(
        "select count(*) from (select 1 from nudge_attempt where may_have_buzzed group by nudge_id, token_hash having count(*) > 1)"
      )
      #expect(twice == 0)
    }
  }
}
