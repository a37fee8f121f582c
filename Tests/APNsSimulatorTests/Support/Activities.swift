import APNs

@testable import APNsSimulator
@testable import HTTP2

/// The members of `aps` of a good Live Activity push, as JSON texts, changed as a case wants it.
struct ActivityBody: Sendable {
  private var members: [String: String]

  init(_ event: String, timestamp: Int64, _ changes: [String: String?] = [:]) {
    members = ["event": "\"\(event)\"", "timestamp": "\(timestamp)", "content-state": #"{"step":1}"#]
    if event == "start" {
      members["attributes-type"] = #""TurnAttributes""#
      members["attributes"] = #"{"activityId":"turn-7"}"#
      members["alert"] = #"{"title":"On it","body":"Looking"}"#
      members["input-push-token"] = "1"
    }
    for (name, value) in changes { members[name] = value }
  }

  var text: String {
    let inside = members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
    return "{\"aps\":{\(inside.joined(separator: ","))}}"
  }

  static let topic = "com.example.app.push-type.liveactivity"
}

extension TestPush {
  init(activity body: ActivityBody, token: String, jwt: String) {
    self.init(
      token: token, jwt: jwt, ["apns-topic": ActivityBody.topic, "apns-push-type": "liveactivity"],
      body: body.text)
  }
}

/// A phone on which time moves only when told.
struct TestPhone {
  var phone = Phone()
  var model = LockScreenModel()
  /// Seconds since 1970.
  var time: Int64 = 1_800_000_000

  mutating func push(_ body: ActivityBody, token: String) -> Phone.Reception? {
    let fields = [
      (":method", "POST"), (":path", "/3/device/\(token)"), ("apns-topic", ActivityBody.topic),
      ("apns-push-type", "liveactivity"),
    ]
    let push = Push(ServerRequest(fields, body: Array(body.text.utf8)))
    let plan = Plan(
      id: RequestID(slot: 0, stream: 1), pushID: [], host: .production, refusal: nil, action: nil,
      wallMilliseconds: time * 1000)
    let reception = phone.receive(push, plan, now: ContinuousClock.now)
    model.add(Shown(push, plan, reception))
    return reception
  }

  /// Moves the time, and tells what has happened.
  mutating func wait(until time: Int64) -> [String] {
    self.time = time
    phone.pass(to: time * 1000, now: ContinuousClock.now)
    return phone.takeHappenings().map {
      model.put($0.card)
      return $0.words
    }
  }
}
