import Foundation
import Testing

@Suite("Live Activities on the wire")
struct ActivityPayloadTests {
  /// JSON that converters change on the way: their names, numbers, escapes, order and spacing are the app's.
  private static let odd = #"""
    { "fooBar":null,"vehicle_id" : {},"a-b":[ ],"at":1790000000,"date":812345678.25,"one":1.0,"exp":1e5,
      "big":123456789012345678901234567890,"z":-0.0,"a":"\u00e9\/\ud83d\ude00 é 👩‍👩‍👧","":[1 ,{"b":true}] }
    """#
  private static let attributes = #"{"activityId" :"turn","fooBar":{"x_y":null},"n":1.50}"#

  @Test("start, update and end: every header and every byte of the body", arguments: Stack.allCases)
  func wire(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(stack)
      try s.backend.registerStart(1)
      _ = try s.worker(production: peer)
      let created = now()
      let (stale, dismiss) = (created / 1000 + 600, created / 1000 + 900)
      let start = try s.backend.activity(
        "start",
        [
          "created_at": .integer(created), "title": "Working", "body": "on \"it\"", "conversation_id": "c-9",
          "content_state": .text(Self.odd), "attributes": .text(Self.attributes),
          "stale_at": .integer(stale * 1000), "dismiss_at": .integer(dismiss * 1000),
          "aps": #"{"sound" : "ping.caf"}"#, "data": #"{"k":1.0}"#,
        ])
      try await s.backend.settled(start)
      try s.backend.registerUpdate(1)
      let expiry = created + 600_000
      let update = try s.backend.activity(
        "update",
        [
          "content_state": .text(Self.odd), "stale_at": .integer(stale * 1000),
          "dismiss_at": .integer(dismiss * 1000), "expires_at": .integer(expiry),
        ])
      try await s.backend.settled(update)
      let loud = try s.backend.activity(
        "update",
        ["priority": 10, "created_at": .integer(created), "title": "Needs you", "collapse_id": "turn"])
      try await s.backend.settled(loud)
      let end = try s.backend.activity(
        "end",
        [
          "created_at": .integer(created), "content_state": .text(Self.odd),
          "dismiss_at": .integer(dismiss * 1000),
        ])
      try await s.backend.settled(end)

      let requests = try peer.requests()
      try #require(requests.count == 4)
      let stamps = try requests.map { try #require($0.timestamp) }
      #expect(stamps == stamps.sorted() && Set(stamps).count == 4)
      #expect((created / 1000...created / 1000 + 10).contains(Int64(stamps[0])))
      let bodies = [
        #"{"aps":{"timestamp":\#(stamps[0]),"event":"start","content-state":\#(Self.odd),"#
          + #""attributes-type":"TurnAttributes","attributes":\#(Self.attributes),"input-push-token":1,"#
          + #""stale-date":\#(stale),"alert":{"title":"Working","body":"on \"it\""},"thread-id":"c-9","#
          + #""sound" : "ping.caf"},"conversation_id":"c-9","k":1.0}"#,
        #"{"aps":{"timestamp":\#(stamps[1]),"event":"update","content-state":\#(Self.odd),"stale-date":\#(stale)}}"#,
        #"{"aps":{"timestamp":\#(stamps[2]),"event":"update","content-state":{"step":1},"#
          + #""alert":{"title":"Needs you"}}}"#,
        #"{"aps":{"timestamp":\#(stamps[3]),"event":"end","content-state":\#(Self.odd),"dismissal-date":\#(dismiss)}}"#,
      ]
      for (request, body) in zip(requests, bodies) { #expect(request.body == body) }

      let stored = "\(created / 1000 + 86_400)"
      let expected = [
        (startToken(1), "10", stored, nil), (updateToken(1), "5", "\(expiry / 1000)", nil),
        (updateToken(1), "10", stored, "turn"), (updateToken(1), "10", stored, nil),
      ]
      for (request, (token, priority, expiration, collapse)) in zip(requests, expected) {
        #expect(request.values(":path") == ["/3/device/\(token)"])
        #expect(request.values("apns-push-type") == ["liveactivity"])
        #expect(request.values("apns-topic") == [Backend.activityTopic])
        #expect(request.values("apns-priority") == [priority])
        #expect(request.values("apns-expiration") == [expiration])
        #expect(request.values("apns-collapse-id") == (collapse.map { [$0] } ?? []))
        #expect(request.values("authorization").count == 1)
      }
      #expect(Set(requests.compactMap { $0.header("apns-id") }).count == 4)
      for id in [start, update, loud, end] {
        let attempt = try #require(try s.backend.attempts(id).first)
        #expect(attempt["outcome"] == "accepted")
        #expect(attempt["push_type"] == "liveactivity")
        #expect(attempt["topic"] == .text(Backend.activityTopic))
        #expect(attempt["token_kind"] == (id == start ? "activity_start" : "activity_update"))
      }
    }
  }

  @Test("an app that asks for channels or for no token of its own is not contradicted")
  func ownPushToken() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.registerStart(1)
      try s.backend.activity("start", ["aps": #"{"input-push-token":0}"#])
      try s.backend.activity("start", ["activity_id": "2", "aps": #"{"input-push-channel":"Q0g="}"#])
      try await s.drain(production: peer)
      let bodies = try peer.requests().compactMap(\.body)
      try #require(bodies.count == 2)
      #expect(bodies[0].components(separatedBy: "input-push-token").count == 2)
      #expect(!bodies[1].contains("input-push-token"))
    }
  }

  /// A row that no phone would show, and the column that its `detail` has to name.
  struct Fault: CustomTestStringConvertible, Sendable {
    let event: String
    let columns: [String: Value]
    let names: String
    var testDescription: String { "\(event) \(columns)" }

    init(_ event: String, _ columns: [String: Value], _ names: String) {
      self.event = event
      self.columns = columns
      self.names = names
    }
  }

  private static let faults: [Fault] = {
    let nested = String(repeating: #"{"a":"#, count: 5000) + "1" + String(repeating: "}", count: 5000)
    var faults = [
      Fault("start", ["attributes_type": nil], "attributes_type"),
      Fault("start", ["attributes_type": ""], "attributes_type"),
      Fault("start", ["attributes": nil], "attributes"),
      Fault("start", ["title": nil], "alert"), Fault("start", ["title": ""], "alert"),
      Fault("start", ["title": nil, "aps": #"{"alert":{}}"#], "alert"),
      Fault("start", ["title": nil, "aps": #"{"alert":"","sound":"x"}"#], "alert"),
      Fault("start", ["content_state": nil], "content_state"),
      Fault("update", ["content_state": nil], "content_state"),
      Fault("update", ["activity_id": nil], "activity_id"), Fault("end", ["activity_id": ""], "activity_id"),
      Fault("start", ["activity_id": nil], "activity_id"),
      Fault("update", ["stale_at": 1_790_000_000], "stale_at"),
      Fault("end", ["dismiss_at": 1_790_000_000], "dismiss_at"),
      Fault("end", ["dismiss_at": "soon"], "dismiss_at"),
      Fault("update", ["aps": #"{"content-state":{}}"#], "content_state"),
      Fault("update", ["aps": #"{"timestamp":1}"#], "timestamp"),
      Fault("end", ["aps": #"{"event":"update"}"#], "event"),
      Fault("start", ["aps": #"{"attributes-type":"X"}"#], "attributes_type"),
      Fault("update", ["priority": 7], "priority"),
      Fault(
        "update", ["content_state": .text(#"{"a":""# + String(repeating: "x", count: 4096) + #""}"#)], "4096"),
    ]
    for text in ["[]", #""x""#, "7", "null", "", "{", #"{"a":1}}"#, #"{"a":01}"#, nested] {
      faults.append(Fault("start", ["content_state": .text(text)], "content_state"))
      faults.append(Fault("update", ["content_state": .text(text)], "content_state"))
      faults.append(Fault("end", ["content_state": .text(text)], "content_state"))
      faults.append(Fault("start", ["attributes": .text(text)], "attributes"))
    }
    return faults
  }()

  @Test("what a phone would drop in silence is invalid, names the column, and holds up nothing")
  func invalid() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.registerStart(1)
      let ids = try Self.faults.enumerated().map { index, fault in
        // An activity each, so that none supersedes another.
        let id = try s.backend.activity(fault.event, ["activity_id": .text("\(index)")])
        for (column, value) in fault.columns {
          try s.backend.run("update nudge_outbox set \(column) = ? where id = ?", [value, .integer(id)])
        }
        return id
      }
      let good = try s.backend.activity("start")
      _ = try s.worker(production: peer)
      try await s.backend.settled(good)
      for (id, fault) in zip(ids, Self.faults) {
        let row = try s.backend.row(id)
        #expect(row["state"] == "invalid", "\(fault.testDescription.prefix(200)): \(row["detail"])")
        #expect(
          row["detail"].text?.contains(fault.names) == true,
          "\(fault.testDescription.prefix(200)): \(row["detail"])")
        #expect(try s.backend.outcomes(id) == [])
      }
      #expect(try peer.requests().count == 1)
    }
  }
}
