import Glibc
import HTTP2

/// Every request and what was answered, one line of JSON each, appended to a file.
struct RequestLog {
  private let descriptor: Int32
  private var pending: [UInt8] = []

  init(_ path: String) throws(SimulatorFault) {
    descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Files.fault(path) }
  }

  mutating func append(
    _ request: borrowing ServerRequest, _ push: Push, _ plan: Plan, _ reception: Phone.Reception?,
    connection: Int
  ) {
    var line: [(name: String, json: [UInt8])] = [
      ("time", JSONText.string(Self.time(plan.wallMilliseconds))),
      ("host", JSONText.string(plan.host.rawValue)),
      ("connection", Array(String(connection).utf8)), ("stream", Array(String(plan.id.stream).utf8)),
      ("headers", Self.headers(request)), ("body", Self.body(push)),
    ]
    if push.bodyCount > push.body.count { line.append(("body_bytes", Array(String(push.bodyCount).utf8))) }
    line.append(("answer", Self.answer(plan)))
    if let reception { line.append(("phone", Self.phone(reception))) }
    pending += JSONText.object(line)
    pending.append(10)
  }

  /// Writes what was appended: before the answers go out, so that who has an answer finds its line.
  mutating func flush() {
    guard !pending.isEmpty else { return }
    Files.writeAll(pending, to: descriptor)
    pending.removeAll(keepingCapacity: true)
  }

  /// By name, a field that came several times as an array.
  private static func headers(_ request: borrowing ServerRequest) -> [UInt8] {
    var members: [(name: String, values: [[UInt8]])] = []
    for field in request.fields {
      let name = String(decoding: request.bytes[field.name], as: UTF8.self)
      let value = JSONText.string(String(decoding: request.bytes[field.value], as: UTF8.self))
      if let index = members.firstIndex(where: { $0.name == name }) {
        members[index].values.append(value)
      } else {
        members.append((name, [value]))
      }
    }
    return JSONText.object(
      members.map { name, values in
        (name, values.count == 1 ? values[0] : [0x5B] + values.joined(separator: [0x2C]) + [0x5D])
      })
  }

  /// A JSON object as itself, on one line; anything else as a string.
  private static func body(_ push: Push) -> [UInt8] {
    guard push.bodyCount == push.body.count, (try? JSONValue.read(push.body)) != nil else {
      return JSONText.string(String(decoding: push.body, as: UTF8.self))
    }
    // In JSON a line end stands only between tokens (RFC 8259, 7).
    return push.body.map { $0 == 10 || $0 == 13 ? 0x20 : $0 }
  }

  private static func answer(_ plan: Plan) -> [UInt8] {
    var members: [(name: String, json: [UInt8])] = []
    if let status = plan.status { members.append(("status", Array(String(status).utf8))) }
    if let reason = plan.reason { members.append(("reason", JSONText.string(reason))) }
    members.append(("apns_id", JSONText.string(String(decoding: plan.pushID, as: UTF8.self))))
    switch plan.action?.answer {
    case .silence: members.append(("silence", Array("true".utf8)))
    case .reset(let code): members.append(("reset", Array(String(code).utf8)))
    default: break
    }
    if let delay = plan.action?.delay {
      let milliseconds =
        delay.components.seconds * 1000 + delay.components.attoseconds / 1_000_000_000_000_000
      members.append(("delay_ms", Array(String(milliseconds).utf8)))
    }
    if let goaway = plan.action?.goaway { members.append(("goaway", Array(String(goaway.code).utf8))) }
    if let close = plan.action?.close {
      members.append(("close", JSONText.string(close == .before ? "before" : "after")))
    }
    return JSONText.object(members)
  }

  /// What the phone made of a Live Activity's push.
  private static func phone(_ reception: Phone.Reception) -> [UInt8] {
    var members: [(name: String, json: [UInt8])] = []
    if let card = reception.card { members.append(("card", Array(String(card.number).utf8))) }
    if let event = reception.event { members.append(("event", JSONText.string(event.rawValue))) }
    if let objection = reception.objection {
      members.append(("dropped", JSONText.string(objection)))
      members.append(("basis", JSONText.string("inference")))
    }
    return JSONText.object(members)
  }

  /// Milliseconds since 1970 as ISO 8601 in UTC.
  static func time(_ milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    var buffer = [CChar](repeating: 0, count: 32)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%S", &parts)
    let text = String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let fraction = String(milliseconds % 1000)
    return text + "." + String(repeating: "0", count: 3 - fraction.count) + fraction + "Z"
  }
}
