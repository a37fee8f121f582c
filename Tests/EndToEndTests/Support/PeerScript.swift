import Foundation

/// One thing that a peer does with a request; the same words as in `Tests/Peers/peer.py`.
enum Step {
  case answer(
    _ status: Int = 200, reason: String? = nil, timestamp: Int64? = nil, body: String? = nil,
    bodySize: Int? = nil,
    headers: [String: String] = [:], echoesID: Bool = true, ends: Bool = true)
  case interim(Int)
  case wait(milliseconds: Int)
  /// Waits until a file is there.
  case hold(String)
  case reset(ErrorCode)
  case goaway(last: Int, code: ErrorCode = .none, debug: String = "")
  case settings(maxConcurrentStreams: Int)
  case close
  case abort
  case stall

  /// RFC 9113 section 7.
  enum ErrorCode: Int {
    case none = 0
    case `protocol` = 1
    case `internal` = 2
    case refused = 7
    case cancel = 8
  }

  var json: [String: Any] {
    switch self {
    case .answer(
      let status, let reason, let timestamp, let body, let bodySize, let headers, let echoes, let ends):
      var answer: [String: Any] = ["status": status, "headers": headers, "apns_id": echoes, "end": ends]
      if let reason { answer["reason"] = reason }
      if let timestamp { answer["fields"] = ["timestamp": timestamp] }
      if let body { answer["body"] = body }
      if let bodySize { answer["body_size"] = bodySize }
      return ["answer": answer]
    case .interim(let status): return ["interim": status]
    case .wait(let milliseconds): return ["wait_ms": milliseconds]
    case .hold(let path): return ["hold": path]
    case .reset(let code): return ["reset": code.rawValue]
    case .goaway(let last, let code, let debug):
      return ["goaway": ["last": last, "code": code.rawValue, "debug": debug] as [String: Any]]
    case .settings(let streams): return ["settings": ["max_concurrent_streams": streams]]
    case .close: return ["close": true]
    case .abort: return ["abort": true]
    case .stall: return ["stall": true]
    }
  }
}

/// Which requests a rule is for, and what is done with them. No steps: silence.
struct Rule {
  var token: String?
  var topic: String?
  var request: Int?
  var fromRequest: Int?
  var onConnection: Int?
  var connection: Int?
  var forToken: Int?
  var times: Int?
  var steps: [Step]

  init(
    token: String? = nil, topic: String? = nil, request: Int? = nil, fromRequest: Int? = nil,
    onConnection: Int? = nil, connection: Int? = nil, forToken: Int? = nil, times: Int? = nil, _ steps: [Step]
  ) {
    self.token = token
    self.topic = topic
    self.request = request
    self.fromRequest = fromRequest
    self.onConnection = onConnection
    self.connection = connection
    self.forToken = forToken
    self.times = times
    self.steps = steps
  }

  var json: [String: Any] {
    let conditions: [String: Any?] = [
      "token": token, "topic": topic, "request": request, "from_request": fromRequest,
      "on_connection": onConnection, "connection": connection, "for_token": forToken, "times": times,
    ]
    var json = conditions.compactMapValues(\.self)
    json["do"] = steps.map(\.json)
    return json
  }
}

/// A peer's script as it stands in its file.
protocol PeerText {
  var text: String { get throws }
}

/// What a peer thinks of a token when no rule fits.
enum Verdict: String {
  case good, wrong, dead, topic
}

struct PeerScript: PeerText {
  var rules: [Rule] = []
  var tokens: [String: Verdict] = [:]
  var maxConcurrentStreams: Int?
  var answersPings = true
  /// Whether a connection begins with SETTINGS; if not, the step `.settings` sends the first.
  var sendsSettings = true
  var initialWindowSize: Int?
  /// Whether what was read is credited.
  var updatesWindows = true

  var text: String {
    get throws {
      var json: [String: Any] = [
        "rules": rules.map(\.json), "tokens": tokens.mapValues(\.rawValue), "answer_pings": answersPings,
        "send_settings": sendsSettings, "window_updates": updatesWindows,
      ]
      var settings: [String: Int] = [:]
      settings["max_concurrent_streams"] = maxConcurrentStreams
      settings["initial_window_size"] = initialWindowSize
      json["settings"] = settings
      return String(decoding: try JSONSerialization.data(withJSONObject: json), as: UTF8.self)
    }
  }
}
