import Outbox

/// The figures in Prometheus' text format 0.0.4, without timestamps, as node_exporter's textfile collector wants it
/// (https://prometheus.io/docs/instrumenting/exposition_formats/).
///
/// The history in the database shrinks as it ages, so nothing that is summed up over all of it could be a counter.
/// What has ended is counted from midnight UTC: such a counter only grows, and its daily return to zero is to `rate`
/// and `increase` what the restart of a process is.
struct Exposition {
  private(set) var text = ""

  static func text(_ figures: Figures, now: Int64, hasWorker: Bool) -> String {
    var exposition = Exposition()
    exposition.write(figures, now: now, hasWorker: hasWorker)
    return exposition.text
  }

  private mutating func write(_ figures: Figures, now: Int64, hasWorker: Bool) {
    family("nudged_worker_running", "gauge", "Whether a worker holds the database's lock.")
    sample("nudged_worker_running", hasWorker ? 1 : 0)
    family("nudged_nudges_written_total", "counter", "Nudges ever written, by the ids of nudge_outbox.")
    sample("nudged_nudges_written_total", figures.written)
    family(
      "nudged_nudges_last_day", "gauge",
      "Nudges written in the last 24 hours, by their state now; the states add up to all of them.")
    for state in Exposition.states {
      sample("nudged_nudges_last_day", ["state": state], figures.lastDay[state] ?? 0)
    }
    family("nudged_nudges_open", "gauge", "Nudges that have not ended, whenever they were written.")
    sample("nudged_nudges_open", ["state": "pending"], figures.pending)
    sample("nudged_nudges_open", ["state": "waiting"], figures.waiting)
    family("nudged_nudges_due", "gauge", "Pending nudges whose time has come.")
    sample("nudged_nudges_due", figures.due)
    family(
      "nudged_oldest_due_age_seconds", "gauge",
      "How long the oldest due nudge has been due; 0 without one. It grows while its host is paused.")
    sample("nudged_oldest_due_age_seconds", seconds(figures.dueSince.map { max(0, now - $0) } ?? 0))
    family("nudged_attempts_in_flight", "gauge", "Requests without an outcome yet.")
    sample("nudged_attempts_in_flight", figures.inFlight)
    attempts(figures.attempts)
    if let time = figures.lastAccepted {
      family("nudged_last_accepted_timestamp_seconds", "gauge", "When Apple last accepted a nudge.")
      sample("nudged_last_accepted_timestamp_seconds", seconds(time))
    }
    tokens(figures.tokens)
  }

  private mutating func attempts(_ groups: [Figures.Attempts]) {
    family(
      "nudged_attempts_total", "counter",
      "Attempts that have ended since midnight UTC, by host and outcome; it begins again every day.")
    for environment in Exposition.environments {
      for outcome in Exposition.outcomes {
        let count = groups.filter { $0.environment == environment && $0.outcome == outcome }
          .reduce(0) { $0 + $1.count }
        sample("nudged_attempts_total", ["environment": environment, "outcome": outcome], count)
      }
    }
    family(
      "nudged_answers_total", "counter",
      "Apple's answers since midnight UTC, by host and status; it begins again every day.")
    for environment in Exposition.environments {
      let answers = groups.filter { $0.environment == environment }
      for status in Set(answers.compactMap(\.status)).union(Exposition.statuses).sorted() {
        let count = answers.filter { $0.status == status }.reduce(0) { $0 + $1.count }
        sample("nudged_answers_total", ["environment": environment, "status": "\(status)"], count)
      }
    }
    family(
      "nudged_answer_seconds", "histogram",
      "Time from request to answer, of the answers since midnight UTC; it begins again every day.")
    for environment in Exposition.environments {
      histogram(environment, groups.filter { $0.environment == environment && $0.status != nil })
    }
  }

  private mutating func histogram(_ environment: String, _ answers: [Figures.Attempts]) {
    let count = answers.reduce(0) { $0 + $1.count }
    for (place, bound) in Figures.latencyBounds.enumerated() {
      sample(
        "nudged_answer_seconds_bucket", ["environment": environment, "le": seconds(bound)],
        answers.reduce(0) { $0 + $1.within[place] })
    }
    sample("nudged_answer_seconds_bucket", ["environment": environment, "le": "+Inf"], count)
    sample(
      "nudged_answer_seconds_sum", ["environment": environment],
      seconds(answers.reduce(0) { $0 + $1.latency }))
    sample("nudged_answer_seconds_count", ["environment": environment], count)
  }

  private mutating func tokens(_ groups: [Figures.Tokens]) {
    family("nudged_tokens", "gauge", "Registered tokens by kind and host; unknown until a push has shown it.")
    for group in groups { sample("nudged_tokens", labels(group), group.count) }
    family("nudged_tokens_set_aside", "gauge", "Of these, tokens that every host has called bad.")
    for group in groups { sample("nudged_tokens_set_aside", labels(group), group.setAside) }
  }

  private func labels(_ group: Figures.Tokens) -> KeyValuePairs<String, String> {
    ["environment": group.environment ?? "unknown", "kind": group.kind]
  }

  // MARK: The format

  private mutating func family(_ name: String, _ type: String, _ help: String) {
    text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
  }

  private mutating func sample(_ name: String, _ value: some CustomStringConvertible) {
    text += "\(name) \(value)\n"
  }

  private mutating func sample(
    _ name: String, _ labels: KeyValuePairs<String, String>, _ value: some CustomStringConvertible
  ) {
    let pairs = labels.map { "\($0)=\"\(Exposition.escaped($1))\"" }
    text += "\(name){\(pairs.joined(separator: ","))} \(value)\n"
  }

  /// Milliseconds as seconds, exactly: `0.025`.
  private func seconds(_ milliseconds: Int64) -> String {
    var digits = String(1000 + milliseconds % 1000).dropFirst()
    while digits.last == "0" { digits.removeLast() }
    return "\(milliseconds / 1000)" + (digits.isEmpty ? "" : "." + digits)
  }

  /// A label's value: backslash, quote and line feed are escaped.
  private static func escaped(_ value: String) -> String {
    value.unicodeScalars.map { scalar in
      switch scalar {
      case "\\": "\\\\"
      case "\"": "\\\""
      case "\n": "\\n"
      default: String(scalar)
      }
    }.joined()
  }

  // MARK: Series that are there from the start: one that appears with a 1 has not increased, says Prometheus.

  private static let states = [
    "pending", "waiting", "attempted", "suppressed", "expired", "superseded", "unaddressed", "invalid",
    "cancelled",
  ]
  private static let outcomes = [
    "accepted", "rejected", "dead_token", "wrong_host", "unanswered", "interrupted", "unsent",
  ]
  private static let environments = ["production", "sandbox"]
  /// Apple's statuses (Handling notification responses from APNs).
  private static let statuses: [Int64] = [200, 400, 403, 404, 405, 410, 413, 429, 500, 503]
}
