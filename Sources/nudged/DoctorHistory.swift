import Outbox
import Relay

/// The checks of what the tables say: the worker, the queue, the devices, and what each host last answered.
struct HistoryChecks {
  var health: Health
  /// The pid of the running worker, 0 when it is not known here; nil when there is none.
  var worker: Int32?
  /// Milliseconds since 1970 UTC.
  var now: Int64

  var all: [Check] {
    [running, queue] + ["production", "sandbox"].compactMap(answers) + [devices] + tokens
  }

  // MARK: Worker and queue

  private static let service = "systemctl status nudged; journalctl -u nudged"

  private var running: Check {
    if let worker { return .ok("worker", worker > 0 ? "runs with pid \(worker)" : "runs") }
    let left =
      health.inFlight > 0 ? "; it left \(count(health.inFlight, "request")) without an outcome" : ""
    guard health.due > 0 else {
      return .warning("worker", "none runs" + left, fix: HistoryChecks.service)
    }
    return .fault(
      "worker", .unavailable, "none runs, and \(count(health.due, "nudge")) due\(left)",
      fix: HistoryChecks.service)
  }

  private var queue: Check {
    var words = health.due == 0 ? ["nothing is due"] : ["\(count(health.due, "nudge")) due"]
    let age = health.oldestDueAt.map { now - $0 }
    if let age { words[0] += ", the oldest for \(WallTime.age(age))" }
    if health.inFlight > 0 { words.append("\(count(health.inFlight, "request")) without an answer yet") }
    if health.waiting > 0 { words.append("\(health.waiting) waiting for a Live Activity's token") }
    if let next = health.nextAt { words.append("the next at \(WallTime.text(next))") }
    let detail = words.joined(separator: "; ")
    // A worker takes what is due within a second, unless its host is paused.
    guard let age, age > 60_000, worker != nil else { return .ok("queue", detail) }
    return .warning(
      "queue", "\(detail), though a worker runs: is its host paused?", fix: "journalctl -u nudged -p warning")
  }

  // MARK: Answers

  /// What a host said last; nil for one that never answered.
  func answers(_ environment: String) -> Check? {
    let all = health.answers.filter { $0.environment == environment }
    guard let newest = all.first else { return nil }
    let name = "\(environment) answers"
    let accepted = all.first { $0.outcome == "accepted" }
    var words = [accepted.map { "last accepted \(ago($0.lastAt))" } ?? "nothing accepted yet"]
    let inDay = all.filter { $0.lastDay > 0 }
    if !inDay.isEmpty {
      words.append(
        "within a day: " + inDay.map { "\($0.lastDay) \(HistoryChecks.words($0))" }.joined(separator: ", "))
    }
    // To meet the wrong host first is how a token's host is found, unless no host was the right one.
    let refusal = all.first {
      RefusalAdvice($0) != nil && $0.lastID > accepted?.lastID ?? 0
        && ($0.outcome != "wrong_host" || health.setAside > 0)
    }
    guard let refusal, let advice = RefusalAdvice(refusal) else {
      if newest.outcome != "accepted" {
        words.append("newest: \(HistoryChecks.words(newest)), \(ago(newest.lastAt))")
      }
      return .ok(name, words.joined(separator: "; "))
    }
    words.append("newest: \(HistoryChecks.words(refusal)), \(ago(refusal.lastAt)): \(advice.meaning)")
    let detail = words.joined(separator: "; ")
    return advice.stopsAll
      ? .fault(name, .unavailable, detail, fix: advice.fix) : .warning(name, detail, fix: advice.fix)
  }

  /// `403 InvalidProviderToken`, or the outcome where there was no status.
  private static func words(_ answers: Health.Answers) -> String {
    guard answers.outcome != "accepted", let status = answers.status else { return answers.outcome }
    return "\(status)" + (answers.reason.map { " \($0)" } ?? "")
  }

  private func ago(_ time: Int64) -> String { "\(WallTime.age(now - time)) ago" }

  // MARK: Devices and tokens

  private var devices: Check {
    guard health.devices > 0 else {
      return .warning(
        "devices", "none is registered, so there is nobody to send to",
        fix: "nudged register --device ID --topic BUNDLE_ID --token HEX; later the app does it at each launch"
      )
    }
    var lacks: [String] = []
    if health.devicesWithoutTopic > 0 { lacks.append("\(health.devicesWithoutTopic) without a topic") }
    if health.devicesWithoutToken > 0 { lacks.append("\(health.devicesWithoutToken) without a token") }
    let detail = ([count(health.devices, "device")] + lacks).joined(separator: ", ")
    return lacks.isEmpty
      ? .ok("devices", detail)
      : .warning(
        "devices", detail, fix: "`nudged devices`; let the app register topic and token at each launch")
  }

  private var tokens: [Check] {
    var checks: [Check] = []
    if health.setAside > 0 {
      checks.append(
        .warning(
          "tokens",
          "\(count(health.setAside, "token")) set aside: every host that has a key said BadDeviceToken",
          fix:
            "give a key for the environment that the app was built for, then start the app again: it registers"
        ))
    }
    let dead = health.answers.filter { $0.outcome == "dead_token" }.reduce(0) { $0 + $1.lastDay }
    if dead > 0 {
      checks.append(
        .ok("dead tokens", "\(count(dead, "token")) dropped within a day (410): app removed, or a new token"))
    }
    return checks
  }

  private func count(_ number: Int64, _ word: String) -> String {
    "\(number) \(word)\(number == 1 ? "" : "s")"
  }
}
