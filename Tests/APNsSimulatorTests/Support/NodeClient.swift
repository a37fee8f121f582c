import Foundation

/// What Node's HTTP/2 client saw.
struct NodeAnswer: Decodable {
  struct Result: Decodable {
    let status: Int?
    let headers: [String: JSONText]
    let body: String
    let informational: [Int]
    let code: Int?
    let error: String?
    let ms: Int
    /// Its place among the ends of all requests.
    let order: Int

    var reason: String? { json?["reason"] as? String }
    var json: [String: Any]? { (try? JSONSerialization.jsonObject(with: Data(body.utf8))) as? [String: Any] }
    func header(_ name: String) -> String? { headers[name]?.text }
  }

  struct Goaway: Decodable {
    let code: Int
    let last: Int
    let debug: String
  }

  let results: [Result]
  let settings: [Int]
  let goaway: [Goaway]
  let error: String?

  /// A string or a number, as text.
  struct JSONText: Decodable {
    let text: String
    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        self.text = text
      } else if let number = try? container.decode(Int.self) {
        text = String(number)
      } else {
        text = ""
      }
    }
  }
}

/// A request for the client: the headers that make a good alert, changed as a case wants it.
struct TestPush: Encodable {
  var headers: [String: String]
  var body = #"{"aps":{"alert":"hello"}}"#

  static let token = "0a1b2c3d"

  init(token: String = TestPush.token, jwt: String?, _ changes: [String: String?] = [:], body: String? = nil)
  {
    headers = [
      ":path": "/3/device/\(token)", "apns-topic": "com.example.app", "apns-push-type": "alert",
      "apns-priority": "10", "apns-expiration": "0",
    ]
    if let jwt { headers["authorization"] = "bearer \(jwt)" }
    for (name, value) in changes { headers[name] = value }
    if let body { self.body = body }
  }
}

extension SimulatorProcess {
  private struct Input: Encodable {
    let url: String
    let ca: String
    let together: Bool
    let timeout: Int
    let requests: [TestPush]
  }

  /// Sends pushes over one connection of Node's.
  func node(
    _ host: String, _ pushes: [TestPush], together: Bool = false, timeout: Int = 10_000
  ) throws -> NodeAnswer {
    let input = Input(url: url(host), ca: authority, together: together, timeout: timeout, requests: pushes)
    let text = String(decoding: try JSONEncoder().encode(input), as: UTF8.self)
    let ran = try run(
      try Programs.named("node"), ["\(Programs.package)/Tests/Peers/push-client.mjs"], input: text, in: folder
    )
    guard ran.code == 0 else { throw TestFailure("node: \(ran.errors)") }
    return try JSONDecoder().decode(NodeAnswer.self, from: Data(ran.output.utf8))
  }

  /// Sends pushes to the production host.
  func node(
    _ pushes: [TestPush], together: Bool = false, timeout: Int = 10_000
  ) throws -> NodeAnswer {
    try node("production", pushes, together: together, timeout: timeout)
  }

  /// A good provider token, signed with the key that the simulator made.
  func jwt(issuedAt: Int64? = nil) throws -> String {
    let key = try TestKey(file: keyFile)
    return try key.jwt(issuedAt: issuedAt ?? Int64(Date().timeIntervalSince1970))
  }
}
