import Testing

@testable import APNsSimulator

@Suite("Phone")
struct PhoneTests {
  private let start: Int64 = 1_800_000_000
  private static let dismissals: [(Int64, Int64)] = [
    (-1, 0), (0, 0), (1, 1), (14_400, 14_400), (14_401, 14_400), (1 << 62, 14_400),
  ]

  /// The picture without the sequences for bold and faint.
  private func plain(_ model: LockScreenModel) -> [String] {
    model.lines(columns: 76, rows: 40).map {
      $0.replacing("\u{1B}[1m", with: "").replacing("\u{1B}[2m", with: "").replacing("\u{1B}[0m", with: "")
    }
  }

  @Test("a start makes a card, updates with one token change one card, the end says when it goes")
  func card() {
    var phone = TestPhone()
    _ = phone.push(
      ActivityBody("start", timestamp: start, ["content-state": #"{"title":"Trains","state":"thinking"}"#]),
      token: "aa")
    #expect(
      plain(phone.model) == [
        "lock screen: 1 live", "", "┃ Live Activity 1 · com.example.app", "┃ Trains", "┃ state: thinking",
        "┃ alert: On it | Looking",
      ])
    // Nothing says that this token belongs to the card of the start.
    let state = #"{"title":5,"parts":[1, {"a": null}]}"#
    _ = phone.push(ActivityBody("update", timestamp: start, ["content-state": state]), token: "bb")
    #expect(
      plain(phone.model)[1...3] == [
        "", "┃ Live Activity 2 · com.example.app", #"┃ title: 5 · parts: [1, {"a": null}]"#,
      ])
    _ = phone.push(
      ActivityBody("update", timestamp: start + 1, ["alert": #"{"body":{"loc-key":"FOUND"}}"#]), token: "BB")
    #expect(
      plain(phone.model)[2...4] == ["┃ Live Activity 2 · com.example.app", "┃ step: 1", "┃ alert: FOUND"])
    _ = phone.push(
      ActivityBody(
        "end", timestamp: start + 2,
        ["content-state": #"{"answer":"At 9"}"#, "dismissal-date": "\(start + 600)"]),
      token: "bb")
    #expect(
      plain(phone.model)[2...4] == [
        "┃ Live Activity 2 · com.example.app · ended, goes at 2027-01-15T08:10:00Z", "┃ answer: At 9",
        "┃ alert: FOUND",
      ])
    #expect(phone.model.cards.map(\.number) == [1, 2])
    #expect(phone.wait(until: start + 599) == [])
    #expect(phone.wait(until: start + 600) == ["gone"])
    #expect(phone.model.cards.map(\.number) == [1])
  }

  @Test("two starts make two cards, whatever they say")
  func starts() {
    var phone = TestPhone()
    for _ in 0..<2 { _ = phone.push(ActivityBody("start", timestamp: start), token: "aa") }
    #expect(phone.model.cards.map(\.number) == [1, 2])
  }

  @Test("an end without content keeps the last one, and one without a date goes after four hours")
  func end() {
    var phone = TestPhone()
    _ = phone.push(ActivityBody("update", timestamp: start), token: "aa")
    let ended = phone.push(
      ActivityBody("end", timestamp: start, ["content-state": nil]), token: "aa")
    #expect(ended?.card?.text == "step: 1" && ended?.card?.state == .ended)
    #expect(phone.wait(until: start + 4 * 3_600 - 1) == [])
    #expect(phone.wait(until: start + 4 * 3_600) == ["gone"])
  }

  @Test(
    "a dismissal date in the past removes the card at once, one after four hours counts as four hours",
    arguments: dismissals)
  func dismissal(_ date: Int64, _ stays: Int64) throws {
    var phone = TestPhone()
    _ = phone.push(ActivityBody("update", timestamp: start), token: "aa")
    let date = date > start ? date : start + date
    let ended = phone.push(
      ActivityBody("end", timestamp: start + 1, ["dismissal-date": "\(date)"]), token: "aa")
    let card = try #require(ended?.card)
    #expect(card.state == (stays == 0 ? .gone : .ended))
    #expect(phone.model.cards.count == (stays == 0 ? 0 : 1))
    if stays > 0 { #expect(card.goneAt == (start + stays) * 1000) }
  }

  @Test("past its date a card is stale, until content with another date or none")
  func stale() {
    var phone = TestPhone()
    _ = phone.push(ActivityBody("start", timestamp: start), token: "aa")
    _ = phone.push(ActivityBody("update", timestamp: start, ["stale-date": "\(start + 60)"]), token: "bb")
    #expect(phone.wait(until: start + 59) == [])
    #expect(phone.wait(until: start + 60) == ["stale"])
    #expect(plain(phone.model)[2] == "┃ Live Activity 2 · com.example.app · stale")
    _ = phone.push(ActivityBody("update", timestamp: start + 1), token: "bb")
    #expect(plain(phone.model)[2] == "┃ Live Activity 2 · com.example.app")
    #expect(phone.wait(until: start + 4_000) == [])
  }

  @Test("nobody ended it: it ends after eight hours, and goes four hours later")
  func lifetime() {
    var phone = TestPhone()
    _ = phone.push(ActivityBody("update", timestamp: start), token: "aa")
    #expect(phone.wait(until: start + 8 * 3_600) == ["ended, goes at 2027-01-15T20:00:00Z"])
    let late = phone.push(ActivityBody("update", timestamp: phone.time), token: "aa")
    #expect(late?.objection == "the activity has ended")
    #expect(phone.wait(until: start + 12 * 3_600) == ["gone"])
    let later = phone.push(ActivityBody("end", timestamp: phone.time), token: "aa")
    #expect(later?.objection == "the card is gone")
  }

  @Test("a card whose token is dead was swiped away, once")
  func swiped() {
    var phone = TestPhone()
    for token in ["aa", "bb"] { _ = phone.push(ActivityBody("update", timestamp: start), token: token) }
    for _ in 0..<2 { phone.phone.swipe { $0 == Array("aa".utf8) } }
    #expect(phone.wait(until: start + 1) == ["swiped away"])
    #expect(phone.model.cards.map(\.number) == [2])
    let update = phone.push(ActivityBody("update", timestamp: start + 1), token: "aa")
    #expect(update?.objection == "the card is gone" && phone.model.cards.map(\.number) == [2])
  }

  @Test("what is dropped is one faint line, and counted")
  func faint() {
    var phone = TestPhone()
    for _ in 0..<2 {
      _ = phone.push(ActivityBody("start", timestamp: start, ["attributes": "[]"]), token: "aa")
    }
    #expect(
      plain(phone.model) == [
        "lock screen: nothing yet",
        "dropped (inference), 2: start: attributes is an array, wanted an object",
      ])
  }

  @Test(
    "the backend's id of the activity is the first of four names that is a text",
    arguments: [
      (#"{"activityId":"a","activity_id":"b","activityID":"c","id":"d"}"#, "a"),
      (#"{"id":"d","activityID":"c","activity_id":"b"}"#, "b"), (#"{"id":"d","activityID":"c"}"#, "c"),
      (#"{"id":"d","activityId":5,"activity_id":""}"#, "d"), (#"{"Id":"e"}"#, nil), ("{}", nil),
    ])
  func activityID(_ attributes: String, _ wanted: String?) {
    var phone = TestPhone()
    let reception = phone.push(
      ActivityBody("start", timestamp: start, ["attributes": attributes]), token: "aa")
    #expect(reception?.card != nil && reception?.card?.activityID == wanted)
  }

  @Test("only the last thousand cards are remembered")
  func forgets() {
    var phone = TestPhone()
    for number in 0...1_000 {
      _ = phone.push(ActivityBody("update", timestamp: start), token: "\(1_000 + number)")
    }
    #expect(phone.push(ActivityBody("update", timestamp: start), token: "1001")?.objection != nil)
    #expect(phone.push(ActivityBody("update", timestamp: start), token: "1000")?.card?.number == 1_002)
  }
}
