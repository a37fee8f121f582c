@testable import APNsSimulator
import APNs
@testable import HTTP2
import OpenSSL

extension ServerRequest {
  /// A request out of its fields, in their order.
  init(_ fields: [(String, String)], body: [UInt8]) {
    self.init()
    for (name, value) in fields {
      let bytes = (Array(name.utf8), Array(value.utf8))
      bytes.0.withUnsafeBufferPointer { name in bytes.1.withUnsafeBufferPointer { append(name, $0) } }
    }
    body.withUnsafeBufferPointer { appendBody($0) }
  }
}

/// A judge with a key of its own, and a connection to it; time moves only when told.
struct Court {
  let key: TestKey
  /// One that is good, so that a connection sees the same again and again.
  let jwt: String
  var judge: Judge
  var connection = ConnectionCredentials()
  var now = ContinuousClock.now
  var wallSeconds: Int64 = 1_800_000_000

  init(rules: Examination.Rules = .init(), tokens: String? = nil) throws {
    key = try TestKey()
    jwt = try key.jwt(issuedAt: 1_800_000_000)
    judge = Judge(
      credentials: Credentials(teamID: "SIMULATOR1", keys: ["LOCALKEY01": VerifyingKey(of: key.key)]),
      rules: rules)
    if let tokens { judge.tokens = try TokenTable(Array(tokens.utf8)) }
  }

  /// The fields of a good alert.
  func good(token: String = TestPush.token) -> [(String, String)] {
    [
      (":method", "POST"), (":scheme", "https"), (":authority", "localhost"), (":path", "/3/device/\(token)"),
      ("authorization", "bearer \(jwt)"), ("apns-topic", "com.example.app"),
      ("apns-push-type", "alert"), ("apns-priority", "10"), ("apns-expiration", "1800000600"),
      ("apns-id", "123e4567-e89b-12d3-a456-426614174000"), ("apns-collapse-id", "turn-1"),
    ]
  }

  mutating func judge(
    _ fields: [(String, String)], body: [UInt8] = Array(#"{"aps":{"alert":"hello"}}"#.utf8),
    host: Environment = .production
  ) -> Refusal? {
    judge.refusal(
      of: Push(ServerRequest(fields, body: body)), on: &connection, host: host,
      wallMilliseconds: wallSeconds * 1000, now: now)
  }
}

extension [(String, String)] {
  /// With one field set to another value, or left out.
  func with(_ name: String, _ value: String?) -> Self {
    var copy = self
    let index = copy.firstIndex { $0.0 == name }
    switch (index, value) {
    case (let index?, let value?): copy[index].1 = value
    case (let index?, nil): copy.remove(at: index)
    case (nil, let value?): copy.append((name, value))
    case (nil, nil): break
    }
    return copy
  }
}
