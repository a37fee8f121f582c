import Foundation
import Testing

@Suite("Rows that cannot be sent")
struct InvalidRowTests {
  @Test("each poison row is invalid with a reason of its own, and the good row behind them is sent")
  func poison() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      let first = try s.backend.nudge(["title": "before"])
      try await s.backend.settled(first)

      let deep = String(repeating: #"{"a":"#, count: 5000) + "1" + String(repeating: "}", count: 5000)
      let seconds = Value.integer(now() / 1000)
      // What is wrong, the columns, and the words that the reason must contain.
      let rows: [(String, KeyValuePairs<String, Value>, [String])] = [
        ("data is not JSON", ["title": "T", "data": "not json"], ["data"]),
        ("data is an array", ["title": "T", "data": "[]"], ["data"]),
        ("data is a string", ["title": "T", "data": #""x""#], ["data"]),
        ("data is a number", ["title": "T", "data": 5], ["data"]),
        ("data ends early", ["title": "T", "data": #"{"a":1"#], ["data"]),
        ("data is two objects", ["title": "T", "data": "{}{}"], ["data"]),
        ("data is empty", ["title": "T", "data": ""], ["data"]),
        ("data is too deep", ["title": "T", "data": .text(deep)], ["data"]),
        ("data is broken UTF-8", ["title": "T", "data": .textBytes("7b2261223a22ff227d")], ["data"]),
        ("data is a broken BLOB", ["title": "T", "data": .blob("00ff")], ["data"]),
        ("data has its own aps", ["title": "T", "data": #"{"aps":{}}"#], ["data", "aps"]),
        ("aps is not JSON", ["title": "T", "aps": "{sound:1}"], ["aps"]),
        ("aps is an array", ["title": "T", "aps": "[1]"], ["aps"]),
        ("alert given twice", ["title": "T", "aps": #"{"alert":"x"}"#], ["alert", "aps"]),
        (
          "conversation given twice",
          ["title": "T", "conversation_id": "c", "data": #"{"conversation_id":"d"}"#],
          ["conversation_id", "data"]
        ),
        (
          "thread given twice", ["title": "T", "conversation_id": "c", "aps": #"{"thread-id":"d"}"#],
          ["conversation_id", "thread-id"]
        ),
        ("kind is NULL", ["title": "T", "kind": nil], ["kind"]),
        ("kind is unknown", ["title": "T", "kind": "postcard"], ["kind"]),
        ("kind in capitals", ["title": "T", "kind": "ALERT"], ["kind"]),
        ("nothing to show", ["conversation_id": "c"], []),
        ("only empty text", ["title": "", "body": ""], []),
        ("a NUL in the title", ["title": .textBytes("410042")], ["title"]),
        ("a NUL in the body", ["title": "T", "body": .textBytes("410042")], ["body"]),
        ("broken UTF-8 in the body", ["title": "T", "body": .textBytes("41ff")], ["body"]),
        ("expiry in seconds", ["title": "T", "expires_at": seconds], ["expires_at", "seconds"]),
        ("not before in seconds", ["title": "T", "not_before_at": seconds], ["not_before_at", "seconds"]),
        ("created in seconds", ["title": "T", "created_at": seconds], ["created_at", "seconds"]),
        ("expiry is text", ["title": "T", "expires_at": "tomorrow"], ["expires_at"]),
        ("priority 7", ["title": "T", "priority": 7], ["priority"]),
        (
          "too much data",
          ["title": "T", "data": .text(#"{"a":""# + String(repeating: "x", count: 4096) + #""}"#)], []
        ),
        ("too long a title", ["title": .text(String(repeating: "x", count: 4096))], []),
      ]
      var ids: [Int64] = []
      for (_, columns, _) in rows { ids.append(try s.backend.nudge(columns)) }
      let good = try s.backend.nudge(["title": "behind"])
      try await s.backend.settled(good, within: .seconds(5))

      for ((what, _, words), id) in zip(rows, ids) {
        let row = try s.backend.row(id)
        #expect(row["state"] == "invalid", "\(what): \(row["state"]) \(row["detail"])")
        let detail = row["detail"].text ?? ""
        #expect(!detail.isEmpty, "\(what) has no reason")
        for word in words { #expect(detail.contains(word), "\(what): \(detail)") }
        #expect(row["settled_at"].integer != nil, "\(what)")
        #expect(try s.backend.attempts(id).isEmpty, "\(what)")
      }
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["before", "behind"])
      #expect(worker.isRunning)
      let lines = worker.errors.split(separator: "\n").count
      #expect(lines < 40 + 2 * rows.count, "\(lines) log lines")
    }
  }

  @Test("whatever a row says in any column, the backend's transaction commits and the next row is sent")
  func hostile() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let columns = try s.backend.run("pragma table_info(nudge_outbox)").compactMap { $0["name"].text }
        .filter { $0 != "id" }
      #expect(columns.count == 29)
      let values: [Value] = [
        nil, 0, -1, 1, .integer(.max), .integer(.min), .real(1.5), .real(1e300), "", "x",
        "' ; drop table message --",
        .text(String(repeating: "long ", count: 20_000)), .textBytes("610062"), .textBytes("c328ff"),
        .blob(""),
        .blob("00ff"), "\u{202e}🇮🇸\r\n\t\u{7f}", "*", "activity_start",
      ]
      let clauses = ["", "or abort", "or fail", "or rollback", "or ignore", "or replace"]
      var count = 0
      for column in columns {
        for value in values {
          let clause = clauses[count % clauses.count]
          let (sql, arguments): (String, [Value]) =
            column == "title"
            ? ("insert \(clause) into nudge_outbox (title) values (?)", [value])
            : ("insert \(clause) into nudge_outbox (title, \(column)) values ('T', ?)", [value])
          count += 1
          try s.backend.transaction([
            .init("insert into message (id, text) values (?, 'record')", [.integer(Int64(count))]),
            .init(sql, arguments),
          ])
        }
      }
      let good = try s.backend.nudge(["title": "good"])
      #expect(try s.backend.count("select count(*) from message") == count)
      #expect(try s.backend.count("select count(*) from nudge_outbox") == count + 1)
      // An integer column may hold a time that is in the future; then the row is not due.
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(good) == ["accepted"])
      let ends: Set = [
        "attempted", "suppressed", "expired", "superseded", "unaddressed", "invalid", "cancelled", "waiting",
      ]
      let states = try s.backend.states()
      #expect(Set(states.keys).isSubset(of: ends), "\(states)")
      #expect(states.values.reduce(0, +) == count + 1)
      #expect(try s.backend.count("select count(*) from nudge_attempt where outcome is not 'accepted'") == 0)
      #expect(try peer.requests().count == s.backend.count("select count(*) from nudge_attempt"))
    }
  }

  @Test("a token, topic or id written past the view is refused at the claim, and the row behind is sent")
  func writtenPastTheView() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      for (index, hostile) in ["../../etc", "(null)", "ab cd", "abc", "ABCDEF", "", "aa\n", "zz"].enumerated()
      {
        try s.backend.register("bad-\(index)", token: token(100 + index), surface: "bad")
        try s.backend.run(
          "update nudge_token set token = ? where device_id = ?", [.text(hostile), .text("bad-\(index)")])
      }
      try s.backend.register("bad-topic", token: token(200), surface: "bad")
      try s.backend.run(
        "update nudge_device set topic = 'a' || char(13, 10) || 'b: c' where device_id = 'bad-topic'")
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge(["title": "bad", "surface": "bad"])
      let good = try s.backend.nudge(["title": "good"])
      try await s.drain(production: peer)
      #expect(try s.backend.outcomes(good) == ["accepted"])
      #expect(try peer.requests().map(\.token) == [token(1)])
      #expect(try s.backend.states()["pending"] == nil)
    }
  }
}
