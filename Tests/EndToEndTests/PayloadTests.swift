import Foundation
import Testing

@Suite("Payload and headers")
struct PayloadTests {
  @Test(
    "the app's JSON arrives byte for byte: numbers, order of keys, escapes and spacing",
    arguments: [false, true])
  func verbatim(_ asBlob: Bool) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let data = #"""
        "one":1.0, "exp" : 1e5,"z":1,"a":-0.0,"big":123456789012345678901234567890,"tiny":1E-400,
        	"esc":"\u00e9\/\n\ud83d\ude00 \"q\" é 👩‍👩‍👧","fooBar":null,"vehicle_id":{},"a-b":[ ],"":[1 ,2,{"b":true ,"a":false}],
        "date":812345678.25,"at":1790000000
        """#
      let aps =
        #""sound" :"ping.caf","badge":7.0,"interruption-level":"time-sensitive" , "url-args":["\u0041"]"#
      let written: [Value] = ["{\(aps)}", "{\(data)}"].map {
        asBlob ? .blob($0.utf8.map { String(format: "%02x", $0) }.joined()) : .text($0)
      }
      try s.backend.nudge(["title": "T", "aps": written[0], "data": written[1]])
      try await s.drain(production: peer)
      let request = try #require(try peer.requests().first)
      let body = try #require(request.body)
      #expect(body.contains(data))
      #expect(body.contains(aps))
      #expect(Set(request.json.keys).isSuperset(of: ["aps", "one", "exp", "", "a-b", "at"]))
      #expect(request.aps["url-args"] as? [String] == ["A"])
    }
  }

  @Test("a body too long is cut at a whole character, with an ellipsis, and fills the limit")
  func shortened() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let characters = ["👨‍👩‍👧‍👦", "🇮🇸", "e\u{301}\u{323}", "क्षि", "👍🏽", "\"", "\\", "\n", "ß"]
      let texts = characters.map { String(repeating: $0, count: 5000) }
      for text in texts { try s.backend.nudge(["title": "T", "body": .text(text)]) }
      try await s.drain(production: peer)
      #expect(try peer.requests().count == texts.count)
      for (request, character) in zip(try peer.requests(), characters) {
        let size = try #require(request.body?.utf8.count)
        #expect(size <= 4096)
        #expect(size > 4096 - 64, "cut too short for \(character)")
        let shown = try #require(request.alert["body"] as? String)
        #expect(shown.hasSuffix("…"))
        let kept = Array(shown.dropLast())
        #expect(!kept.isEmpty)
        #expect(
          kept.allSatisfy { Array($0.unicodeScalars) == Array(character.unicodeScalars) },
          "\(character) broken")
      }
    }
  }

  @Test("a payload of exactly 4,096 bytes goes as it is, one byte more is shortened")
  func limit() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge(["title": "T", "body": "x"])
      try await s.drain(production: peer)
      let overhead = try #require(try peer.requests().first?.body?.utf8.count) - 1
      let full = String(repeating: "x", count: 4096 - overhead)
      try s.backend.nudge(["title": "T", "body": .text(full)])
      try s.backend.nudge(["title": "T", "body": .text(full + "x")])
      try await s.drain(production: peer)
      let requests = try peer.requests()
      try #require(requests.count == 3)
      #expect(requests[1].body?.utf8.count == 4096)
      #expect(requests[1].alert["body"] as? String == full)
      #expect(requests[2].alert["body"] as? String == String(repeating: "x", count: full.count - 3) + "…")
    }
  }

  @Test("a collapse id that no header may carry is replaced by a stable hash, others stay")
  func collapse() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let long = String(repeating: "k", count: 65)
      for id in ["chat-9", String(repeating: "k", count: 64), long, long, long + "k", "a\r\nb: c", "naïve"] {
        try s.backend.nudge(["title": "T", "collapse_id": .text(id)])
      }
      try await s.drain(production: peer)
      let ids = try peer.requests().map { $0.header("apns-collapse-id") ?? "" }
      #expect(ids.count == 7)
      #expect(ids[0] == "chat-9")
      #expect(ids[1] == String(repeating: "k", count: 64))
      #expect(ids[2] == ids[3])
      #expect(Set(ids).count == 6)
      for id in ids {
        #expect((1...64).contains(id.utf8.count))
        #expect(id.utf8.allSatisfy { (0x21...0x7e).contains($0) })
      }
    }
  }

  @Test("priority and expiry of a row become headers; an own expiry outweighs --store-for")
  func headers() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let expiry = now(plus: 600_000)
      try s.backend.nudge(["title": "T", "priority": 5, "expires_at": .integer(expiry)])
      let plain = try s.backend.nudge(["title": "T"])
      try await s.drain(production: peer, ["--store-for", "2h"])
      let requests = try peer.requests()
      try #require(requests.count == 2)
      #expect(requests[0].header("apns-priority") == "5")
      let own = try #require(requests[0].header("apns-expiration").flatMap { Int64($0) })
      #expect(abs(own - expiry / 1000) <= 1)
      let created = try #require(try s.backend.row(plain)["created_at"].integer)
      let stored = try #require(requests[1].header("apns-expiration").flatMap { Int64($0) })
      #expect(abs(stored - (created / 1000 + 7200)) <= 1)
    }
  }

  @Test(
    "each further push type has its topic and its token",
    arguments: [
      ("voip", ".voip"), ("location", ".location-query"), ("complication", ".complication"),
      ("fileprovider", ".pushkit.fileprovider"), ("pushtotalk", ".voip-ptt"),
      ("widgets", ".push-type.widgets"),
      ("controls", ".push-type.controls"),
    ])
  func kinds(_ kind: String, _ suffix: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.register("phone-1", token: token(2), kind: kind)
      let id = try s.backend.nudge(["kind": .text(kind), "data": #"{"k":1}"#])
      try await s.drain(production: peer)
      #expect(try s.backend.state(id) == "attempted", "\(s.backend.describe(id))")
      let request = try #require(try peer.requests().first)
      #expect(request.token == token(2))
      #expect(request.header("apns-topic") == Backend.topic + suffix)
      #expect(request.header("apns-push-type") == kind)
      #expect(try s.backend.attempts(id).first?["token_kind"] == .text(kind))
      #expect(try s.backend.attempts(id).first?["topic"] == .text(Backend.topic + suffix))
    }
  }
}
