import Foundation

/// The books after an ``Ordeal``: the database's word against the peers' own logs.
struct Ledger {
  /// One request as a peer saw it.
  private struct Request {
    let apnsID: String
    let token: String
    let title: String
    let environment: String
    let stream: Int
    /// The status that the peer gave, before it disclaimed anything.
    var status: Int?
    /// The peer said that it never processed it: REFUSED_STREAM, or above a GOAWAY's last stream.
    var isDisclaimed = false

    /// It may have buzzed, or was refused for good: in either case it must not be asked again.
    var isFinal: Bool { !isDisclaimed && status != 400 }
  }

  private struct Line: Decodable {
    let event: String
    let connection: Int?
    let stream: Int?
    let token: String?
    let headers: [[String]]?
    let body: String?
    let status: Int?
    let code: Int?
    let last: Int?
  }

  private struct Attempt {
    let nudge: Int64
    let device: String
    let hash: String
    let environment: String
    let outcome: String
  }

  private(set) var violations: [String] = []
  private(set) var nudges = 0
  private var counts: [(String, Int)] = []

  init(_ scenario: Scenario, _ ordeal: Ordeal) throws {
    let requests =
      try Self.requests(scenario.path("peer-1.log"), "production")
      + Self.requests(scenario.path("peer-2.log"), "sandbox")
    var titles: [Int64: String] = [:]
    for row in try scenario.backend.run("select id, title from nudge_outbox") {
      titles[row["id"].integer ?? 0] = row["title"].text
    }
    var attempts: [String: Attempt] = [:]
    for row in try scenario.backend.run("select * from nudge_attempt") {
      let id = row["apns_id"].text ?? "NULL"
      if attempts[id] != nil { violations.append("two attempts with apns_id \(id)") }
      attempts[id] = Attempt(
        nudge: row["nudge_id"].integer ?? 0, device: row["device_id"].text ?? "NULL",
        hash: row["token_hash"].text ?? "NULL", environment: row["environment"].text ?? "NULL",
        outcome: row["outcome"].text ?? "open")
    }
    nudges = titles.count
    judge(requests, attempts, titles, ordeal)
    judgeCompleteness(attempts.values, titles, ordeal)
    try judgeTables(scenario.backend)

    counts.append(("nudges", nudges))
    counts.append(("attempts", attempts.count))
    for (outcome, group) in Dictionary(grouping: attempts.values, by: \.outcome).sorted(by: {
      $0.key < $1.key
    }) {
      counts.append(("  \(outcome)", group.count))
    }
    counts.append(("requests at the peers", requests.count))
    counts.append(("  answered 200", requests.filter { $0.status == 200 }.count))
    counts.append(("  disclaimed (REFUSED_STREAM, GOAWAY)", requests.filter(\.isDisclaimed).count))
    counts.append(("violations", violations.count))
  }

  var summary: String { counts.map { "\($0.0): \($0.1)" }.joined(separator: "\n") + "\n" }

  private static func requests(_ log: String, _ environment: String) throws -> [Request] {
    struct Place: Hashable {
      let connection: Int
      let stream: Int
    }
    var order: [Place] = []
    var requests: [Place: Request] = [:]
    var lastStream: [Int: Int] = [:]
    let decoder = JSONDecoder()
    for text in try Data(contentsOf: URL(filePath: log)).split(separator: 0x0a) {
      let line = try decoder.decode(Line.self, from: Data(text))
      let place = Place(connection: line.connection ?? 0, stream: line.stream ?? 0)
      switch line.event {
      case "request":
        let aps = (try JSONSerialization.jsonObject(with: Data((line.body ?? "").utf8)) as? [String: Any])?[
          "aps"]
        let title = ((aps as? [String: Any])?["alert"] as? [String: Any])?["title"] as? String
        let id = line.headers?.first { $0.first == "apns-id" }?.last
        requests[place] = Request(
          apnsID: id ?? "none", token: line.token ?? "none", title: title ?? "none", environment: environment,
          stream: place.stream, isDisclaimed: place.stream > lastStream[place.connection] ?? .max)
        order.append(place)
      case "answer" where requests[place]?.isDisclaimed == false: requests[place]?.status = line.status
      case "sent_reset" where line.code == 7 && requests[place]?.status == nil:
        requests[place]?.isDisclaimed = true
      case "sent_goaway":
        let last = line.last ?? .max
        lastStream[place.connection] = last
        for other in order where other.connection == place.connection && other.stream > last {
          if requests[other]?.status == nil { requests[other]?.isDisclaimed = true }
        }
      default: break
      }
    }
    return order.compactMap { requests[$0] }
  }

