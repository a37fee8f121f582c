import Foundation

/// What `Tests/Peers/raw.py` writes, frame by frame; the same words as there.
indirect enum RawStep {
  case answer(Int, body: String = "")
  case headers([(String, String)], end: Bool = false, endHeaders: Bool = true, stream: Int? = nil)
  case data(String = "", size: Int = 0, end: Bool = false, stream: Int? = nil)
  case frame(_ type: Int, flags: Int = 0, stream: Int? = nil, hex: String = "")
  case reset(Int)
  case goaway(last: Int, code: Int = 0)
  case settings([(Int, Int)])
  case window(Int)
  case bytes(hex: String)
  case repeated(Int, [RawStep])
  case flood(seconds: Int, [RawStep])
  case wait(milliseconds: Int)
  case hold(String)
  case untilReset(seconds: Int)
  case close
  case abort

  var json: [String: Any] {
    switch self {
    case .answer(let status, let body):
      return ["answer": ["status": status, "body": body] as [String: Any]]
    case .headers(let fields, let end, let endHeaders, let stream):
      var headers: [String: Any] = [
        "fields": fields.map { [$0.0, $0.1] }, "end": end, "end_headers": endHeaders,
      ]
      headers["stream"] = stream
      return ["headers": headers]
    case .data(let text, let size, let end, let stream):
      var data: [String: Any] = ["text": text, "size": size, "end": end]
      data["stream"] = stream
      return ["data": data]
    case .frame(let type, let flags, let stream, let hex):
      var frame: [String: Any] = ["type": type, "flags": flags, "hex": hex]
      frame["stream"] = stream
      return ["frame": frame]
    case .reset(let code): return ["reset": code]
    case .goaway(let last, let code): return ["goaway": ["last": last, "code": code]]
    case .settings(let pairs): return ["settings": pairs.map { [$0.0, $0.1] }]
    case .window(let increment): return ["window": increment]
    case .bytes(let hex): return ["bytes": hex]
    case .repeated(let times, let steps):
      return ["repeat": ["times": times, "do": steps.map(\.json)] as [String: Any]]
    case .flood(let seconds, let steps):
      return ["flood": ["seconds": seconds, "do": steps.map(\.json)] as [String: Any]]
    case .wait(let milliseconds): return ["wait_ms": milliseconds]
    case .hold(let path): return ["hold": path]
    case .untilReset(let seconds): return ["until_reset": seconds]
    case .close: return ["close": true]
    case .abort: return ["abort": true]
    }
  }
}

/// Which requests a rule of a raw peer is for, and what it writes.
struct RawRule {
  var request: Int?
  var connection: Int?
  var onConnection: Int?
  var token: String?
  var steps: [RawStep]

  init(
    request: Int? = nil, connection: Int? = nil, onConnection: Int? = nil, token: String? = nil,
    _ steps: [RawStep]
  ) {
    self.request = request
    self.connection = connection
    self.onConnection = onConnection
    self.token = token
    self.steps = steps
  }

  var json: [String: Any] {
    let conditions: [String: Any?] = [
      "request": request, "connection": connection, "on_connection": onConnection, "token": token,
    ]
    var json = conditions.compactMapValues(\.self)
    json["do"] = steps.map(\.json)
    return json
  }
}

/// The script of a peer that writes frames as it is told.
struct RawScript: PeerText {
  var hello: [RawStep] = [.settings([])]
  var rules: [RawRule] = []
  /// A request's rule is taken at its HEADERS, before its body.
  var actsAtHeaders = false
  /// Bodies are credited.
  var credits = true

  var text: String {
    get throws {
      let json: [String: Any] = [
        "hello": hello.map(\.json), "rules": rules.map(\.json), "at": actsAtHeaders ? "headers" : "end",
        "credit": credits,
      ]
      return String(decoding: try JSONSerialization.data(withJSONObject: json), as: UTF8.self)
    }
  }
}
