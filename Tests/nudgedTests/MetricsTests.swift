import Foundation
import Outbox
import Relay
import SQLite
import Testing

@testable import nudged

@Suite("Metrics")
final class MetricsTests {
  private let folder: TemporaryFolder
  private let path: String
  private let database: Database
  /// 2026-11-30 10:00 UTC.
  private let now: Int64 = 1_796_032_800_000
  private let midnight: Int64 = 1_795_996_800_000

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    try nudged(["migrate", "--database", path])
    database = try Database(path: path)
  }

  private func metrics(hasWorker: Bool = false) throws -> [String: Double] {
    try samples(Exposition.text(Figures.read(databaseAt: path, now: now), now: now, hasWorker: hasWorker))
  }

  /// Reads the format as strictly as its definition: families one after the other, help and type first, names and
  /// labels well formed, no series twice, histograms cumulative.
  private func samples(_ text: String) throws -> [String: Double] {
    #expect(text.hasSuffix("\n"))
    var values: [String: Double] = [:]
    var families: [String: String] = [:]
    var family = ""
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
      if let match = line.wholeMatch(of: /# HELP (nudged_[a-z_]+) (\S.*[.])/) {
        #expect(families[String(match.1)] == nil, "\(line)")
        family = String(match.1)
      } else if let match = line.wholeMatch(of: /# TYPE (nudged_[a-z_]+) (gauge|counter|histogram)/) {
        #expect(match.1 == family && families[family] == nil, "\(line)")
        families[family] = String(match.2)
        #expect((match.2 == "counter") == family.hasSuffix("_total"), "\(line)")
      } else {
        let sample = try #require(
          line.wholeMatch(
            of:
              /(nudged_[a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? (-?[0-9.]+)/
          ),
          "\(line)")
        let base =
          families[family] == "histogram"
          ? String(sample.1.replacing(/_(bucket|sum|count)$/, with: "")) : String(sample.1)
        #expect(base == family, "\(line)")
        #expect(values[String(sample.1 + (sample.2 ?? ""))] == nil, "twice: \(line)")
        values[String(sample.1 + (sample.2 ?? ""))] = Double(String(sample.3))
      }
    }
    for environment in ["production", "sandbox"] {
      let bounds =
        (Figures.latencyBounds.map { "\(Double($0) / 1000)".replacing(/\.0$/, with: "") } + ["+Inf"])
      let counts = bounds.map {
        values["nudged_answer_seconds_bucket{environment=\"\(environment)\",le=\"\($0)\"}"]
      }
      #expect(counts.allSatisfy { $0 != nil }, "\(bounds)")
      #expect(counts.compactMap(\.self) == counts.compactMap(\.self).sorted())
      #expect(counts.last == values["nudged_answer_seconds_count{environment=\"\(environment)\"}"])
    }
    return values
  }

  @Test("an empty database has every series at zero, so that the first refusal counts as one")
  func empty() throws {
    let values = try metrics()
    #expect(values.values.allSatisfy { $0 == 0 })
    #expect(values["nudged_attempts_total{environment=\"sandbox\",outcome=\"rejected\"}"] == 0)
    #expect(values["nudged_answers_total{environment=\"production\",status=\"403\"}"] == 0)
    #expect(values["nudged_nudges_last_day{state=\"invalid\"}"] == 0)
    #expect(values["nudged_last_accepted_timestamp_seconds"] == nil)
    #expect(try metrics(hasWorker: true)["nudged_worker_running"] == 1)
  }

  @Test("states are those of the last 24 hours, what is open counts whenever it was written")
  func nudges() throws {
    try database.execute(
      """
      insert into nudge_outbox (title, created_at, not_before_at) values
        ('old', \(now - 90_000_000), null), ('gone', \(now - 90_000_000), null), ('sent', \(now - 5000), null),
        ('due', \(now - 8000), \(now - 2500)), ('later', \(now - 8000), 1893456000000), ('ride', \(now - 8000), null),
        ('in seconds', 1790000000, null), ('text', 'yesterday', 'tomorrow');
      update nudge_outbox set state = 'attempted', settled_at = 1 where title in ('gone', 'sent');
      update nudge_outbox set state = 'waiting' where title = 'ride';
      delete from nudge_outbox where title = 'gone';
      """)
    let values = try metrics()
    #expect(values["nudged_nudges_written_total"] == 8)
    #expect(values["nudged_nudges_open{state=\"pending\"}"] == 5)
    #expect(values["nudged_nudges_open{state=\"waiting\"}"] == 1)
    #expect(values["nudged_nudges_due"] == 3)
    #expect(values["nudged_oldest_due_age_seconds"] == 90_000)
    #expect(values["nudged_nudges_last_day{state=\"pending\"}"] == 2)
    #expect(values["nudged_nudges_last_day{state=\"attempted\"}"] == 1)
    #expect(values["nudged_nudges_last_day{state=\"waiting\"}"] == 1)
    try database.execute("update nudge_outbox set state = 'cancelled' where title = 'old'")
    #expect(try metrics()["nudged_oldest_due_age_seconds"] == 2.5)
  }

  @Test(
    "attempts and latency count from midnight, by the time they ended, and history before costs and adds nothing"
  )
  func attempts() throws {
    func attempt(_ outcome: String?, _ status: Int64?, from start: Int64, took: Int64, sandbox: Bool = false)
      throws
    {
      let insert = try database.prepare(
        """
        insert into nudge_attempt (nudge_id, device_id, token_hash, environment, started_at, finished_at, outcome, status)
        values ((select coalesce(max(id), 0) from nudge_attempt), 'd', 'h', ?1, ?2, ?3, ?4, ?5)
        """)
      insert.bind(1, sandbox ? "sandbox" : "production")
      insert.bind(2, start)
      insert.bind(3, outcome == nil ? nil : start + took)
      insert.bind(4, outcome)
      insert.bind(5, status)
      try insert.run()
    }
    for number in 1...1200 {
      try attempt("accepted", 200, from: midnight - 7_200_000 + Int64(number), took: 10)
    }
    try attempt("accepted", 200, from: midnight - 30, took: 20)
    try attempt("accepted", 200, from: midnight - 30, took: 40)
    try attempt("accepted", 200, from: now - 9000, took: 25)
    try attempt("accepted", 200, from: now - 8000, took: 26)
    try attempt("rejected", 403, from: now - 7000, took: 3100, sandbox: true)
    try attempt("rejected", 418, from: now - 6000, took: 60_000)
    try attempt("interrupted", nil, from: now - 5000, took: 400)
    try attempt(nil, nil, from: now - 4000, took: 0)
    let values = try metrics()
    #expect(values["nudged_attempts_total{environment=\"production\",outcome=\"accepted\"}"] == 3)
    #expect(values["nudged_attempts_total{environment=\"production\",outcome=\"rejected\"}"] == 1)
    #expect(values["nudged_attempts_total{environment=\"sandbox\",outcome=\"rejected\"}"] == 1)
    #expect(values["nudged_attempts_total{environment=\"production\",outcome=\"interrupted\"}"] == 1)
    #expect(values["nudged_answers_total{environment=\"production\",status=\"418\"}"] == 1)
    #expect(values["nudged_answers_total{environment=\"sandbox\",status=\"403\"}"] == 1)
    #expect(values["nudged_attempts_in_flight"] == 1)
    #expect(values["nudged_answer_seconds_bucket{environment=\"production\",le=\"0.025\"}"] == 1)
    #expect(values["nudged_answer_seconds_bucket{environment=\"production\",le=\"0.05\"}"] == 3)
    #expect(values["nudged_answer_seconds_bucket{environment=\"production\",le=\"30\"}"] == 3)
    #expect(values["nudged_answer_seconds_count{environment=\"production\"}"] == 4)
    #expect(values["nudged_answer_seconds_sum{environment=\"production\"}"] == 60.091)
    #expect(values["nudged_answer_seconds_bucket{environment=\"sandbox\",le=\"5\"}"] == 1)
    #expect(values["nudged_last_accepted_timestamp_seconds"] == Double(now - 7974) / 1000)
  }

  @Test("tokens are counted by kind and host, those set aside apart")
  func tokens() throws {
    for (number, kind) in ["alert", "alert", "voip"].enumerated() {
      try nudged([
        "register", "--database", path, "--device", "d\(number)", "--token", "ab0\(number)", "--kind", kind,
      ])
    }
    try database.execute(
      """
      update nudge_token set environment = 'sandbox' where token = 'ab00';
      update nudge_token set rejected_at = 1 where token = 'ab01';
      insert into nudge_token (device_id, kind, token, registered_at) values ('d9', 'a"\\' || char(10), 'ff', 1);
      """)
    let text = try nudged(["metrics", "--database", path]).text
    let values = try samples(text)
    #expect(values["nudged_tokens{environment=\"sandbox\",kind=\"alert\"}"] == 1)
    #expect(values["nudged_tokens{environment=\"unknown\",kind=\"alert\"}"] == 1)
    #expect(values["nudged_tokens_set_aside{environment=\"unknown\",kind=\"alert\"}"] == 1)
    #expect(values["nudged_tokens_set_aside{environment=\"unknown\",kind=\"voip\"}"] == 0)
    #expect(text.contains(#"nudged_tokens{environment="unknown",kind="a\"\\\n"} 1"#))
  }

  /// Debian's package `prometheus` brings it; with what it depends on that is more than the rest of the tests need.
  private static let promtool =
    ProcessInfo.processInfo.environment["PROMTOOL"]
    ?? ["/usr/bin/promtool", "/usr/local/bin/promtool"].first {
      FileManager.default.isExecutableFile(atPath: $0)
    }

  @Test(
    "promtool accepts the figures and the alerts",
    .enabled(if: promtool != nil, "promtool is not installed; PROMTOOL=/path/to/promtool names one"))
  func accepted() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().path
    let checked = try Child.shell(
      """
      set -e
      "$nudged" metrics --database '\(path)' | "$promtool" check metrics
      cd '\(root)/deploy/metrics'
      "$promtool" check rules alerts.yml
      "$promtool" test rules alerts-test.yml
      """, environment: ["promtool": try #require(Self.promtool)])
    #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
    #expect(!checked.output.contains("nudged_"), "promtool has advice: \(checked.output)")
  }

  @Test("every figure that an alert asks for is there")
  func alerts() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().path
    let rules = try String(contentsOfFile: "\(root)/deploy/metrics/alerts.yml", encoding: .utf8)
    let names = Set(rules.matches(of: /\bnudged_[a-z_]+/).map { String($0.output) })
    let text = try nudged(["metrics", "--database", path]).text
    #expect(names.count >= 3)
    for name in names { #expect(text.contains("# TYPE \(name) "), "\(name)") }
  }
}
