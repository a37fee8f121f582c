import Foundation
import SQLite
import Testing

@testable import Outbox

@Suite("Health")
struct HealthTests {
  private let world: World

  init() throws { world = try World() }

  private func health() throws -> Health {
    try #require(try Health.look(databaseAt: world.path, now: world.now).health)
  }

  private func attempt(
    _ environment: String, _ outcome: String?, _ status: Int? = nil, _ reason: String? = nil,
    ago: Int64 = 1000
  ) throws {
    try world.sql(
      """
      insert into nudge_attempt (nudge_id, device_id, token_hash, environment, started_at, finished_at, outcome,
        status, reason, may_have_buzzed)
      values (abs(random()), 'd', hex(randomblob(8)), '\(environment)', \(world.now - ago),
        \(outcome == nil ? "null" : "\(world.now - ago)"), \(outcome.map { "'\($0)'" } ?? "null"),
        \(status.map(String.init) ?? "null"), \(reason.map { "'\($0)'" } ?? "null"),
        \(outcome == "wrong_host" ? "null" : "1"))
      """)
  }

  @Test("an empty outbox is at rest")
  func empty() throws {
    #expect(
      try health()
        == Health(
          due: 0, oldestDueAt: nil, waiting: 0, nextAt: nil, inFlight: 0, devices: 0, devicesWithoutTopic: 0,
          devicesWithoutToken: 0, setAside: 0, answers: []))
  }

  @Test("what is due, since when, what waits and what comes next")
  func queue() throws {
    let now = world.now
    try world.nudge(["created_at": "\(now - 5000)"])
    try world.nudge()
    try world.nudge(["created_at": "\(now - 90_000)", "not_before_at": "\(now - 7000)"])
    try world.nudge(["not_before_at": "\(now + 60_000)"])
    try world.nudge(["not_before_at": "\(now + 30_000)"])
    let ended = try world.nudge(["created_at": "\(now - 99_000)"])
    let waiting = try world.nudge(["created_at": "\(now - 99_000)"])
    try world.sql("update nudge_outbox set state = 'attempted' where id = \(ended)")
    try world.sql("update nudge_outbox set state = 'waiting' where id = \(waiting)")
    try attempt("production", nil)
    let health = try health()
    #expect(health.due == 3)
    #expect(health.oldestDueAt == now - 7000)
    #expect(health.nextAt == now + 30_000)
    #expect(health.waiting == 1)
    #expect(health.inFlight == 1)
  }

  @Test("a time that is none is not taken for an age")
  func hostile() throws {
    try world.nudge(["created_at": "'soon'"])
    #expect(try health().due == 1)
    #expect(try health().oldestDueAt == nil)
  }

  @Test("devices, what they lack, and tokens that were set aside")
  func devices() throws {
    try world.register("a")
    try world.register("b")
    try world.sql("insert into nudge_registration (device_id, topic) values ('c', 'com.example.app')")
    try world.sql("insert into nudge_registration (device_id, token) values ('d', 'abcd')")
    try world.sql("update nudge_token set rejected_at = 1 where device_id = 'b'")
    let health = try health()
    #expect(health.devices == 4)
    #expect(health.devicesWithoutTopic == 1)
    #expect(health.devicesWithoutToken == 1)
    #expect(health.setAside == 1)
  }

  @Test("answers by host and kind, the newest first, and how many of them within a day")
  func answers() throws {
    let day: Int64 = 24 * 3600 * 1000
    try attempt("production", "rejected", 403, "InvalidProviderToken", ago: 2 * day)
    try attempt("production", "accepted", 200, ago: 3000)
    try attempt("sandbox", "wrong_host", 400, "BadDeviceToken", ago: 2000)
    try attempt("production", "accepted", 200, ago: 1000)
    let answers = try health().answers
    #expect(answers.map(\.outcome) == ["accepted", "wrong_host", "rejected"])
    #expect(answers.map(\.lastDay) == [2, 1, 0])
    #expect(answers.map(\.lastAt) == [world.now - 1000, world.now - 2000, world.now - 2 * day])
    #expect(answers[2].reason == "InvalidProviderToken")
    #expect(answers[1].environment == "sandbox")
  }

  @Test("tables that this program does not know are named, and not read")
  func condition() throws {
    func condition() throws -> Migration.Condition {
      let look = try Health.look(databaseAt: world.path, now: world.now)
      #expect((look.health == nil) == (look.condition != .current))
      return look.condition
    }
    #expect(try condition() == .current)
    try world.sql("drop trigger nudge_device_delete")
    #expect(try condition() == .lacking("trigger nudge_device_delete"))
    try world.sql("insert into nudge_schema values (99, 0)")
    #expect(try condition() == .newer(99))
    try world.sql("delete from nudge_schema")
    #expect(try condition() == .absent)
  }
}
