import APNs
import Glibc
import HTTP2
import OpenSSL

/// What is to be answered to a request: the judge's refusal or acceptance, and what a rule makes of it.
struct Plan {
  let id: RequestID
  /// The `apns-id` that goes back.
  let pushID: [UInt8]
  let host: Environment
  let refusal: Refusal?
  let action: ScriptAction?
  let wallMilliseconds: Int64

  /// The status that goes out; nil for none.
  var status: Int? {
    switch action?.answer {
    case .status(let status, _): status
    case .silence, .reset: nil
    case .ordinary, nil: action?.close == .before ? nil : refusal?.status ?? 200
    }
  }

  /// The reason that goes out with the status.
  var reason: String? {
    switch action?.answer {
    case .status(_, let reason): reason
    case .silence, .reset: nil
    case .ordinary, nil: refusal?.reason
    }
  }

  /// The phone shows it: it was accepted, even where the answer is lost.
  var reachesPhone: Bool {
    if let action, action.disowns(stream: id.stream) { return false }
    guard let status else { return refusal == nil }
    return status == 200
  }
}

/// Writes answers in the shape that APNs gives them (Apple, "Handling notification responses from APNs").
struct Answerer: ~Copyable {
  private var random = RandomBytes()
  private var response = ServerResponse()

  /// The `apns-id` of a request, or a new one where it has none that is good.
  mutating func pushID(of push: Push, isGood: Bool) -> [UInt8] {
    if isGood, let id = push.id { return Array(push.bytes[id]) }
    var bytes: [UInt8] = []
    nextID().append(to: &bytes)
    return bytes
  }

  private mutating func nextID() -> PushID {
    let (high, low) = random.next16()
    return PushID(randomHigh: high, randomLow: low)
  }

  /// Carries out a plan.
  mutating func perform(_ plan: Plan, on connection: ServerConnection) {
    guard let session = connection.session, session.isOpen(plan.id) else { return }
    if let goaway = plan.action?.goaway {
      let last: Int32 =
        switch goaway.last {
        case .this: plan.id.stream
        case .before: max(0, plan.id.stream - 2)
        case .stream(let stream): stream
        }
      session.goaway(lastStream: last, code: goaway.code, debug: goaway.debug)
    }
    if plan.action?.close == .before {
      connection.flush()
      return connection.close()
    }
    switch plan.action?.answer {
    case .silence: break
    case .reset(let code): session.reset(plan.id, code: code)
    case .ordinary, .status, nil: respond(plan, session)
    }
    if plan.action?.close == .after { connection.closeWhenWritten() }
  }

  private mutating func respond(_ plan: Plan, _ session: ServerSession) {
    guard let status = plan.status else { return }
    response.removeAll()
    response.status = status
    response.fields.append("apns-id", plan.pushID, .never)
    // Documented: only the sandbox has it, for device pushes.
    if plan.host == .sandbox, status == 200 {
      let id = nextID()
      response.fields.append("apns-unique-id", .never) { id.append(to: &$0) }
    }
    if status != 200 || plan.action?.body != nil || !(plan.action?.members.isEmpty ?? true) {
      appendBody(plan, status)
    }
    session.respond(plan.id, response)
  }

  private mutating func appendBody(_ plan: Plan, _ status: Int) {
    if let body = plan.action?.body {
      response.body = body
    } else {
      var members: [(name: String, json: [UInt8])] = []
      if let reason = plan.reason { members.append(("reason", JSONText.string(reason))) }
      let scripted = plan.action?.members ?? []
      // Documented: `timestamp` with 410 only, in milliseconds.
      if status == 410, !scripted.contains(where: { $0.name == "timestamp" }) {
        let timestamp = plan.refusal?.timestamp ?? plan.wallMilliseconds
        members.append(("timestamp", Array(String(timestamp).utf8)))
      }
      members += scripted
      guard !members.isEmpty else { return }
      response.body = JSONText.object(members)
    }
    if !response.body.isEmpty { response.fields.append("content-type", "application/json", .incremental) }
  }
}

/// Writes JSON.
enum JSONText {
  static func object(_ members: [(name: String, json: [UInt8])]) -> [UInt8] {
    var result: [UInt8] = [UInt8(ascii: "{")]
    for (index, member) in members.enumerated() {
      if index > 0 { result.append(UInt8(ascii: ",")) }
      result += string(member.name)
      result.append(UInt8(ascii: ":"))
      result += member.json
    }
    result.append(UInt8(ascii: "}"))
    return result
  }

  /// A string, its quotation marks included; every control character is escaped.
  static func string(_ text: String) -> [UInt8] {
    var result: [UInt8] = [UInt8(ascii: "\"")]
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): result += [UInt8(ascii: "\\"), byte]
      case 0..<0x20, 0x7F:
        let digits = Array("0123456789abcdef".utf8)
        result += Array("\\u00".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: result.append(byte)
      }
    }
    result.append(UInt8(ascii: "\""))
    return result
  }
}
