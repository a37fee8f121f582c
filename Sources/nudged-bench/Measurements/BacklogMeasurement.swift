import APNsSimulator
import Glibc

extension Measurement {
  static let backlog = Measurement(
    name: "backlog", summary: "sends a backlog, beside the ceiling and beside who only sends"
  ) { bench in
    let peer = try bench.startPeer()
    defer { peer.stop() }
    let (rows, port) = (bench.sizes.rows, peer.port)
    var nudged = Contender("nudged", rows) {
      let backlog = try bench.backlog()
      try backlog.add(rows)
      return try bench.drain(backlog, port: port)
    }
    var others: [Contender] = []
    if bench.ceiling != nil {
      others += [
        Contender("ceiling", rows) { try Ceiling.drain(rows, port: port, in: bench.ceilingFolder) },
        Contender("C, sends only", rows) { try Ceiling.send(rows, port: port, in: bench.ceilingFolder) },
      ]
    }
    if isInstalled("h2load") {
      others.append(Contender("h2load, sends only", rows) { try bench.load(rows, port: port) })
    }
    // In turn, so that what else the machine does meets all of them.
    for _ in 1...bench.sizes.runs {
      try nudged.compete()
      for index in others.indices { try others[index].compete() }
    }
    let what = "backlog of \(Table.grouped(rows))"
    let (rate, cpu, peak) = (nudged.rate, nudged.cpu, nudged.peak)
    guard !others.isEmpty else {
      return [
        Line(what, rate, "nudges/s"), Line("\(what), CPU each", cpu, "µs"),
        Line("\(what), peak memory", peak, "MiB"),
      ]
    }
    func isCeiling(_ other: Contender) -> Bool { other.name == "ceiling" }
    return others.map {
      Line(what, rate, "nudges/s", of: $0.reference(\.rate), isCeiling($0) ? .atLeast(0.8) : nil)
    }
      + others.map {
        Line("\(what), CPU each", cpu, "µs", of: $0.reference(\.cpu), isCeiling($0) ? .atMost(1.25) : nil)
      }
      + others.map { Line("\(what), peak memory", peak, "MiB", of: $0.reference(\.peak)) }
  }
}

/// A program that sends a backlog, and how it did.
private struct Contender {
  let name: String
  private let count: Int
  private let run: () throws -> Usage
  private var usages: [Usage] = []

  init(_ name: String, _ count: Int, run: @escaping () throws -> Usage) {
    (self.name, self.count, self.run) = (name, count, run)
  }

  mutating func compete() throws { usages.append(try run()) }

  var rate: Double { Double(count) / Sample(usages.map(\.wall)).median }
  /// Microseconds of the whole process.
  var cpu: Double { Sample(usages.map(\.cpu)).median / Double(count) * 1_000_000 }
  var peak: Double { Sample(usages.map(\.peakMiB)).median }

  func reference(_ value: KeyPath<Contender, Double>) -> Line.Reference {
    Line.Reference(name: name, value: self[keyPath: value])
  }
}

extension Bench {
  /// The same number of requests of the same size with h2load: always the same token, and nothing behind them.
  fileprivate func load(_ rows: Int, port: UInt16) throws -> Usage {
    let authorization = try material.authorization(
      teamID: Self.teamID, wallMilliseconds: Simulator.wallMilliseconds())
    let body = "\(folder)/body.json"
    try write(Backlog.payload, to: body)
    let headers = [
      "authorization: \(authorization)", "apns-topic: \(Backlog.topic)", "apns-push-type: alert",
      "apns-priority: 10", "apns-expiration: 1999999999", "apns-id: 8f14e45f-ceea-467f-a9a4-000000000000",
    ]
    let arguments =
      ["h2load", "-n", "\(rows)", "-c", "1", "-m", "500", "-d", body]
      + headers.flatMap { ["-H", $0] } + ["https://127.0.0.1:\(port)/3/device/\(Backlog.token)"]
    let usage = try Child(arguments, core: .client).wait()
    guard usage.exitCode == 0 else { throw Trouble("h2load ended with \(usage.exitCode)") }
    return usage
  }
}
