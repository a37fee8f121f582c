import Foundation
import Testing

@testable import APNs

@Suite struct PayloadComposerTests {
  @Test("columns become the alert, the thread and the conversation; the app's JSON travels verbatim")
  func shape() {
    let columns = Columns(
      title: "T", subtitle: "S", body: "B", conversationID: "c-1",
      aps: " {\"sound\" : \"default\",\n\"badge\":1.0}\n",
      data: "{ \"vehicle_id\":null , \"a-b\":[1790000000]}")
    let expected =
      "{\"aps\":{\"alert\":{\"title\":\"T\",\"subtitle\":\"S\",\"body\":\"B\"},\"thread-id\":\"c-1\","
      + "\"sound\" : \"default\",\n\"badge\":1.0},\"conversation_id\":\"c-1\","
      + " \"vehicle_id\":null , \"a-b\":[1790000000]}"
    #expect(columns.text == expected)
  }

  @Test("empty columns are as if NULL, and empty objects add nothing")
  func empties() {
    #expect(
      Columns(title: "", subtitle: "", body: "B", conversationID: "", aps: "{ }", data: "{}").text
        == "{\"aps\":{\"alert\":{\"body\":\"B\"}}}")
    #expect(Columns(.voip).text == "{\"aps\":{}}")
    #expect(
      Columns(.voip, data: "{\"call\":1}").text == "{\"aps\":{},\"call\":1}")
  }

  @Test("what was in the buffer stays, and an invalid row leaves nothing behind")
  func buffer() {
    var composer = PayloadComposer()
    var output = bytes("before")
    let good = Columns(title: "x").compose(with: &composer, into: &output)
    #expect(good == .composed)
    #expect(output == bytes("before{\"aps\":{\"alert\":{\"title\":\"x\"}}}"))
    let before = output
    var broken = Columns(title: "x")
    broken.body = [0x61, 0xFF]
    #expect(broken.compose(with: &composer, into: &output) == .invalid("body is not UTF-8 at byte 1"))
    #expect(output == before)
  }

  @Test("members of one row do not leak into the next")
  func reuse() {
    var composer = PayloadComposer()
    var output: [UInt8] = []
    _ = Columns(title: "x", aps: "{\"badge\":1}", data: "{\"d\":1}").compose(with: &composer, into: &output)
    output.removeAll()
    #expect(Columns(body: "y").compose(with: &composer, into: &output) == .composed)
    #expect(output == bytes("{\"aps\":{\"alert\":{\"body\":\"y\"}}}"))
    #expect(Columns().compose(with: &composer, into: &output) == .invalid(PayloadRule.nothingToShow))
  }

  @Test("an aps is judged again after another one, and each time that it is refused")
  func changingAps() {
    var composer = PayloadComposer()
    func text(_ aps: String) -> String? {
      var output: [UInt8] = []
      guard Columns(title: "x", aps: aps).compose(with: &composer, into: &output) == .composed else {
        return nil
      }
      return String(decoding: output, as: UTF8.self)
    }
    func expected(_ aps: String) -> String { "{\"aps\":{\"alert\":{\"title\":\"x\"},\(aps)}}" }
    for _ in 1...2 {
      #expect(text("{\"badge\":1}") == expected("\"badge\":1"))
      #expect(text("{\"badge\":2}") == expected("\"badge\":2"))
      #expect(text("{\"sound\" : 10}") == expected("\"sound\" : 10"))
      #expect(text("{\"badge\":x}") == nil)
      #expect(text("{\"badge\":x}") == nil)
      #expect(text("{\"alert\":1}") == nil)
      #expect(text("{\"alert\":1}") == nil)
    }
  }

  @Test(
    "a member given twice is invalid, naming both",
    arguments: [
      (Columns(title: "x", aps: "{\"alert\":\"y\"}"), "alert is given by title and inside aps"),
      (Columns(subtitle: "x", aps: "{\"alert\":null}"), "alert is given by subtitle and inside aps"),
      (Columns(body: "x", aps: "{\"\\u0061lert\":\"y\"}"), "alert is given by body and inside aps"),
      (
        Columns(body: "x", conversationID: "c", aps: "{\"thread-id\":\"y\"}"),
        "thread-id is given by conversation_id and inside aps"
      ),
      (
        Columns(body: "x", conversationID: "c", data: "{\"conversation_id\":\"y\"}"),
        "conversation_id is given by the column conversation_id and inside data"
      ),
      (Columns(body: "x", data: "{\"aps\":{}}"), "aps is given by the column aps and inside data"),
      (
        Columns(body: "x", aps: "{\"sound\":1,\"badge\":2,\"sound\":3}"),
        "sound is given twice inside aps, at byte 1 and at byte 21"
      ),
      (
        Columns(body: "x", data: "{\"a b\":1,\"a b\":2}"),
        "a member is given twice inside data, at byte 1 and at byte 9"
      ),
    ] as [(Columns, String)])
  func twice(columns: Columns, words: String) {
    #expect(columns.words == words)
    #expect(columns.text == nil)
  }

  @Test("the same names where no column gives them are the app's own")
  func ownMembers() {
    #expect(
      Columns(aps: "{\"alert\":{\"loc-key\":\"K\"},\"thread-id\":\"t\"}", data: "{\"conversation_id\":7}")
        .text
        == "{\"aps\":{\"alert\":{\"loc-key\":\"K\"},\"thread-id\":\"t\"},\"conversation_id\":7}")
    #expect(Columns(title: "", aps: "{\"alert\":\"y\"}").text == "{\"aps\":{\"alert\":\"y\"}}")
  }

  @Test(
    "an alert with nothing to show is invalid",
    arguments: [
      nil, "{}", "{\"alert\":\"\"}", "{\"alert\":null}", "{\"alert\":{}}",
      "{\"alert\":{\"title\":\"\",\"body\":null}}",
      "{\"sound\":\"\"}", "{\"badge\":null}", "{\"category\":\"c\"}", "{\"alert\":5}",
      "{\"content-available\":1}",
    ])
  func nothing(aps: String?) {
    #expect(Columns(title: "", aps: aps).words == PayloadRule.nothingToShow)
  }

  @Test(
    "text, a badge or a sound is something",
    arguments: [
      "{\"alert\":\"a\"}", "{\"alert\":{\"title-loc-key\":\"K\"}}", "{\"badge\":0}",
      "{\"sound\":\"default\"}",
      "{\"sound\":{\"critical\":1}}", "{\"alert\":\"\",\"badge\":1}",
    ])
  func something(aps: String) {
    #expect(Columns(aps: aps).text == "{\"aps\":\(aps)}")
  }

  @Test("a background push wakes, and shows nothing")
  func background() {
    #expect(Columns(.background).text == "{\"aps\":{\"content-available\":1}}")
    #expect(
      Columns(.background, conversationID: "c", aps: "{\"x\":1}", data: "{\"d\":2}").text
        == "{\"aps\":{\"thread-id\":\"c\",\"content-available\":1,\"x\":1},\"conversation_id\":\"c\",\"d\":2}"
    )
    #expect(
      Columns(.background, aps: "{\"content-available\" : 1.0}").text
        == "{\"aps\":{\"content-available\" : 1.0}}")
    #expect(Columns(.background, title: "x").words == "title is given, but background shows nothing")
    #expect(Columns(.background, body: "x", aps: "{}").words == "body is given, but background shows nothing")
    for name in ["alert", "badge", "sound"] {
      #expect(
        Columns(.background, aps: "{\"\(name)\":1}").words
          == "\(name) is given inside aps, but background shows nothing")
    }
  }

  @Test("widgets and controls say that content has changed", arguments: [Kind.widgets, .controls])
  func contentChanged(kind: Kind) {
    #expect(Columns(kind).text == "{\"aps\":{\"content-changed\":true}}")
    #expect(
      Columns(kind, aps: "{\"content-changed\":true}").text == "{\"aps\":{\"content-changed\":true}}")
    #expect(Columns(kind, subtitle: "x").words == "subtitle is given, but \(kind.name) shows nothing")
  }

  @Test("poison in a JSON column is invalid, each kind in words of its own that quote nothing")
  func poison() {
    let deep = String(repeating: "{\"a\":", count: 5_000) + "0" + String(repeating: "}", count: 5_000)
    let poisons = [
      "", " ", "hello secret", "[]", "\"secret\"", "12", "null", "true", "{\"secret\":", "{\"secret\":1}}",
      deep,
      "\u{FEFF}{}", "{\"secret\":\"\\ud800\"}", "{\"secret\":01}", "{\"secret\":\"\0\"}",
      "{\"secret\":\"\\q\"}",
      "{\"secret\":\"\n\"}", "{'secret':1}",
    ]
    for column in ["aps", "data"] {
      var seen: Set<String> = []
      for poison in poisons {
        let columns =
          column == "aps" ? Columns(title: "x", aps: poison) : Columns(title: "x", data: poison)
        let words = columns.words ?? ""
        #expect(words.hasPrefix("\(column) "), "\(poison.prefix(20))")
        #expect(!words.contains("secret"))
        #expect(seen.insert(words).inserted, "\(words)")
      }
    }
  }

  @Test("nesting counts from the payload's own braces")
  func depth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "{\"a\":", count: depth - 1) + "{}" + String(repeating: "}", count: depth - 1)
    }
    let inAps = try #require(Columns(title: "x", aps: nested(511)).composed().payload)
    _ = try parsed(inAps)
    #expect(Columns(title: "x", aps: nested(512)).words?.hasPrefix("aps is nested deeper than 511") == true)
    let inData = try #require(Columns(title: "x", data: nested(512)).composed().payload)
    _ = try parsed(inData)
    #expect(Columns(title: "x", data: nested(513)).words?.hasPrefix("data is nested deeper than 512") == true)
  }

  @Test("random columns and objects come out as Foundation reads them, and the app's bytes unchanged")
  func randomObjects() throws {
    var generator = SeededGenerator(seed: 42)
    var composer = PayloadComposer()
    var output: [UInt8] = []
    var composed = 0
    for _ in 0..<3_000 {
      let title = RandomText.text(0...6, using: &generator)
      let body = RandomText.text(1...6, using: &generator)
      let conversation = RandomText.text(0...3, using: &generator)
      let aps = RandomJSON.object(depth: 3, using: &generator)
      let data = RandomJSON.object(depth: 3, using: &generator)
      var columns = Columns(title: title, body: body, conversationID: conversation)
      columns.aps = aps
      columns.data = data
      output.removeAll(keepingCapacity: true)
      guard columns.compose(with: &composer, into: &output) == .composed else { continue }
      composed += 1
      let root = try parsed(output)
      var expectedAps = try parsed(aps) as? [String: Any] ?? [:]
      var alert = ["body": body]
      if !title.isEmpty { alert["title"] = title }
      expectedAps["alert"] = alert
      var expected = try parsed(data) as? [String: Any] ?? [:]
      if !conversation.isEmpty {
        expectedAps["thread-id"] = conversation
        expected["conversation_id"] = conversation
      }
      expected["aps"] = expectedAps
      #expect(root.isEqual(to: expected))
      for source in [aps, data] {
        let text = String(decoding: source, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        let inside = Array(text.utf8.dropFirst().dropLast())
        #expect(Data(output).range(of: Data(inside)) != nil || inside.allSatisfy(JSONByte.isSpace))
      }
    }
    #expect(composed > 2_900)
  }
}
