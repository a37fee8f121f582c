import APNs
import HTTP2

/// Rules that answer some requests otherwise than the judge would: the first that matches is followed.
struct Script: Sendable {
  let rules: [ScriptRule]

  init(rules: [ScriptRule] = []) { self.rules = rules }

  /// Whether any rule counts the requests of each token.
  var countsTokens: Bool { rules.contains { $0.counted == .token } }

  func rule(for request: Subject) -> ScriptRule? { rules.first { $0.matches(request) } }

  /// What rules are matched with.
  struct Subject {
    var token: [UInt8]
    var host: Environment
    /// The number of the request, from 1, among all, those of its host, its connection and its token.
    var ofServer: Int
    var ofHost: Int
    var ofConnection: Int
    var ofToken: Int
  }
}

/// One rule of a script.
struct ScriptRule: Sendable {
  enum Counted: String, Sendable, CaseIterable { case server, host, connection, token }

  /// Lower case; nil: any.
  var token: [UInt8]?
  var host: Environment?
  /// Which requests by number; nil: all.
  var requests: ClosedRange<Int>?
  var counted = Counted.server
  var action = ScriptAction()

  func matches(_ subject: Script.Subject) -> Bool {
    if let token, token != subject.token { return false }
    if let host, host != subject.host { return false }
    guard let requests else { return true }
    switch counted {
    case .server: return requests.contains(subject.ofServer)
    case .host: return requests.contains(subject.ofHost)
    case .connection: return requests.contains(subject.ofConnection)
    case .token: return requests.contains(subject.ofToken)
    }
  }
}

/// What a rule does, in this order: SETTINGS, 103, delay, GOAWAY, the answer (or none, or a reset), close.
struct ScriptAction: Sendable {
  enum Answer: Sendable {
    /// As the judge says.
    case ordinary
    case status(Int, reason: String?)
    case silence
    case reset(UInt32)
  }

  enum LastStream: Sendable, Equatable {
    /// The stream of this request, or the one before it.
    case this, before
    case stream(Int32)
  }

  struct Goaway: Sendable {
    var last = LastStream.this
    var code: UInt32 = 0
    var debug: [UInt8] = []
  }

  enum Close: Sendable { case before, after }

  var settings: [ServerSetting] = []
  var sendsHints = false
  var delay: Duration?
  var goaway: Goaway?
  var answer = Answer.ordinary
  /// Members of the answer's body besides the reason, as JSON.
  var members: [(name: String, json: [UInt8])] = []
  /// The whole of the answer's body, whatever it is.
  var body: [UInt8]?
  var close: Close?

  /// A request that a client may take as never processed (RFC 9113, 8.7).
  func disowns(stream: Int32) -> Bool {
    if case .reset(7) = answer { return true }
    switch goaway?.last {
    case .before: return true
    case .stream(let last): return last < stream
    case .this, nil: return false
    }
  }
}

/// A script in force, and how many requests came since it is.
struct ScriptRun {
  private let script: Script
  private var ofServer = 0
  private var ofHost: [Environment: Int] = [:]
  private var ofToken: [[UInt8]: Int] = [:]

  init(_ script: Script) { self.script = script }

  /// What the script wants done about a request; nil when no rule is for it.
  ///
  /// - Parameter ofConnection: the number of the request on its connection.
  mutating func action(for push: Push, host: Environment, ofConnection: Int) -> ScriptAction? {
    guard !script.rules.isEmpty else { return nil }
    ofServer += 1
    ofHost[host, default: 0] += 1
    let token = push.token.map { TokenTable.key(push.bytes[$0]) } ?? []
    if script.countsTokens { ofToken[token, default: 0] += 1 }
    return script.rule(
      for: Script.Subject(
        token: token, host: host, ofServer: ofServer, ofHost: ofHost[host, default: 0],
        ofConnection: ofConnection, ofToken: ofToken[token, default: 0]))?.action
  }
}
