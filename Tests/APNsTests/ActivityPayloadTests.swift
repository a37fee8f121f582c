import Foundation
import Testing

@testable import APNs

@Suite struct ActivityPayloadTests {
  /// A start with nothing but what it needs.
  private static let start = Columns(
    .activityStart, title: "T", attributesType: "TurnAttributes", attributes: "{}", contentState: "{}")

  @Test("a start describes the activity, asks for its update token and shows an alert")
  func start() {
    let columns = Columns(
      .activityStart, title: "T", subtitle: "S", body: "B", conversationID: "c-1",
      aps: "{\"relevance-score\":1.50}", data: "{\"k\":1}", attributesType: "TurnAttributes",
      attributes: "{\"activityID\":\"a-1\"}", contentState: "{\"step\":1}", staleAt: 1_790_000_060_999,
      dismissAt: 1_790_000_120_000)
    #expect(
      columns.text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"start\",\"content-state\":{\"step\":1},"
        + "\"attributes-type\":\"TurnAttributes\",\"attributes\":{\"activityID\":\"a-1\"},"
        + "\"input-push-token\":1,\"stale-date\":1790000060,"
        + "\"alert\":{\"title\":\"T\",\"subtitle\":\"S\",\"body\":\"B\"},\"thread-id\":\"c-1\","
        + "\"relevance-score\":1.50},\"conversation_id\":\"c-1\",\"k\":1}")
  }

  @Test("an update has its state and no more, whatever the row says of a start or an end")
  func update() {
    var columns = Columns(.activityUpdate, contentState: "{\"step\":2}")
    let plain =
      "{\"aps\":{\"timestamp\":1000000000,\"event\":\"update\",\"content-state\":{\"step\":2}}}"
    #expect(columns.text == plain)
    columns.attributesType = bytes("TurnAttributes")
    columns.attributes = bytes("no JSON")
    columns.dismissAt = 1_790_000_120_000
    #expect(columns.text == plain)
    columns.staleAt = 1_790_000_060_000
    columns.body = bytes("B")
    #expect(
      columns.text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"update\",\"content-state\":{\"step\":2},"
        + "\"stale-date\":1790000060,\"alert\":{\"body\":\"B\"}}}")
  }

  @Test("an end may have a last state, and says when the card goes")
  func end() {
    #expect(
      Columns(.activityEnd).text == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"end\"}}")
    #expect(
      Columns(
        .activityEnd, body: "Done", attributesType: "TurnAttributes", attributes: "[",
        contentState: "{\"step\":3}", staleAt: 1_790_000_060_000, dismissAt: 1_790_000_120_999
      ).text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"end\",\"content-state\":{\"step\":3},"
        + "\"stale-date\":1790000060,\"dismissal-date\":1790000120,\"alert\":{\"body\":\"Done\"}}}")
  }

  @Test(
    "other kinds have no use for the columns of an activity", arguments: [Kind.alert, .background, .voip])
  func others(kind: Kind) {
    var columns = Columns(kind, title: kind == .background ? nil : "T", data: "{\"content-state\":1}")
    let plain = columns.text
    columns.attributesType = [0xFF]
    columns.attributes = bytes("[")
    columns.contentState = bytes("")
    columns.staleAt = 1_790_000_060_000
    columns.dismissAt = 1_790_000_120_000
    #expect(plain != nil)
    #expect(columns.text == plain)
  }

  @Test(
    "state and attributes travel byte for byte",
    arguments: [
      "{}", " { } ", "{\"fooBar\":1,\"vehicle_id\":null,\"a-b\":{},\"\":[]}", "{\"at\":1790000000}",
      "{\"at\":812345678.25,\"n\":1.50,\"m\":-0,\"e\":1E+2}",
      "{\"big\":123456789012345678901234567890,\"small\":0.1000000000000000055511151231257827}",
      "{\"t\":\"\\u00e9\\/\\\"\\n é 😀 \\ud83d\\ude00\"}", "\n{\t\"b\" : [ 1 ,2 ],\r\n \"a\":true}\n",
      "{\"z\":1,\"a\":{\"x\":1,\"x\":2}}", "{\"\\u0061\":1,\"timestamp\":2,\"event\":\"x\"}",
    ])
  func verbatim(json: String) {
    var columns = ActivityPayloadTests.start
    columns.contentState = bytes(json)
    columns.attributes = bytes(json)
    #expect(
      columns.text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"start\",\"content-state\":\(json),"
        + "\"attributes-type\":\"TurnAttributes\",\"attributes\":\(json),"
        + "\"input-push-token\":1,\"alert\":{\"title\":\"T\"}}}")
    for kind in [Kind.activityUpdate, .activityEnd] {
      #expect(Columns(kind, contentState: json).text?.contains(",\"content-state\":\(json)}") == true)
    }
  }

  @Test(
    "the app's own way to updates takes the place of ours, on a start",
    arguments: [
      "\"input-push-token\":0", "\"input-push-channel\":\"abc=\"", "\"\\u0069nput-push-token\" : 1",
    ])
  func inputPush(member: String) {
    var columns = ActivityPayloadTests.start
    columns.aps = bytes("{\(member)}")
    #expect(
      columns.text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"start\",\"content-state\":{},"
        + "\"attributes-type\":\"TurnAttributes\",\"attributes\":{},\"alert\":{\"title\":\"T\"},\(member)}}")
  }

  @Test("the name of the type is escaped as JSON asks")
  func typeName() {
    var columns = ActivityPayloadTests.start
    columns.attributesType = bytes("My\"Typ\\é\n")
    #expect(columns.text?.contains(",\"attributes-type\":\"My\\\"Typ\\\\é\\n\",") == true)
  }

  @Test("dates in seconds are rounded down, and those inside aps travel when no column gives them")
  func dates() {
    #expect(
      Columns(.activityEnd, staleAt: 100_000_000_999, dismissAt: 100_000_000_000_000).text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"end\",\"stale-date\":100000000,"
        + "\"dismissal-date\":100000000000}}")
    #expect(
      Columns(.activityEnd, aps: "{\"stale-date\":1.5,\"dismissal-date\":0}").text
        == "{\"aps\":{\"timestamp\":1000000000,\"event\":\"end\",\"stale-date\":1.5,\"dismissal-date\":0}}")
  }

  @Test("a body too long is shortened so that the payload just fits, and the rest stays as it is")
  func shortened() throws {
    var columns = ActivityPayloadTests.start
    columns.contentState = bytes("{\"s\":\"\(String(repeating: "x", count: 1_000))\"}")
    for body in [String(repeating: "a", count: 3_500), String(repeating: "👨‍👩‍👧‍👦", count: 2_000)] {
      columns.body = bytes(body)
      let payload = try #require(columns.composed().payload)
      #expect(payload.count <= 4096 && payload.count > 4096 - 25)
      let aps = try parsed(payload)["aps"] as? NSDictionary
      let shown = try #require((aps?["alert"] as? NSDictionary)?["body"] as? String)
      #expect(shown.hasSuffix("…") && body.hasPrefix(shown.dropLast()))
      #expect(columns.text?.contains(String(decoding: columns.contentState ?? [], as: UTF8.self)) == true)
    }
  }

  @Test("too large without a body is invalid, with the sizes")
  func tooLarge() throws {
    func state(_ count: Int) -> String { "{\"s\":\"\(String(repeating: "x", count: count))\"}" }
    let empty = try #require(Columns(.activityUpdate, contentState: state(0)).composed().payload).count
    #expect(Columns(.activityUpdate, contentState: state(4096 - empty)).composed().payload?.count == 4096)
    #expect(
      Columns(.activityUpdate, contentState: state(4097 - empty)).words
        == "payload is 4097 bytes, limit 4096")
    #expect(
      Columns(.activityUpdate, contentState: state(4089)).words
        == "content_state alone is 4097 bytes, limit 4096 for the payload")
    let around = ",\"alert\":{\"body\":\"\"}".utf8.count
    #expect(
      Columns(.activityUpdate, body: "BB", contentState: state(4097 - empty - around)).words
        == "payload is 4097 bytes without the body, limit 4096")
    var start = ActivityPayloadTests.start
    start.attributes = bytes(state(5_000))
    #expect(start.words == "attributes alone is 5008 bytes, limit 4096 for the payload")
    start.attributes = bytes("{}")
    start.attributesType = bytes(String(repeating: "T", count: 5_000))
    #expect(start.words == "attributes_type alone is 5000 bytes, limit 4096 for the payload")
  }

  @Test(
    "the time is put in for each device, in any number of digits, and nothing else moves",
    arguments: [Kind.activityStart, .activityUpdate, .activityEnd],
    ["short", String(repeating: "é", count: 5_000)])
  func stamp(kind: Kind, body: String) throws {
    var columns = ActivityPayloadTests.start
    columns.kind = kind
    columns.title = nil
    columns.body = bytes(body)
    columns.data = bytes("{\"k\":[1000000000]}")
    var composer = PayloadComposer()
    var output = bytes("before")
    #expect(columns.compose(with: &composer, into: &output) == .composed)
    let composed = String(decoding: output, as: UTF8.self)
    let placeholder = try #require(composed.range(of: "1000000000"))
    for seconds: Int64 in [
      1_790_000_000, 1_790_000_001, 7, 0, -12, 99_999_999_999, .max, .min, 1_000_000_000,
    ] {
      composer.stamp(seconds, in: &output)
      #expect(
        String(decoding: output, as: UTF8.self)
          == composed.replacingCharacters(in: placeholder, with: String(seconds)))
    }
    #expect(String(decoding: output, as: UTF8.self) == composed)
  }

  @Test("a payload without a time stays as it is, also behind one that had one")
  func noStamp() {
    var composer = PayloadComposer()
    var output: [UInt8] = []
    #expect(ActivityPayloadTests.start.compose(with: &composer, into: &output) == .composed)
    for next in [Columns(title: "1000000000"), Columns(.activityUpdate)] {
      output.removeAll()
      _ = next.compose(with: &composer, into: &output)
      let before = output
      composer.stamp(5, in: &output)
      #expect(output == before)
    }
  }
}
