import Foundation
import Testing

@Suite("One push")
struct OnePushTests {
  @Test(
    "a committed row becomes one push with exact headers and body, and one attempt row",
    arguments: Stack.allCases)
  func oneRow(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(stack)
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let id = try s.backend.nudge([
        "event": "turn_finished", "record_id": "m-17", "conversation_id": "c-9", "title": "Anna",
        "subtitle": "Plans",
        "body": "Dinner at eight?", "aps": #"{"sound":"default","badge":3}"#,
        "data": #"{"deep":{"link":"x"}}"#,
      ])
      try await s.backend.settled(id)

      let requests = try peer.requests()
      #expect(requests.count == 1)
      let request = try #require(requests.first)
      let attempt = try #require(try s.backend.attempts(id).first)
      let row = try s.backend.row(id)
      let names = (request.headers ?? []).compactMap(\.first)
      #expect(Set(names).count == names.count, "a header twice: \(names)")
      let pseudo = names.prefix { $0.hasPrefix(":") }
      #expect(Set(pseudo) == [":method", ":scheme", ":path", ":authority"])
      #expect(!names.dropFirst(4).contains { $0.hasPrefix(":") })
      #expect(request.header(":method") == "POST")
      #expect(request.header(":scheme") == "https")
      #expect(request.header(":authority") == "127.0.0.1:\(peer.port)")
      #expect(request.header(":path") == "/3/device/\(token(1))")
      #expect(request.header("authorization")?.hasPrefix("bearer ") == true)
      #expect(request.header("apns-topic") == Backend.topic)
      #expect(request.header("apns-push-type") == "alert")
      #expect(request.header("apns-priority") == "10")
      #expect(request.header("apns-id") == attempt["apns_id"].text)
      #expect(request.header("apns-id")?.contains(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) == true)
      #expect(request.header("apns-collapse-id") == nil)
      let created = try #require(row["created_at"].integer)
      let expiration = try #require(request.header("apns-expiration").flatMap { Int64($0) })
      #expect(abs(expiration - (created / 1000 + 86_400)) <= 1)
      if let length = request.header("content-length") {
        #expect(length == "\(request.body?.utf8.count ?? 0)")
      }

      #expect(
        request.alert as NSDictionary == ["title": "Anna", "subtitle": "Plans", "body": "Dinner at eight?"])
      #expect(
        request.aps.filter { $0.key != "alert" } as NSDictionary
          == ["sound": "default", "badge": 3, "thread-id": "c-9"])
      #expect(
        request.json.filter { $0.key != "aps" } as NSDictionary
          == ["deep": ["link": "x"], "conversation_id": "c-9"])

      #expect(try s.backend.attempts(id).count == 1)
      #expect(attempt["outcome"] == "accepted")
      #expect(attempt["status"] == 200)
      #expect(attempt["reason"] == .null)
      #expect(attempt["device_id"] == "phone-1")
      #expect(attempt["token_kind"] == "alert")
      #expect(attempt["environment"] == "production")
      #expect(attempt["push_type"] == "alert")
      #expect(attempt["topic"] == .text(Backend.topic))
      #expect(attempt["may_have_buzzed"] == 1)
      let hash = try runToEnd(
        ["/bin/sh", "-c", "printf %s \(token(1)) | sha256sum"], folder: s.folder
      ).output.prefix(16)
      #expect(attempt["token_hash"] == .text(String(hash)))
      let started = try #require(attempt["started_at"].integer)
      let finished = try #require(attempt["finished_at"].integer)
      #expect(created <= started && started <= finished)
      #expect((row["settled_at"].integer ?? 0) >= started)
      #expect(try s.backend.tokens().first?["environment"] == "production")
      #expect(try s.backend.tokens().first?["proven_at"].integer != nil)
    }
  }

  @Test("a record and its nudge commit together, from plain Python")
  func python() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      try s.backend.transaction([
        .init("insert into message (id, text) values (1, 'Done.')"),
        .init("insert into nudge_outbox (record_id, title, body) values ('1', 'Assistant', 'Done.')"),
      ])
      try await peer.waitForRequests(1)
      // A transaction that is rolled back leaves nothing to send: the next one is the second and last request.
      #expect(throws: Failure.self) {
        try s.backend.transaction([
          .init("insert into nudge_outbox (title) values ('never')"),
          .init("insert into message (id, text) values (1, 'twice')"),
        ])
      }
      let last = try s.backend.nudge(["title": "later"])
      try await s.backend.settled(last)
      #expect(try peer.requests().map { $0.alert["title"] as? String } == ["Assistant", "later"])
    }
  }

  @Test("a record and its nudge commit together, from the sqlite3 shell")
  func shell() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      _ = try s.worker(production: peer)
      let sql = """
        insert into nudge_registration (device_id, topic, token) values ('phone-1', '\(Backend.topic)', '\(token(1))');
        begin;
        insert into message (text) values ('Done.');
        insert into nudge_outbox (record_id, title) values (last_insert_rowid(), 'From the shell');
        commit;
        """
      let result = try runToEnd([try Paths.program("sqlite3"), "-bail", s.database, sql], folder: s.folder)
      #expect(result.exit == .code(0), "\(result.errors)")
      let request = try #require(try await peer.waitForRequests(1).first)
      #expect(request.alert["title"] as? String == "From the shell")
      try await s.backend.settled(1)
      #expect(try s.backend.outcomes(1) == ["accepted"])
    }
  }

  @Test("a background push is silent, at priority 5 and of its own type")
  func background() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge(["kind": "background", "data": #"{"sync":true}"#])
      try await s.drain(production: peer)
      let request = try #require(try peer.requests().first)
      #expect(request.header("apns-push-type") == "background")
      #expect(request.header("apns-priority") == "5")
      #expect(request.header("apns-topic") == Backend.topic)
      #expect(request.aps as NSDictionary == ["content-available": 1])
      #expect(request.json["sync"] as? Bool == true)
      #expect(try s.backend.outcomes(id) == ["accepted"])
    }
  }

  @Test("the provider token is verified by a library that is not ours, and is minted once")
  func providerToken() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      for number in 1...5 { try s.backend.nudge(["title": .text("\(number)")]) }
      let before = Int64(Date().timeIntervalSince1970)
      try await s.drain(production: peer)
      let tokens = Set(try peer.requests().compactMap { $0.header("authorization") })
      #expect(try peer.requests().count == 5)
      #expect(tokens.count == 1)
      let verified = try verify(try #require(tokens.first), key: s.credentials.providerPublicKey, s)
      #expect(verified.header["alg"] as? String == "ES256")
      #expect(verified.header["kid"] as? String == Credentials.keyID)
      #expect(verified.claims["iss"] as? String == Credentials.teamID)
      let issued = try #require(verified.claims["iat"] as? Int)
      #expect((before - 1...before + 60).contains(Int64(issued)))
      #expect(Set(verified.claims.keys) == ["iss", "iat"])
      #expect(verified.signatureBytes == 64)
    }
  }

  @Test("each host has a key of its own when two are given")
  func twoKeys() async throws {
    try await scenario { s in
      let production = try await s.peer()
      let sandbox = try await s.peer()
      try s.backend.register("phone-1", token: token(1), environment: "production")
      try s.backend.register("phone-2", token: token(2), environment: "sandbox")
      try s.backend.nudge(["title": "both", "surface": "*"])
      let result = try await s.nudged([
        "run", "--drain", "--database", s.database, "--ca-file", s.credentials.authority,
        "--team-id", Credentials.teamID, "--production-url", production.url, "--sandbox-url", sandbox.url,
        "--production-key-file", s.credentials.providerKey, "--sandbox-key-file",
        s.credentials.secondProviderKey,
      ])
      #expect(result.exit == .code(0), "\(result.errors)")
      let first = try #require(try production.requests().first)
      let second = try #require(try sandbox.requests().first)
      #expect(first.token == token(1))
      #expect(second.token == token(2))
      let one = try verify(
        try #require(first.header("authorization")), key: s.credentials.providerPublicKey, s)
      let two = try verify(
        try #require(second.header("authorization")), key: s.credentials.secondProviderPublicKey, s)
      #expect(one.header["kid"] as? String == Credentials.keyID)
      #expect(two.header["kid"] as? String == Credentials.secondKeyID)
    }
  }

  @Test("an informational answer is none: the final one counts", arguments: Stack.allCases)
  func interim(_ stack: Stack) async throws {
    try await scenario { s in
      let peer = try await s.peer(
        stack,
        PeerScript(rules: [Rule([.interim(103), .wait(milliseconds: 20), .answer(400, reason: "BadTopic")])]))
      try s.backend.register("phone-1", token: token(1))
      let id = try s.backend.nudge()
      _ = try s.worker(production: peer)
      try await s.backend.settled(id)
      let attempt = try #require(try s.backend.attempts(id).first)
      #expect(attempt["status"] == 400)
      #expect(attempt["reason"] == "BadTopic")
    }
  }

  @Test("a database with a rollback journal works the same")
  func rollbackJournal() async throws {
    try await scenario(journal: "delete") { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      _ = try s.worker(production: peer)
      let first = try s.backend.nudge(["title": "one"])
      try await s.backend.settled(first)
      let second = try s.backend.nudge(["title": "two"])
      try await s.backend.settled(second)
      #expect(try peer.requests().count == 2)
      #expect(try s.backend.value("pragma journal_mode") == "delete")
    }
  }

  /// Verifies a header value `bearer <token>` with Python's cryptography.
  private func verify(
    _ authorization: String, key: String, _ s: Scenario
  ) throws -> (header: [String: Any], claims: [String: Any], signatureBytes: Int?) {
    let result = try runToEnd(
      [Paths.python, "\(Paths.peers)/verify_token.py", key], folder: s.folder,
      input: String(authorization.dropFirst("bearer ".count)))
    guard result.exit == .code(0) else { throw Failure("the token does not verify: \(result.errors)") }
    let json = try #require(
      try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
    return (
      json["header"] as? [String: Any] ?? [:], json["claims"] as? [String: Any] ?? [:],
      json["signature_bytes"] as? Int
    )
  }
}