  /// What each peer saw has one attempt of its own, which tells the same story.
  private mutating func judge(
    _ requests: [Request], _ attempts: [String: Attempt], _ titles: [Int64: String], _ ordeal: Ordeal
  ) {
    var asked: [String: Int] = [:]
    var byDevice: [String: Int] = [:]
    var byToken: [String: Int] = [:]
    var hashes: [String: Set<String>] = [:]
    var hashed: [String: Set<String>] = [:]
    for request in requests {
      guard let attempt = attempts[request.apnsID] else {
        violations.append("a request without an attempt row: \(request)")
        continue
      }
      asked[request.apnsID, default: 0] += 1
      hashes[request.token, default: []].insert(attempt.hash)
      hashed[attempt.hash, default: []].insert(request.token)
      if request.isFinal {
        byDevice["\(request.title), \(attempt.device)", default: 0] += 1
        byToken["\(request.title), \(request.token)", default: 0] += 1
      }
      let owners = ordeal.owners[request.token] ?? []
      if titles[attempt.nudge] != request.title || attempt.environment != request.environment
        || !owners.contains(attempt.device)
      {
        violations.append("\(attempt) is about something else than \(request)")
      }
      var expected: Set<String> = ["interrupted"]
      switch request.status {
      case _ where request.isDisclaimed: expected.insert("unsent")
      case 200?: expected.insert("accepted")
      case 400?: expected.insert("wrong_host")
      case 410?: expected.insert("dead_token")
      default: break
      }
      if !expected.contains(attempt.outcome) { violations.append("\(attempt) after \(request)") }
    }
    for (key, count) in asked where count > 1 { violations.append("apns-id \(key) was sent \(count) times") }
    for (key, count) in byDevice where count > 1 { violations.append("\(key): \(count) buzzes of a device") }
    for (key, count) in byToken where count > 1 { violations.append("\(key): \(count) buzzes of a token") }
    for (key, set) in hashes where set.count > 1 { violations.append("token \(key) has the hashes \(set)") }
    for (key, set) in hashed where set.count > 1 { violations.append("hash \(key) stands for \(set)") }
    // An outcome that claims an answer needs one.
    let answers = Dictionary(grouping: requests, by: \.apnsID)
    for (id, attempt) in attempts {
      let statuses = answers[id]?.compactMap(\.status) ?? []
      switch attempt.outcome {
      case "accepted" where statuses != [200], "wrong_host" where statuses != [400],
        "dead_token" where statuses != [410]:
        violations.append("\(attempt), but the peer said \(statuses)")
      case "open", "unanswered", "rejected": violations.append("nobody caused this: \(attempt)")
      default: break
      }
    }
  }

  /// Each device that always had a living token got each nudge for it: one final attempt, or three times unsent.
  private mutating func judgeCompleteness(
    _ attempts: some Sequence<Attempt>, _ titles: [Int64: String], _ ordeal: Ordeal
  ) {
    var finals: [String: Int] = [:]
    var unsent: [String: Int] = [:]
    for attempt in attempts {
      let key = "\(titles[attempt.nudge] ?? "none"), \(attempt.device)"
      switch attempt.outcome {
      case "accepted", "interrupted", "dead_token": finals[key, default: 0] += 1
      case "unsent": unsent[key, default: 0] += 1
      default: break
      }
    }
    if titles.count != ordeal.wishes.count {
      violations.append("\(titles.count) rows of \(ordeal.wishes.count)")
    }
    for wish in ordeal.wishes {
      for device in wish.steady {
        let key = "\(wish.title), \(device)"
        let isDone = finals[key] == 1 || finals[key] == nil && unsent[key] == 3
        if !isDone {
          violations.append("\(key): \(finals[key] ?? 0) final, \(unsent[key] ?? 0) unsent attempts")
        }
      }
    }
  }

  /// States and outcomes partition their tables, and agree with each other.
  private mutating func judgeTables(_ backend: Backend) throws {
    let queries = [
      "rows that have not ended":
        "select count(*) from nudge_outbox where state not in ('attempted', 'unaddressed') or settled_at is null",
      "attempted without attempts":
        """
      select count(*) from nudge_outbox where state = 'attempted'
        and not exists (select 1 from nudge_attempt where nudge_id = nudge_outbox.id)
      """,
      "unaddressed with attempts":
        """
      select count(*) from nudge_outbox where state = 'unaddressed'
        and exists (select 1 from nudge_attempt where nudge_id = nudge_outbox.id)
      """,
      "attempts without a nudge":
        "select count(*) from nudge_attempt where nudge_id not in (select id from nudge_outbox)",
      "attempts that have not ended":
        "select count(*) from nudge_attempt where outcome is null or finished_at is null",
      "attempts that ended before they started":
        "select count(*) from nudge_attempt where finished_at < started_at",
      "may_have_buzzed that contradicts the outcome":
        """
      select count(*) from nudge_attempt
      where (may_have_buzzed is null) <> (outcome in ('unsent', 'wrong_host'))
      """,
      "devices with two buzzes":
        """
      select count(*) from (select 1 from nudge_attempt where may_have_buzzed = 1
        group by nudge_id, device_id having count(*) > 1)
      """,
      "tokens with two buzzes":
        """
      select count(*) from (select 1 from nudge_attempt where may_have_buzzed = 1
        group by nudge_id, token_hash having count(*) > 1)
      """,
    ]
    for (what, query) in queries.sorted(by: { $0.key < $1.key }) {
      let count = try backend.count(query)
      if count != 0 { violations.append("\(what): \(count)") }
    }
    let check = try backend.value("pragma integrity_check")
    if check != "ok" { violations.append("integrity_check: \(check)") }
  }
}
