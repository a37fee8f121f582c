import Foundation
import Glibc
import Testing

/// The HTTP/2 stacks of the peers, none of them ours.
enum Stack: String, CaseIterable, CustomTestStringConvertible {
  case python = "Python h2"
  case node = "Node http2"
  /// No stack at all: for what none of them would write, with a `RawScript`.
  case raw = "raw frames"

  /// Those that a `PeerScript` is for.
  static let allCases: [Stack] = [.python, .node]

  var testDescription: String { rawValue }

  func command() throws -> [String] {
    switch self {
    case .python: [Paths.python, "\(Paths.peers)/peer.py"]
    case .node: [try Paths.program("node"), "\(Paths.peers)/peer.mjs"]
    case .raw: [Paths.python, "\(Paths.peers)/raw.py"]
    }
  }
}

/// A scripted push service in a process of its own.
final class TestPeer {
  /// One line of a peer's log.
  struct Event: Decodable {
    let event: String
    let atMs: Double
    let connection: Int?
    let stream: Int?
    let request: Int?
    let token: String?
    let topic: String?
    let headers: [[String]]?
    let body: String?
    let bodyHex: String?
    let code: Int?
    let text: String?

    private enum CodingKeys: String, CodingKey {
      case event, connection, stream, request, token, topic, headers, body, code, text
      case atMs = "at_ms"
      case bodyHex = "body_hex"
    }

    /// The values of a header, in order.
    func values(_ name: String) -> [String] {
      (headers ?? []).filter { $0.first == name }.compactMap(\.last)
    }

    func header(_ name: String) -> String? { values(name).first }

    /// The body as parsed JSON.
    var json: [String: Any] {
      let data = Data((body ?? "").utf8)
      return (try? JSONSerialization.jsonObject(with: data)) as? [String: Any] ?? [:]
    }

    var aps: [String: Any] { json["aps"] as? [String: Any] ?? [:] }
    var alert: [String: Any] { aps["alert"] as? [String: Any] ?? [:] }
  }

  let port: Int
  private let child: Child
  private let scriptPath: String
  private let logPath: String
  private var parsed = 0
  private var cache: [Event] = []

  var url: String { "https://127.0.0.1:\(port)" }

  /// Starts the peer and waits for its port. `port` 0 takes a free one.
  init(
    _ name: String, stack: Stack, script: any PeerText, certificate: String, key: String, folder: String,
    port: Int = 0, alpn: Bool = true
  ) async throws {
    scriptPath = "\(folder)/\(name).json"
    logPath = "\(folder)/\(name).log"
    try script.text.write(toFile: scriptPath, atomically: true, encoding: .utf8)
    var command =
      try stack.command() + [
        "--certificate", certificate, "--key", key, "--script", scriptPath, "--log", logPath, "--port",
        "\(port)",
      ]
    if !alpn { command.append("--no-alpn") }
    let child = try Child(name, command, folder: folder)
    self.child = child
    try await eventually("\(stack.rawValue) listens", state: { child.errors }) {
      if !child.isRunning { throw Failure("\(name) ended: \(child.errors)") }
      return child.output.contains("\n")
    }
    struct Listening: Decodable { let port: Int }
    self.port = try JSONDecoder().decode(Listening.self, from: Data(child.output.utf8)).port
  }

  func end() {
    child.kill()
  }

  /// Stops the process where it stands: the system goes on accepting connections for it, and nothing answers.
  func freeze() {
    child.signal(SIGSTOP)
  }

  func thaw() {
    child.signal(SIGCONT)
  }

  /// Replaces the script; the next request already meets the new one.
  func script(_ script: any PeerText) throws {
    try script.text.write(toFile: scriptPath, atomically: true, encoding: .utf8)
  }

  /// Does `steps` on every open connection now, unasked.
  func perform(_ steps: [Step]) throws {
    let command = try JSONSerialization.data(withJSONObject: ["do": steps.map(\.json)])
    try child.write(line: String(decoding: command, as: UTF8.self))
  }

  /// Everything that the peer has logged until now.
  func events(_ kind: String? = nil) throws -> [Event] {
    if let data = FileManager.default.contents(atPath: logPath), data.count > parsed {
      let fresh = data.dropFirst(parsed)
      if let last = fresh.lastIndex(of: 0x0a) {
        for line in fresh[...last].split(separator: 0x0a) {
          cache.append(try JSONDecoder().decode(Event.self, from: Data(line)))
        }
        parsed = last + 1
      }
    }
    return kind.map { kind in cache.filter { $0.event == kind } } ?? cache
  }

  /// The requests that arrived whole, in order.
  func requests() throws -> [Event] { try events("request") }

  /// The alerts' titles in the order in which they arrived.
  func titles() throws -> [String?] { try requests().map { $0.alert["title"] as? String } }

  @discardableResult
  func waitForRequests(_ count: Int, within limit: Duration = .seconds(15)) async throws -> [Event] {
    try await eventually(
      "\(count) requests", within: limit, state: { "last: \(((try? events()) ?? []).suffix(3))" }
    ) {
      try requests().count >= count
    }
    return try requests()
  }
}
