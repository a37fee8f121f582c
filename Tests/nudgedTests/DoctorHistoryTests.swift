import Testing

@testable import Outbox
@testable import nudged

@Suite("Doctor: what the tables say")
struct DoctorHistoryTests {
  private let now: Int64 = 1_800_000_000_000

  private func health(_ answers: [Health.Answers] = []) -> Health {
    Health(
      due: 0, oldestDueAt: nil, waiting: 0, nextAt: nil, inFlight: 0, devices: 1, devicesWithoutTopic: 0,
      devicesWithoutToken: 0, setAside: 0, answers: answers)
  }

  /// An answer of the production host, `id` minutes before now counted from 100.
  private func answer(
    _ id: Int64, _ outcome: String, _ status: Int64? = nil, _ reason: String? = nil
  ) -> Health.Answers {
    Health.Answers(
      environment: "production", outcome: outcome, status: status, reason: reason, lastID: id,
      lastAt: now - (100 - id) * 60_000, lastDay: 2)
  }

  private func verdict(_ answers: Health.Answers..., setAside: Int64 = 0) -> Check? {
    var health = health(answers)
    health.setAside = setAside
    return HistoryChecks(health: health, worker: 7, now: now).answers("production")
  }

  @Test("a host that accepts is well, also after a refusal that is over")
  func accepted() {
    let check = verdict(answer(90, "accepted", 200), answer(80, "rejected", 403, "InvalidProviderToken"))
    #expect(
      check
        == .ok(
          "production answers", "last accepted 10m ago; within a day: 2 accepted, 2 403 InvalidProviderToken")
    )
    #expect(verdict() == nil)
  }

  @Test(
    "refusals that stop everything are faults, and say what they mean",
    arguments: [
      ("InvalidProviderToken", "key id and team id", "--team-id"),
      ("ExpiredProviderToken", "clock", "timedatectl"),
      ("BadEnvironmentKeyInToken", "other environment", "--sandbox-key-file"),
      ("SomethingNew", "key id and team id", "--key-id"),
    ])
  func refused(_ reason: String, _ meaning: String, _ fix: String) throws {
    let check = try #require(verdict(answer(95, "rejected", 403, reason), answer(90, "accepted", 200)))
    #expect(check.status == .fault(.unavailable))
    #expect(check.detail.contains("newest: 403 \(reason), 5m ago: "), "\(check.detail)")
    #expect(check.detail.contains(meaning), "\(check.detail)")
    #expect(check.fix?.contains(fix) == true, "\(check)")
  }

  @Test(
    "refusals of a nudge, a topic or a token are warnings",
    arguments: [
      (400, "BadDeviceToken", "built for the other environment"), (400, "TopicDisallowed", "bundle id"),
      (400, "DeviceTokenNotForTopic", "bundle id"), (413, "PayloadTooLarge", "too large"),
      (429, "TooManyRequests", "too many"), (429, "TooManyProviderTokenUpdates", "another program"),
      (503, "ServiceUnavailable", "Apple's side"), (400, "BadPriority", "cannot be sent"),
    ] as [(Int64, String, String)])
  func warned(_ status: Int64, _ reason: String, _ meaning: String) throws {
    let outcome = reason == "BadDeviceToken" ? "wrong_host" : "rejected"
    let check = try #require(verdict(answer(95, outcome, status, reason), setAside: 1))
    #expect(check.status == .warning)
    #expect(check.detail.contains("nothing accepted yet"))
    #expect(check.detail.contains(meaning), "\(check.detail)")
  }

  @Test("a token that is on the other host is no refusal of this one")
  func discovery() throws {
    let check = try #require(verdict(answer(95, "wrong_host", 400, "BadDeviceToken")))
    #expect(check.status == .ok)
    #expect(check.detail.hasSuffix("newest: 400 BadDeviceToken, 5m ago"), "\(check.detail)")
  }

  @Test("silence is a warning; a dead token is nobody's fault and is counted")
  func others() throws {
    #expect(try #require(verdict(answer(95, "unanswered"))).status == .warning)
    let dead = HistoryChecks(
      health: health([answer(95, "dead_token", 410, "Unregistered")]), worker: 7, now: now)
    #expect(dead.answers("production")?.status == .ok)
    #expect(
      dead.all.last == .ok("dead tokens", "2 tokens dropped within a day (410): app removed, or a new token"))
  }

  @Test("rows that stay due though a worker runs are a warning")
  func stuck() {
    var health = health()
    (health.due, health.oldestDueAt, health.nextAt, health.waiting) = (3, now - 61_000, now + 60_000, 2)
    func queue(_ health: Health, worker: Int32?) -> Check? {
      HistoryChecks(health: health, worker: worker, now: now).all.first { $0.name == "queue" }
    }
    let check = queue(health, worker: 7)
    #expect(check?.status == .warning)
    #expect(
      check?.detail.contains("3 nudges due, the oldest for 1m; 2 waiting") == true, "\(check?.detail ?? "")")
    #expect(check?.detail.contains("2027-01-15T08:01:00Z") == true, "\(check?.detail ?? "")")
    health.oldestDueAt = now - 5000
    #expect(queue(health, worker: 7)?.status == .ok)
  }

  @Test("devices that lack something, tokens set aside, and nobody at all")
  func devices() {
    var health = health()
    health.devicesWithoutTopic = 1
    health.setAside = 2
    let checks = HistoryChecks(health: health, worker: 0, now: now).all
    #expect(checks.first { $0.name == "worker" } == .ok("worker", "runs"))
    #expect(checks.first { $0.name == "devices" }?.detail == "1 device, 1 without a topic")
    #expect(checks.first { $0.name == "tokens" }?.detail.hasPrefix("2 tokens set aside") == true)
    health.devices = 0
    let none = HistoryChecks(health: health, worker: 0, now: now).all.first { $0.name == "devices" }
    #expect(none?.status == .warning && none?.fix?.contains("nudged register") == true)
  }
}
