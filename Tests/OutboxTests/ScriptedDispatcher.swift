import SQLite

@testable import Outbox

/// An attempt that was made ready.
struct Staged: Equatable {
  var attempt: Int64
  var nudge: Int64
  var device: String
  var token: String
  var environment: String
  var apnsID: [UInt8]
  var startedAt: Int64
  var tokenID: Int64
  var registeredAt: Int64
  var tokenEnvironment: String?
  var isProven: Bool
  /// Of a Live Activity's event, in seconds.
  var timestamp: Int64?
}

/// The network's side of a claim, as a test wants it; it routes as the real one does.
final class ScriptedDispatcher: Dispatcher {
  /// Free streams of each host; a staged attempt takes one.
  var rooms: [String: Int] = [:]
  /// The hosts in the order of asking.
  var order: [String] = []
  /// Devices that are paused, until when.
  var pausedDevices: [String: Int64] = [:]
  /// Devices whose token or topic is malformed.
  var malformedDevices: Set<String> = []
  /// When the claim runs; stands in `Staged`.
  var wall: Int64 = 0
  /// Hosts that say that they have room and then take nothing, as with a full send window.
  var stuckHosts: Set<String> = []

  private(set) var examined = 0
  private(set) var routed = 0
  /// How many devices were read.
  private(set) var hashed = 0
  var staged: [Staged] = []
  /// Every attempt that was ever staged and not discarded, however its transaction ended.
  private(set) var history: [Staged] = []
  private var identifiers = 0
  private var chosen = ""

  /// What was staged last is never sent.
  func discard() {
    history.removeLast(staged.count)
    staged.removeAll()
  }

  func examine(_ nudge: borrowing Nudge) -> Examination {
    examined += 1
    if nudge.isNull(.title) { return .invalid("title is NULL") }
    switch nudge.storageClass(.kind) == .text ? nudge.string(.kind) : nil {
    case "alert": return .deliverable(tokenKind: "alert", scope: nil)
    case "activity_start": return .deliverable(tokenKind: "activity_start", scope: .attributesType)
    case "activity_update", "activity_end":
      return .deliverable(tokenKind: "activity_update", scope: .activityID)
    default: return .invalid("kind is not alert")
    }
  }

  func fault(of target: borrowing Target) -> String? {
    if malformedDevices.contains(text(target.deviceID())) { return "token is malformed" }
    return target.topic().count == 0 ? "the device has no topic" : nil
  }

  func route(_ target: borrowing Target, wrongHosts: [String]) -> Route {
    routed += 1
    let device = text(target.deviceID())
    var hosts = order
    if let known = target.environment, let index = hosts.firstIndex(of: known) {
      hosts.insert(hosts.remove(at: index), at: 0)
    }
    guard let host = hosts.first(where: { !wrongHosts.contains($0) }) else { return .exhausted }
    if let until = pausedDevices[device] { return .waitUntil(until) }
    guard rooms[host, default: 0] > 0, !stuckHosts.contains(host) else { return .wait(environment: host) }
    chosen = host
    return .send(environment: host)
  }

  func hash(_ token: Span<UInt8>, into hash: inout [UInt8]) {
    hashed += 1
    var value: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in token.indices { value = (value ^ UInt64(token[index])) &* 0x100_0000_01b3 }
    let digits = String(value, radix: 16)
    hash += Array(String(repeating: "0", count: 16 - digits.count).utf8) + Array(digits.utf8)
  }

  let attemptPushType = Array("alert".utf8)
  let attemptTopic = Array("com.example.app".utf8)

  func makeIdentifier(into identifier: inout [UInt8]) {
    identifiers += 1
    let digits = String(identifiers)
    identifier += Array(
      ("00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits).utf8)
  }

  func stage(
    attempt id: Int64, apnsID: [UInt8], nudge: borrowing Nudge, target: borrowing Target, timestamp: Int64?
  ) {
    rooms[chosen, default: 0] -= 1
    let entry = Staged(
      attempt: id, nudge: nudge.id, device: text(target.deviceID()), token: text(target.token()),
      environment: chosen, apnsID: apnsID, startedAt: wall, tokenID: target.tokenID,
      registeredAt: target.registeredAt, tokenEnvironment: target.environment, isProven: target.isProven,
      timestamp: timestamp)
    staged.append(entry)
    history.append(entry)
  }

  private func text(_ bytes: Span<UInt8>) -> String {
    bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
  }
}
