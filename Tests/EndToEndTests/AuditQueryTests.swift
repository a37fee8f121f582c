import Foundation
import Testing

/// Each file of `deploy/audit/` answers its question, asked with the `sqlite3` shell as its header shows it.
@Suite("deploy/audit")
struct AuditQueryTests {
  /// 2026-11-30 10:00:00 UTC.
  private let ten: Int64 = 1_796_032_800_000

  @Test("record.sql tells a record's story from the row to the outcome, across both hosts")
  func record() async throws {
    try await scenario { s in
      let nudge = try s.backend.nudge([
        "record_id": "17", "event": "turn_finished", "title": "T", "created_at": .integer(ten),
        "not_before_at": .integer(ten + 1000),
      ])
      try attempt(s, nudge, "phone-1", at: ten + 1005, took: 40, "wrong_host", 400, reason: "BadDeviceToken")
      try attempt(s, nudge, "phone-1", at: ten + 1050, took: 30, "accepted", 200, environment: "sandbox")
      try settle(s, nudge, "attempted", at: ten + 1050)
      let doubled = try s.backend.nudge([
        "record_id": "17", "event": "job_finished", "created_at": .integer(ten + 5),
      ])
      try s.backend.run(
        "update nudge_outbox set settled_at = ? where id = ?", [.integer(ten + 5), .integer(doubled)])
      try s.backend.nudge(["record_id": "18", "title": "another record"])
      // In the shell a bare 17 is a number, and is the record all the same.
      #expect(
        try ask(s, "record", ["record": "17"]) == [
          "1|2026-11-30T10:00:00.000Z|written|alert (turn_finished) for owner, surface phone",
          "1|2026-11-30T10:00:01.000Z|due|not before this time",
          "1|2026-11-30T10:00:01.005Z|sent to phone-1|production, app.example.chat, apns-id 1-1005",
          "1|2026-11-30T10:00:01.045Z|wrong_host|400 BadDeviceToken, after 40 ms",
          "1|2026-11-30T10:00:01.050Z|sent to phone-1|sandbox, app.example.chat, apns-id 1-1050",
          "1|2026-11-30T10:00:01.080Z|accepted|200, after 30 ms",
          "2|2026-11-30T10:00:00.005Z|written|alert (job_finished) for owner, surface phone",
          "2|2026-11-30T10:00:00.005Z|suppressed|job_finished without heartbeat delivery or push request",
        ])
      #expect(try ask(s, "record", ["record": "19"]).isEmpty)
    }
  }

  @Test("record.sql shows what is still open last")
  func openRecord() async throws {
    try await scenario { s in
      let nudge = try s.backend.nudge([
        "record_id": "m-1", "title": "T", "created_at": .integer(ten), "surface": "*",
      ])
      try attempt(s, nudge, "phone-1", at: ten + 5, took: nil, nil, nil)
      #expect(
        try ask(s, "record", ["record": "m-1"]) == [
          "1|2026-11-30T10:00:00.000Z|written|alert for owner, surface *",
          "1|2026-11-30T10:00:00.005Z|sent to phone-1|production, app.example.chat, apns-id 1-5",
          "1|2026-11-30T10:00:00.005Z|in flight|no answer yet", "1||pending|",
        ])
    }
  }

  @Test("activity.sql tells a Live Activity's story: start, token, updates that waited, and its end")
  func activity() async throws {
    try await scenario { s in
      func nudge(_ kind: String, at offset: Int64) throws -> Int64 {
        try s.backend.nudge([
          "kind": .text(kind), "activity_id": "ride-3", "record_id": "r-1",
          "created_at": .integer(ten + offset),
        ])
      }
      let start = try nudge("activity_start", at: 0)
      try attempt(s, start, "phone-1", at: ten + 5, took: 40, "accepted", 200)
      try settle(s, start, "attempted", at: ten + 5)
      try s.backend.run(
        "insert into nudge_activity (device_id, activity_id, started_at) values ('phone-1', 'ride-3', ?)",
        [.integer(ten + 45)])
      let early = try nudge("activity_update", at: 50)
      try settle(s, early, "superseded", at: ten + 60, detail: "by nudge 3")
      let update = try nudge("activity_update", at: 60)
      try s.backend.register(
        "phone-1", token: token(2), environment: "sandbox", kind: "activity_update", scope: "ride-3",
        registeredAt: ten + 70)
      try attempt(s, update, "phone-1", at: ten + 80, took: 10, "unanswered", nil, environment: "sandbox")
      try settle(s, update, "attempted", at: ten + 80)
      try s.backend.run("update nudge_activity set ended_at = ?", [.integer(ten + 200)])
      let late = try nudge("activity_end", at: 300)
      try s.backend.run("update nudge_outbox set state = 'waiting' where id = ?", [.integer(late)])
      try s.backend.nudge(["activity_id": "ride-4"])
      func time(_ offset: String) -> String { "2026-11-30T10:00:00.\(offset)Z" }
      #expect(
        try ask(s, "activity", ["activity": "ride-3"]) == [
          "\(time("000"))||1|activity_start written|for owner, about record r-1",
          "\(time("005"))|phone-1|1|sent|alert token, production",
          "\(time("045"))|phone-1|1|accepted|200, after 40 ms",
          "\(time("045"))|phone-1||activity started|",
          "\(time("050"))||2|activity_update written|for owner, about record r-1",
          "\(time("060"))||3|activity_update written|for owner, about record r-1",
          "\(time("060"))||2|superseded|by nudge 3",
          "\(time("070"))|phone-1||update token registered|sandbox",
          "\(time("080"))|phone-1|3|sent|alert token, sandbox",
          "\(time("090"))|phone-1|3|unanswered|no status, after 10 ms",
          "\(time("200"))|phone-1||activity over|later nudges about it are not sent",
          "\(time("300"))||4|activity_end written|for owner, about record r-1",
          "||4|waiting|",
        ])
      #expect(
        try ask(s, "record", ["record": "r-1"]).first?.hasSuffix(
          "activity_start of activity ride-3 for owner, surface phone") == true)
    }
  }

  @Test("a parameter that is given empty, as a web form sends it, is none")
  func emptyParameters() async throws {
    try await scenario { s in
      let id = try s.backend.nudge(["title": "T"])
      try attempt(s, id, "phone-1", at: now(), took: 5, "rejected", 503)
      try settle(s, id, "attempted", at: now())
      for (name, parameters) in [
        ("burned", ["since", "until"]), ("why-not", ["record", "since"]), ("last-day", ["since"]),
        ("latency-by-hour", ["since"]),
      ] {
        let answer = try ask(s, name)
        #expect(!answer.isEmpty && answer.first?.hasSuffix("|0") == false, "\(name)")
        #expect(
          try ask(s, name, Dictionary(uniqueKeysWithValues: parameters.map { ($0, "''") })) == answer,
          "\(name)")
      }
    }
  }

  @Test("why-not.sql gives each nudge that reached nobody its reason, and no other")
  func whyNot() async throws {
    try await scenario { s in
      func nudge(_ record: String, _ columns: KeyValuePairs<String, Value> = [:]) throws -> Int64 {
        let id = try s.backend.nudge(columns)
        try s.backend.run(
          "update nudge_outbox set record_id = ? where id = ?", [.text(record), .integer(id)])
        return id
      }
      func attempted(_ record: String, _ outcome: String, _ status: Int64?, _ reason: String? = nil) throws {
        let id = try nudge(record, ["title": "T"])
        try attempt(s, id, "phone-1", at: now(), took: 5, outcome, status, reason: reason)
        try settle(s, id, "attempted", at: now())
      }
      try attempted("good", "accepted", 200)
      try attempted("refused", "rejected", 403, "InvalidProviderToken")
      try attempted("dead", "dead_token", 410, "Unregistered")
      try attempted("nowhere", "wrong_host", 400, "BadDeviceToken")
      try attempted("silence", "unanswered", nil)
      try attempted("killed", "interrupted", nil)
      try attempted("streams", "unsent", nil)
      let late = try nudge("late", ["title": "T"])
      try settle(s, late, "expired", at: now())
      let bad = try nudge("bad", ["title": "T"])
      try settle(s, bad, "invalid", at: now(), detail: "aps is not a JSON object")
      _ = try nudge("open", ["title": "T"])
      _ = try nudge("later", ["title": "T", "not_before_at": 1_893_456_000_000])
      let flying = try nudge("flying", ["title": "T"])
      try attempt(s, flying, "phone-1", at: now(), took: nil, nil, nil)
      let partly = try nudge("partly", ["title": "T", "surface": "*"])
      try attempt(s, partly, "phone-1", at: now(), took: 5, "rejected", 429, reason: "TooManyRequests")
      try attempt(s, partly, "phone-2", at: now(), took: 5, "accepted", 200)
      try settle(s, partly, "attempted", at: now())
      let cut = try nudge("cut", ["title": "T", "surface": "*"])
      try attempt(s, cut, "phone-1", at: now(), took: 5, "rejected", 500)
      try settle(s, cut, "attempted", at: now(), detail: "expired before 1 of 2 devices")
      _ = try nudge("seconds", ["title": "T", "created_at": 1_796_032_800])
      _ = try nudge("old", ["title": "T", "created_at": .integer(ten - 400 * 86_400_000)])

      let lines = try ask(s, "why-not").map { $0.split(separator: "|", omittingEmptySubsequences: false) }
      let reasons = Dictionary(
        uniqueKeysWithValues: lines.map { (String($0[1]), $0[3...].joined(separator: "|")) })
      #expect(
        reasons == [
          "refused": "attempted|refused by Apple: 403 InvalidProviderToken|1",
          "dead": "attempted|the token is dead: the app is gone, or it has not registered since|1",
          "nowhere": "attempted|no host that has a key knows the token|1",
          "silence": "attempted|handed over, never answered: it may have arrived|1",
          "killed": "attempted|the worker ended before the answer: it may have arrived|1",
          "streams": "attempted|Apple's server refused the stream three times|1",
          "late": "expired|its time ran out before it could be sent|0",
          "bad": "invalid|aps is not a JSON object|0",
          "open": "pending|still to be tried: no worker runs, or its host is paused (see the log)|0",
          "later": "pending|not due before 2030-01-01T00:00:00Z|0", "flying": "pending|in flight|1",
          "cut": "attempted|refused by Apple: 500 (expired before 1 of 2 devices)|1",
        ])
      #expect(lines.map { Int($0[0]) ?? 0 } == lines.map { Int($0[0]) ?? 0 }.sorted(by: >))
      // A row whose time is in seconds is old by that time, but is found by its record.
      #expect(try ask(s, "why-not", ["record": "seconds"]).count == 1)
      #expect(try ask(s, "why-not", ["record": "good"]).isEmpty)
      #expect(try ask(s, "why-not", ["since": "'2020-01-01'"]).count == lines.count + 1)
      #expect(try ask(s, "why-not", ["since": "\(now(plus: 60_000))"]).isEmpty)
    }
  }

  @Test("silent-devices.sql lists devices without a good token, with the time of death")
  func silentDevices() async throws {
    try await scenario { s in
      try s.backend.register("alive", token: token(1))
      try s.backend.register("reborn", token: token(2), registeredAt: ten)
      try s.backend.register("dead", token: token(3), recipient: "anna", surface: "tablet", registeredAt: ten)
      try s.backend.register("aside", token: token(4), registeredAt: ten)
      try s.backend.register("bare", token: token(6), kind: "voip")
      try s.backend.register("gone", token: token(5))
      let nudge = try s.backend.nudge(["title": "T", "surface": "*"])
      let other = try s.backend.nudge(["title": "T", "surface": "*"])
      for device in ["alive", "dead", "aside"] {
        try attempt(s, nudge, device, at: ten, took: 1000, "accepted", 200)
      }
      for device in ["reborn", "dead", "gone"] {
        try attempt(
          s, other, device, at: ten + 60_000, took: 1000, "dead_token", 410, reason: "Unregistered",
          timestamp: ten + 30_000)
      }
      try s.backend.run("delete from nudge_token where device_id = 'dead'")
      try s.backend.run("delete from nudge_device where device_id = 'gone'")
      try s.backend.run(
        "update nudge_token set rejected_at = ? where device_id = 'aside'", [.integer(ten + 70_000)])
      #expect(
        try ask(s, "silent-devices") == [
          "aside|owner|phone|token set aside: no host knows it||2026-11-30T10:01:10.000Z|BadDeviceToken|"
            + "2026-11-30T10:00:01.000Z",
          "dead|anna|tablet|token dead|2026-11-30T10:00:30.000Z|2026-11-30T10:01:01.000Z|Unregistered|"
            + "2026-11-30T10:00:01.000Z",
          "gone|||device deleted|2026-11-30T10:00:30.000Z|2026-11-30T10:01:01.000Z|Unregistered|",
          "bare|owner|phone|no alert token registered||||",
        ])
    }
  }

  @Test("latency-by-hour.sql has median, 99th percentile and maximum of waiting and of the answer")
  func latency() async throws {
    try await scenario { s in
      for number in 1...100 {
        let offset = Int64(number)
        let nudge = try s.backend.nudge(["title": "T", "created_at": .integer(ten)])
        try attempt(s, nudge, "phone-1", at: ten + offset, took: 10 * offset, "accepted", 200)
      }
      let next = ten + 3_600_000
      let waited = try s.backend.nudge([
        "title": "T", "created_at": .integer(ten), "not_before_at": .integer(next),
      ])
      try attempt(s, waited, "phone-1", at: next + 7, took: 20, "rejected", 500)
      let silent = try s.backend.nudge(["title": "T", "created_at": .integer(next)])
      try attempt(s, silent, "phone-1", at: next + 9, took: 30_000, "unanswered", nil)
      #expect(
        try ask(s, "latency-by-hour", ["since": "'2026-11-30'"]) == [
          "2026-11-30T10:00Z|100|100|50|99|100|500|990|1000", "2026-11-30T11:00Z|2|0|7|9|9|20|20|20",
        ])
      #expect(try ask(s, "latency-by-hour", ["since": "'2026-11-30 10:30'"]).count == 1)
    }
  }

  @Test("last-day.sql counts states and outcomes, and both add up")
  func lastDay() async throws {
    try await scenario { s in
      for outcome in ["accepted", "accepted", "dead_token"] {
        let nudge = try s.backend.nudge(["title": "T"])
        try attempt(s, nudge, "phone-1", at: now(), took: 5, outcome, outcome == "accepted" ? 200 : 410)
        try settle(s, nudge, "attempted", at: now())
      }
      let flying = try s.backend.nudge(["title": "T"])
      try attempt(s, flying, "phone-1", at: now(), took: nil, nil, nil)
      try s.backend.nudge(["event": "job_finished"])
      let old = try s.backend.nudge(["title": "T", "created_at": .integer(now(plus: -25 * 3_600_000))])
      try attempt(s, old, "phone-1", at: now(), took: 5, "accepted", 200)
      #expect(
        try ask(s, "last-day") == [
          "nudges|all|5", "nudges|attempted|3", "nudges|pending|1", "nudges|suppressed|1", "attempts|all|4",
          "attempts|accepted|2", "attempts|dead_token|1", "attempts|in flight|1",
        ])
      #expect(try ask(s, "last-day", ["since": "'2020-01-01'"]).first == "nudges|all|6")
      #expect(
        try ask(s, "last-day", ["since": "\(now(plus: 60_000))"]) == ["nudges|all|0", "attempts|all|0"])
    }
  }

  @Test("wrong-hosts.sql shows what the other host said and what is remembered")
  func wrongHosts() async throws {
    try await scenario { s in
      for (device, number) in [("found", 1), ("nowhere", 2), ("alone", 3), ("gone", 4)] {
        try s.backend.register(device, token: token(number))
      }
      try s.backend.run(
        "update nudge_token set environment = 'sandbox', proven_at = ? where device_id = 'found'",
        [.integer(ten)])
      try s.backend.run(
        "update nudge_token set rejected_at = ? where device_id = 'nowhere'", [.integer(ten)])
      try s.backend.run("delete from nudge_token where device_id = 'gone'")
      let nudge = try s.backend.nudge(["title": "T", "surface": "*"])
      func wrong(_ device: String, _ environment: String = "production", at offset: Int64) throws {
        try attempt(
          s, nudge, device, at: ten + offset, took: 5, "wrong_host", 400, reason: "BadDeviceToken",
          environment: environment)
      }
      try wrong("found", at: 0)
      try attempt(s, nudge, "found", at: ten + 8, took: 1, "unsent", nil, environment: "sandbox")
      try attempt(s, nudge, "found", at: ten + 10, took: 5, "accepted", 200, environment: "sandbox")
      try wrong("nowhere", at: 20)
      try wrong("nowhere", "sandbox", at: 30)
      try wrong("alone", at: 40)
      try wrong("gone", at: 50)
      try attempt(s, nudge, "gone", at: ten + 60, took: 5, "dead_token", 410, environment: "sandbox")
      #expect(
        try ask(s, "wrong-hosts") == [
          "2026-11-30T10:00:00.050Z|gone|alert|1|production|sandbox|dead_token 410|the token is gone",
          "2026-11-30T10:00:00.040Z|alone|alert|1|production||the other host was not asked|unknown",
          "2026-11-30T10:00:00.020Z|nowhere|alert|1|production|sandbox|wrong_host 400|"
            + "set aside until it is registered again",
          "2026-11-30T10:00:00.000Z|found|alert|1|production|sandbox|accepted 200|sandbox, proven",
        ])
    }
  }

  @Test("burned.sql lists what an outage cost, and nothing that failed for another reason")
  func burned() async throws {
    try await scenario { s in
      func spent(
        _ record: String, at offset: Int64, _ outcome: String, _ status: Int64?, _ reason: String? = nil
      ) throws {
        let id = try s.backend.nudge([
          "title": "T", "record_id": .text(record), "event": "turn_finished", "created_at": .integer(ten),
        ])
        try attempt(s, id, "phone-1", at: ten + offset, took: 5, outcome, status, reason: reason)
        try settle(s, id, "attempted", at: ten + offset)
      }
      try spent("a", at: 1000, "rejected", 503, "ServiceUnavailable")
      try spent("b", at: 2000, "unanswered", nil)
      try spent("c", at: 3000, "rejected", 403, "InvalidProviderToken")
      try spent("own fault", at: 3500, "rejected", 400, "BadTopic")
      try spent("fine", at: 3600, "accepted", 200)
      try spent("dead", at: 3700, "dead_token", 410)
      try spent("d", at: 4000, "interrupted", nil)
      try spent("g", at: 4200, "rejected", 429, "TooManyRequests")
      try spent("e", at: 4500, "unsent", nil)
      try spent("later", at: 4_000_000, "rejected", 500)
      let again = try s.backend.nudge(["title": "T", "record_id": "again", "created_at": .integer(ten)])
      try attempt(s, again, "phone-1", at: ten + 4600, took: 5, "unsent", nil)
      let late = try s.backend.nudge(["title": "T", "record_id": "f", "created_at": .integer(ten)])
      try settle(s, late, "expired", at: ten + 5000)
      let period = ["since": "'2026-11-30 10:00'", "until": "'2026-11-30 11:00'"]
      #expect(
        try ask(s, "burned", period) == [
          "2026-11-30T10:00:01.000Z|1|a|turn_finished|phone-1|rejected 503 ServiceUnavailable|no",
          "2026-11-30T10:00:02.000Z|2|b|turn_finished|phone-1|unanswered|perhaps",
          "2026-11-30T10:00:03.000Z|3|c|turn_finished|phone-1|rejected 403 InvalidProviderToken|no",
          "2026-11-30T10:00:04.000Z|7|d|turn_finished|phone-1|interrupted|perhaps",
          "2026-11-30T10:00:04.200Z|8|g|turn_finished|phone-1|rejected 429 TooManyRequests|no",
          "2026-11-30T10:00:04.500Z|9|e|turn_finished|phone-1|unsent|no",
          "2026-11-30T10:00:05.000Z|12|f|||expired, unsent|no",
        ])
      #expect(try ask(s, "burned", ["since": "'2026-11-30 11:00'", "until": "'2026-12-01'"]).count == 1)
    }
  }

  @Test("each file runs on empty tables, changes nothing, and shows in its header how it is called")
  func files() async throws {
    try await scenario { s in
      let names = try FileManager.default.contentsOfDirectory(atPath: "\(Paths.package)/deploy/audit")
      #expect(names.count == 8)
      for name in names {
        let file = try String(contentsOfFile: "\(Paths.package)/deploy/audit/\(name)", encoding: .utf8)
        #expect(file.contains("\".read deploy/audit/\(name)\"\n"))
        // `ask` opens the database with -readonly, so a statement that writes would fail.
        let result = try ask(s, name.replacing(".sql", with: ""))
        #expect(result.isEmpty || name == "last-day.sql", "\(name): \(result)")
      }
    }
  }

  // What is asked, and of what.

  /// The lines that a query prints, columns between bars, its parameters set as a person would in the shell.
  private func ask(_ s: Scenario, _ name: String, _ parameters: [String: String] = [:]) throws -> [String] {
    let settings = parameters.map { ".parameter set :\($0) \"\($1)\"" }
    let result = try runToEnd(
      [try Paths.program("sqlite3"), "-bail", "-readonly", s.database] + settings
        + [".read '\(Paths.package)/deploy/audit/\(name).sql'"], folder: s.folder)
    guard result.exit == .code(0), result.errors.isEmpty else { throw Failure("\(name): \(result.errors)") }
    return result.output.split(separator: "\n").map(String.init)
  }

  /// Writes an attempt as the worker would have. Its apns-id is the nudge and the milliseconds since ten o'clock.
  private func attempt(
    _ s: Scenario, _ nudge: Int64, _ device: String, at start: Int64, took: Int64?, _ outcome: String?,
    _ status: Int64?, reason: String? = nil, environment: String = "production", timestamp: Int64? = nil
  ) throws {
    let reachedNobody = outcome == "wrong_host" || outcome == "unsent"
    try s.backend.insert(
      "nudge_attempt",
      [
        "nudge_id": .integer(nudge), "device_id": .text(device), "token_kind": "alert",
        "token_hash": .text("hash of \(device)"), "environment": .text(environment), "push_type": "alert",
        "topic": .text(Backend.topic), "apns_id": .text("\(nudge)-\(start - ten)"),
        "started_at": .integer(start), "finished_at": Value(took.map { start + $0 }),
        "outcome": Value(outcome), "status": Value(status), "reason": Value(reason),
        "apns_timestamp_at": Value(timestamp), "may_have_buzzed": reachedNobody ? nil : 1,
      ])
  }

  /// Ends a nudge as the worker would have.
  private func settle(
    _ s: Scenario, _ nudge: Int64, _ state: String, at time: Int64, detail: String? = nil
  ) throws {
    try s.backend.run(
      "update nudge_outbox set state = ?, settled_at = ?, detail = ? where id = ?",
      [.text(state), .integer(time), Value(detail), .integer(nudge)])
  }
}
