import Outbox

/// How many attempts have ended how since the worker started.
struct Tally {
  private var accepted = 0
  private var others: [Outcome: Int] = [:]

  mutating func count(_ outcome: Outcome) {
    // Nearly all of them; a dictionary would cost more than it is worth.
    if outcome == .accepted { accepted += 1 } else { others[outcome, default: 0] += 1 }
  }

  /// `12 accepted, 1 rejected since start`.
  var words: String {
    let counts =
      [(Outcome.accepted, accepted)] + others.sorted { $0.key.rawValue < $1.key.rawValue }.map { ($0, $1) }
    let parts = counts.filter { $0.1 > 0 }.map { "\($0.1) \($0.0.rawValue)" }
    return parts.isEmpty ? "nothing sent since start" : parts.joined(separator: ", ") + " since start"
  }
}

extension Wheel {
  /// What the worker does at the moment, what keeps it from more, and what it has done: a line for
  /// `systemctl status`.
  var statusWords: String {
    let troubles = [databaseTrouble].compactMap(\.self) + dispatch.hosts.compactMap(\.troubleWords)
    let inFlight = dispatch.inFlight.count
    let doing =
      if stopDeadline != nil {
        "stopping"
      } else if inFlight > 0 {
        "sending"
      } else if !troubles.isEmpty && (store.scan.hasLeftovers || databaseTrouble != nil) {
        "waiting"
      } else {
        "idle"
      }
    let facts = (inFlight > 0 ? ["\(inFlight) in flight"] : []) + troubles
    return (facts.isEmpty ? doing : "\(doing): \(facts.joined(separator: ", "))") + "; \(notify.tally.words)"
  }
}
