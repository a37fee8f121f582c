import Testing

@testable import APNs

@Suite struct ActivityRuleTests {
  private static let events = [Kind.activityStart, .activityUpdate, .activityEnd]

  /// A row that has all that any event needs.
  private static func complete(_ kind: Kind, aps: String? = nil) -> Columns {
    Columns(
      kind, title: "T", aps: aps, attributesType: "TurnAttributes", attributes: "{}", contentState: "{}")
  }

  @Test("a start needs its type, its attributes and its state, and says which is missing")
  func start() {
    var columns = Self.complete(.activityStart)
    #expect(columns.words == nil)
    columns.contentState = nil
    #expect(
      columns.words == "activity_start needs content_state: the app's ContentState as a JSON object")
    columns.attributes = nil
    #expect(
      columns.words
        == "activity_start needs attributes: a JSON object, {} when the type has no members")
    for missing in [nil, ""] {
      columns.attributesType = missing.map(bytes)
      #expect(
        columns.words
          == "activity_start needs attributes_type: the name of the app's ActivityAttributes type")
    }
  }

  @Test("an update needs its state, an end does not")
  func state() {
    #expect(
      Columns(.activityUpdate, title: "T").words
        == "activity_update needs content_state: the app's ContentState as a JSON object")
    #expect(Columns(.activityEnd).words == nil)
  }

  @Test(
    "a start that a phone would drop for want of a text is invalid",
    arguments: [
      nil, "{}", "{\"badge\":1}", "{\"sound\":\"default\"}", "{\"alert\":\"\"}", "{\"alert\":null}",
      "{\"alert\":{}}", "{\"alert\":[\"x\"]}", "{\"alert\":5}", "{\"alert\":{\"sound\":\"chime.aiff\"}}",
      "{\"alert\":{\"title\":\"\",\"body\":null}}", "{\"alert\":{\"title\":{}}}",
      "{\"alert\":{\"title\":{\"loc-key\":\"\"}}}", "{\"alert\":{\"body\":{\"loc-args\":[\"x\"]}}}",
      "{\"alert\":{\"subtitle\":\"x\"}}", "{\"alert\":{\"title\":7,\"body\":true}}",
      "{\"alert\":{\"loc-args\":[\"title\"]}}",
    ])
  func noAlert(aps: String?) {
    var columns = Self.complete(.activityStart, aps: aps)
    columns.title = bytes("")
    #expect(columns.words == ActivityRule.noAlert)
    columns.kind = .activityUpdate
    #expect(columns.words == nil, "only a start needs one")
    columns.kind = .activityEnd
    #expect(columns.words == nil, "only a start needs one")
  }

  @Test(
    "a text inside aps is an alert as well, also one from the app's string table",
    arguments: [
      "{\"alert\":\"x\"}", "{\"alert\":{\"title\":\"x\"}}", "{\"alert\":{\"sound\":\"s\",\"body\":\"x\"}}",
      "{\"alert\":{\"title\":{\"loc-key\":\"K\",\"loc-args\":[]},\"body\":{\"loc-key\":\"L\"}}}",
      "{\"alert\":{\"title\":\"\",\"body\":{\"loc-key\":\"K\"}}}", "{\"alert\":{\"loc-key\":\"K\"}}",
      "{\"alert\" : {\"title-loc-key\":\"K\"}}", "{\"\\u0061lert\":{\"\\u0062ody\":\"x\"}}",
    ])
  func alert(aps: String) {
    var columns = Self.complete(.activityStart, aps: aps)
    columns.title = nil
    #expect(columns.text?.hasSuffix(",\"input-push-token\":1,\(aps.dropFirst())}") == true)
  }

  @Test("title or body is enough, a subtitle is not")
  func alertColumns() {
    var columns = Self.complete(.activityStart)
    columns.title = nil
    columns.body = bytes("B")
    #expect(columns.words == nil)
    columns.body = nil
    columns.subtitle = bytes("S")
    #expect(columns.words == ActivityRule.noAlert)
  }

  @Test("what nudged writes itself is not for aps", arguments: events, ["timestamp", "event"])
  func written(kind: Kind, name: String) {
    let words = "\(name) is given by nudged and inside aps: leave it out there"
    #expect(Self.complete(kind, aps: "{\"\(name)\":null}").words == words)
    #expect(Columns(kind, aps: "{\"\(name)\":1}").words == words)
  }

  @Test(
    "a member that has a column of its own is not for aps, with the column and without",
    arguments: events,
    [
      ("content-state", "content_state"), ("attributes-type", "attributes_type"),
      ("attributes", "attributes"),
    ])
  func columnOnly(kind: Kind, member: (name: String, column: String)) {
    let aps = "{\"\(member.name)\":{}}"
    #expect(
      Self.complete(kind, aps: aps).words == "\(member.name) is given by \(member.column) and inside aps")
    #expect(
      Columns(kind, aps: aps).words
        == "\(member.name) is given inside aps: put it into the column \(member.column)")
  }

  @Test("a date or an alert that is given twice is invalid, naming both", arguments: events)
  func twice(kind: Kind) {
    var columns = Self.complete(kind, aps: "{\"stale-date\":1,\"dismissal-date\":2}")
    #expect(columns.words == nil)
    columns.dismissAt = 1_790_000_000_000
    #expect(columns.words == "dismissal-date is given by dismiss_at and inside aps")
    columns.staleAt = 1_790_000_000_000
    #expect(columns.words == "stale-date is given by stale_at and inside aps")
    columns.aps = bytes("{\"alert\":\"x\"}")
    #expect(columns.words == "alert is given by title and inside aps")
  }

  @Test("these names are the app's own in other kinds and beside aps")
  func elsewhere() {
    let members = "{\"timestamp\":1,\"event\":2,\"content-state\":3,\"attributes\":4}"
    #expect(Columns(title: "T", aps: members).words == nil)
    var columns = Self.complete(.activityUpdate)
    columns.data = bytes(members)
    #expect(columns.words == nil)
  }

  @Test(
    "poison in state or attributes is invalid, naming the column and quoting nothing",
    arguments: [
      ("", "is empty, not a JSON object"), (" ", "holds only white space, not a JSON object"),
      ("[]", "is an array at byte 0, not a JSON object"),
      ("null", "is null at byte 0, not a JSON object"),
      ("\"secret\"", "is a string at byte 0, not a JSON object"),
      ("{\"secret\":", "is not JSON: it ends early, at byte 10"),
      ("{\"a\":\"\0\"}", "has a NUL at byte 6"), ("{}\0", "has a NUL at byte 2"),
      ("{\"a\":1,\"\\u0061\":2}", "a member is given twice inside "),
      ("\u{FEFF}{}", "begins with a byte order mark at byte 0"),
    ])
  func poison(json: String, words: String) {
    for column in ["content_state", "attributes"] {
      var columns = Self.complete(.activityStart)
      if column == "attributes" {
        columns.attributes = bytes(json)
      } else {
        columns.contentState = bytes(json)
      }
      let said = columns.words ?? ""
      #expect(said.contains(words) && said.contains(column) && !said.contains("secret"), "\(said)")
    }
    for kind in [Kind.activityUpdate, .activityEnd] {
      #expect(Columns(kind, contentState: json).words?.contains("content_state") == true)
    }
  }

  @Test("bytes that are no text are invalid in each column of an activity")
  func notText() {
    var columns = Self.complete(.activityStart)
    columns.attributesType = [0x61, 0]
    #expect(columns.words == "attributes_type has a NUL at byte 1")
    columns.attributesType = [0x61, 0xFF]
    #expect(columns.words == "attributes_type is not UTF-8 at byte 1")
    columns.contentState = bytes("{\"a\":\"") + [0xFF] + bytes("\"}")
    #expect(columns.words == "content_state is not UTF-8 at byte 6")
  }

  @Test("nesting counts from the payload's own braces")
  func depth() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "{\"a\":", count: depth - 1) + "{}" + String(repeating: "}", count: depth - 1)
    }
    let payload = try #require(Columns(.activityUpdate, contentState: nested(510)).composed().payload)
    _ = try parsed(payload)
    #expect(
      Columns(.activityUpdate, contentState: nested(511)).words?
        .hasPrefix("content_state is nested deeper than 510") == true)
    var start = Self.complete(.activityStart)
    start.attributes = bytes(nested(5_000))
    #expect(start.words?.hasPrefix("attributes is nested deeper than 510") == true)
  }
}
