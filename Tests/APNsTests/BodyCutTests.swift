import Foundation
import Testing

@testable import APNs

@Suite struct BodyCutTests {
  private static let empty = "{\"aps\":{\"alert\":{\"body\":\"\"}}}".utf8.count

  private func bodyOfPayload(_ columns: Columns) throws -> (body: String, size: Int) {
    let payload = try #require(columns.composed().payload)
    let aps = try parsed(payload)["aps"] as? NSDictionary
    let body = try #require((aps?["alert"] as? NSDictionary)?["body"] as? String)
    return (body, payload.count)
  }

  @Test("a body that just fits is whole, one byte more and it is cut to just fit")
  func edge() throws {
    let fitting = String(repeating: "a", count: 4096 - BodyCutTests.empty)
    #expect(try bodyOfPayload(Columns(body: fitting)) == (fitting, 4096))
    let cut = try bodyOfPayload(Columns(body: fitting + "a"))
    #expect(cut.size == 4096)
    #expect(cut.body == fitting.dropLast(3) + "…")
    let voip = try bodyOfPayload(Columns(.voip, body: String(repeating: "a", count: 9_000)))
    #expect(voip.size == 5120)
  }

  @Test(
    "families, flags, marks and conjuncts stay whole wherever the limit falls",
    arguments: [
      "👨‍👩‍👧‍👦", "🇩🇪", "e\u{301}\u{302}\u{327}", "क्षि", "स्त्री", "👍🏽", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "각", "\u{1112}\u{1161}\u{11AB}", "\r\n",
      "1\u{FE0F}\u{20E3}", "นี้", "\u{0B95}\u{0BCD}\u{0BB7}",
    ])
  func wholeCharacters(character: String) throws {
    let body = String(repeating: character, count: 5_000 / character.utf8.count)
    for shift in 0..<40 {
      let text = String(repeating: "x", count: shift) + body
      let (cut, size) = try bodyOfPayload(Columns(body: text))
      try expectLargestCut(cut, of: text, size: size, limit: 4096)
    }
  }

  /// The cut is a prefix of whole characters and an ellipsis, and one character more would not fit.
  private func expectLargestCut(_ cut: String, of body: String, size: Int, limit: Int) throws {
    #expect(size <= limit)
    #expect(cut.utf8.suffix(3).elementsEqual("…".utf8))
    let kept = Array(cut.utf8.dropLast(3))
    var position = body.startIndex
    var taken = 0
    while position < body.endIndex, taken < kept.count {
      let next = body.index(after: position)
      taken += body[position..<next].utf8.count
      position = next
    }
    #expect(taken == kept.count, "cut within a character")
    #expect(Array(body.utf8.prefix(taken)) == kept)
    if position < body.endIndex {
      let next = body[position..<body.index(after: position)]
      #expect(size + next.utf8.reduce(0) { $0 + PayloadText.escapedLength($1) } > limit, "not the largest")
    }
  }

  @Test("random bodies around the limit are cut to the largest whole prefix, and only if they must")
  func randomBodies() throws {
    var generator = SeededGenerator(seed: 99)
    var cuts = 0
    for _ in 0..<1_500 {
      var body = ""
      let target = Int.random(in: 3_900...4_400, using: &generator)
      while body.utf8.count < target { body += RandomText.text(20...60, using: &generator) }
      let columns = Columns(
        title: RandomText.text(0...4, using: &generator), body: body, aps: "{\"sound\":\"default\"}")
      let (cut, size) = try bodyOfPayload(columns)
      if cut.utf8.elementsEqual(body.utf8) {
        #expect(size <= 4096)
      } else {
        cuts += 1
        try expectLargestCut(cut, of: body, size: size, limit: 4096)
        #expect(size + 3 + body.utf8.count - cut.utf8.count > 4096, "it would have fitted")
      }
    }
    #expect(cuts > 300)
  }

  @Test("a body of megabytes is cut like any other")
  func megabytes() throws {
    let body = String(repeating: "क्षि👨‍👩‍👧‍👦\"", count: 100_000)
    let (cut, size) = try bodyOfPayload(Columns(body: body))
    try expectLargestCut(cut, of: body, size: size, limit: 4096)
  }

  @Test("one endless character leaves nothing to send")
  func zalgo() {
    let body = "e" + String(repeating: "\u{301}", count: 5_000)
    let words = Columns(title: "x", body: body).words
    #expect(words?.hasSuffix("limit 4096: not one character of the body fits") == true)
  }

  @Test("what is too long without the body is invalid with the numbers")
  func tooLong() {
    let long = String(repeating: "x", count: 4_090)
    #expect(
      Columns(title: long, body: "b").words == "payload is 4130 bytes without the body, limit 4096")
    #expect(Columns(title: long).words == "payload is 4120 bytes, limit 4096")
    let huge = String(repeating: "x", count: 5_000)
    #expect(Columns(title: huge).words == "title alone is 5000 bytes, limit 4096 for the payload")
    #expect(
      Columns(conversationID: huge, aps: "{\"badge\":1}").words
        == "conversation_id alone is 5000 bytes, limit 4096 for the payload")
    #expect(
      Columns(body: "x", aps: "{\"a\":\"\(huge)\"}").words
        == "aps alone is 5006 bytes, limit 4096 for the payload")
    #expect(
      Columns(body: "x", data: "{\"a\":\"\(huge)\"}").words
        == "data alone is 5006 bytes, limit 4096 for the payload")
    #expect(Columns(.voip, title: long).text != nil)
  }

  @Test("the app's own alert is never cut")
  func ownAlert() {
    let long = String(repeating: "x", count: 4_080)
    #expect(Columns(aps: "{\"alert\":\"\(long)\"}").words == "payload is 4100 bytes, limit 4096")
  }
}
