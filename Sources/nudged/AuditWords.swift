import Outbox
import Relay

/// Says in plain words what a line of the audit means.
struct AuditWords {
  /// Milliseconds since 1970 UTC.
  var now: Int64
  /// The pid of the running worker; nil when there is none.
  var worker: Int32?

  func what(_ line: AuditLine) -> (words: String, tone: TextTable.Tone) {
    guard line.integer("attempt_id") != nil else { return withoutAttempt(line) }
    var (words, tone) = attempt(line)
    if line.text("state") == "pending" { words += "; more is still to be tried" }
    if line.text("state") == "attempted", let detail = line.text("detail") { words += " (\(detail))" }
    return (words, tone)
  }

  private func attempt(_ line: AuditLine) -> (words: String, tone: TextTable.Tone) {
    let answer = [line.text("status"), line.text("reason")].compactMap(\.self).joined(separator: " ")
    return switch line.text("outcome") {
    case "accepted": ("accepted" + (line.text("latency_ms").map { " after \($0) ms" } ?? ""), .good)
    case "rejected": ("refused by Apple: \(answer)", .bad)
    case "dead_token": ("dead token (\(answer)): the app is gone or has another one", .bad)
    case "wrong_host": ("wrong host (\(answer)): the token is not known there", .doubtful)
    case "unanswered": ("no answer came: it may have arrived", .doubtful)
    case "interrupted": ("the worker ended before the answer: it may have arrived", .doubtful)
    case "unsent": ("not taken: Apple's server never processed the request", .doubtful)
    case let outcome?: (outcome, .doubtful)
    case nil where worker == nil:
      ("open: the worker is gone; the next `nudged run` settles it as interrupted", .doubtful)
    case nil: ("in flight for \(age(line.integer("started_at")))", .doubtful)
    }
  }

  private func withoutAttempt(_ line: AuditLine) -> (words: String, tone: TextTable.Tone) {
    let state = line.text("state") ?? "unknown"
    let detail = line.text("detail").map { ": \($0)" }
    return switch state {
    case "pending": ("pending\(detail ?? ""): \(obstacle(line))", .doubtful)
    case "waiting":
      (
        "waiting for \(age(line.integer("created_at")))\(detail ?? ": for the activity's update token")",
        .doubtful
      )
    case "expired": ("expired" + (detail ?? ": its time ran out before it could be sent"), .bad)
    case "unaddressed", "invalid": (state + (detail ?? ""), .bad)
    default: (state + (detail ?? ""), .quiet)
    }
  }

  /// What a pending nudge waits for, as far as the database and the lock tell. Pauses are in the worker's memory.
  private func obstacle(_ line: AuditLine) -> String {
    if let time = line.integer("not_before_at"), time > now { return "not due before \(WallTime.text(time))" }
    let age = age(max(line.integer("created_at") ?? now, line.integer("not_before_at") ?? 0))
    return worker == nil
      ? "due for \(age), and no worker runs: start `nudged run`"
      : "due for \(age); if it stays so its host is paused, see the worker's log"
  }

  private func age(_ since: Int64?) -> String { WallTime.age(now - (since ?? now)) }
}
