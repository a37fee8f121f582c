import APNs
import Testing

@testable import APNsSimulator
@testable import HTTP2

@Suite("LockScreen")
struct LockScreenTests {
  private func shown(
    _ body: String, type: String = "alert", topic: String = "com.example.app", collapse: String? = nil,
    token: String = "ab", refusal: Refusal? = nil
  ) -> Shown {
    let fields = [
      (":method", "POST"), (":path", "/3/device/\(token)"), ("apns-topic", topic), ("apns-push-type", type),
    ]
    let push = Push(ServerRequest(fields.with("apns-collapse-id", collapse), body: Array(body.utf8)))
    let plan = Plan(
      id: RequestID(slot: 0, stream: 1), pushID: [], host: .production, refusal: refusal, action: nil,
      wallMilliseconds: 0)
    return Shown(push, plan)
  }

  /// The picture without the sequences for bold and faint, which are the only ones it may have.
  private func plain(_ model: LockScreenModel, columns: Int = 60, rows: Int = 40) -> [String] {
    model.lines(columns: columns, rows: rows).map { line in
      var line = line
      for code in ["[0m", "[1m", "[2m"] { line = line.split(separator: "\u{1B}" + code).joined() }
      return line
    }
  }

  @Test("a notification is its app, title, subtitle and body; the newest stands first")
  func cards() {
    var model = LockScreenModel()
    model.add(shown(#"{"aps":{"alert":"first"}}"#))
    model.add(shown(#"{"aps":{"alert":{"title":"Title","subtitle":"Sub","body":"Body"},"badge":3}}"#))
    #expect(
      plain(model) == [
        "lock screen: 2 shown", "badges: com.example.app (3)", "", "┃ com.example.app", "┃ Title", "┃ Sub",
        "┃ Body",
        "", "┃ com.example.app", "┃ first",
      ])
  }

  @Test("a push with the same collapse id takes the place of the older one, on the same device only")
  func collapse() {
    var model = LockScreenModel()
    model.add(shown(#"{"aps":{"alert":"one"}}"#, collapse: "a"))
    model.add(shown(#"{"aps":{"alert":"two"}}"#, collapse: "b"))
    model.add(shown(#"{"aps":{"alert":"three"}}"#, collapse: "a"))
    model.add(shown(#"{"aps":{"alert":"four"}}"#, collapse: "a", token: "cd"))
    #expect(model.notices.map(\.alert.body) == ["two", "three", "four"])
  }

  @Test("silent and refused pushes are one faint line each, with their number")
  func faint() {
    var model = LockScreenModel()
    for _ in 0..<3 { model.add(shown(#"{"aps":{"content-available":1}}"#, type: "background")) }
    model.add(shown("{}", refusal: Refusal("BadDeviceToken")))
    #expect(
      plain(model, columns: 76) == [
        "lock screen: nothing yet", "silent, 3: com.example.app: silent",
        "refused, 1: com.example.app: refused: 400 BadDeviceToken, production, toke…",
      ])
  }

  @Test("a badge of 0 clears")
  func badges() {
    var model = LockScreenModel()
    model.add(shown(#"{"aps":{"badge":5}}"#))
    #expect(plain(model).contains("badges: com.example.app (5)"))
    model.add(shown(#"{"aps":{"badge":0}}"#))
    #expect(!plain(model).contains { $0.hasPrefix("badges") })
  }

  @Test("texts in the phone's language are shown by their keys")
  func localized() {
    let shown = shown(#"{"aps":{"alert":{"title-loc-key":"TITLE","loc-key":"BODY","loc-args":["x"]}}}"#)
    #expect(shown.alert.title == "TITLE" && shown.alert.body == "BODY")
  }

  @Test(
    "no payload is too odd",
    arguments: [
      "", "x", "[]", "{}", #"{"aps":null}"#, #"{"aps":[]}"#, #"{"aps":{"alert":5}}"#,
      #"{"aps":{"alert":{"title":5}}}"#,
      #"{"aps":{"badge":"x","sound":{}}}"#,
      #"{"aps":{"alert":{"body":"\u0000\u001b]0;x\u0007\u202e\r\n\t"}}}"#,
    ])
  func odd(_ body: String) {
    var model = LockScreenModel()
    model.add(shown(body))
    model.add(shown(body, type: "liveactivity", topic: "a.push-type.liveactivity"))
    for line in plain(model) {
      #expect(line.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F })
    }
  }

  @Test("the picture fits every terminal, whatever is shown")
  func fits() {
    let long = String(repeating: "👨‍👩‍👧‍👦 漢字 e\u{301} wonderful ", count: 40)
    var phone = TestPhone()
    for content in ["{\"title\":\"\(long)\",\"text\":\"\(long)\"}", "{}"] {
      let body = ActivityBody("start", timestamp: 1, ["content-state": content])
      _ = phone.push(body, token: "aa")
    }
    var model = phone.model
    for index in 0..<60 {
      model.add(
        shown("{\"aps\":{\"alert\":{\"title\":\"\(long)\",\"body\":\"\(long)\"},\"badge\":\(index)}}"))
      model.add(shown("{}", topic: String(repeating: "x", count: 250), refusal: Refusal("BadTopic")))
    }
    for columns in [1, 10, 20, 33, 80, 500] {
      for rows in [1, 3, 10, 50] {
        let lines = plain(model, columns: columns, rows: rows)
        #expect(lines.count <= rows && !lines.isEmpty)
        for line in lines { #expect(TerminalText.columns(line) < max(columns, 11)) }
      }
    }
  }
}

@Suite("TerminalText")
struct TerminalTextTests {
  @Test(
    "what could move the cursor or turn the text around is gone",
    arguments: [
      ("a\u{1B}[31mb", "a[31mb"), ("a\u{7}\u{8}\u{7F}\u{9B}b", "ab"), ("a\r\n\tb", "a b"),
      ("  a   b  ", "a b"),
      ("a\u{202E}b\u{2066}c\u{200F}d\u{FEFF}", "abcd"), ("a\u{2028}b\u{0}c", "a bc"), ("\u{E000}x", "x"),
      ("👩‍🚀", "👩‍🚀"),
    ])
  func clean(_ text: String, _ wanted: String) { #expect(TerminalText.clean(text, limit: 80) == wanted) }

  @Test(
    "long text ends with an ellipsis within its columns",
    arguments: [
      ("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("漢字漢字", 8, "漢字漢字"), ("漢字漢字x", 8, "漢字漢…"),
      ("🎉🎉🎉", 5, "🎉🎉…"), ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"), ("abc", 1, "…"),
    ])
  func cut(_ text: String, _ limit: Int, _ wanted: String) {
    let cut = TerminalText.clean(text, limit: limit)
    #expect(cut == wanted && TerminalText.columns(cut) <= limit)
  }

  @Test("a pile of marks is cut down")
  func piles() {
    let pile = "a" + String(repeating: "\u{301}", count: 1_000)
    #expect(TerminalText.clean(pile, limit: 10).unicodeScalars.count <= 10)
  }

  @Test("lines break at blanks where there are some")
  func wrapped() {
    #expect(TerminalText.wrapped("one two three", width: 8, lines: 3) == ["one two", "three"])
    #expect(TerminalText.wrapped("onetwothree", width: 4, lines: 4) == ["onet", "woth", "ree"])
    #expect(TerminalText.wrapped("one two three four", width: 8, lines: 2) == ["one two", "three f…"])
    #expect(TerminalText.wrapped("", width: 8, lines: 2) == [])
    #expect(TerminalText.wrapped("漢字漢字", width: 5, lines: 3) == ["漢字", "漢字"])
  }
}
