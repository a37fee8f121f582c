import Glibc
import SQLite

extension Measurement {
  static let commits = Measurement(
    name: "commits", summary: "the backend's own commits beside a worker that drains"
  ) { bench in
    let peer = try bench.startPeer()
    defer { peer.stop() }
    var (beside, alone, rates) = (Sample(), Sample(), Sample())
    let rows = bench.sizes.besideCommits
    for _ in 1...bench.sizes.runs {
      let backlog = try bench.backlog()
      try backlog.add(rows)
      let database = try Database(path: backlog.path, busyTimeout: .seconds(5))
      try database.execute("create table message (id integer primary key, text text)")
      let insert = try database.prepare("insert into message (text) values (?1)")
      insert.bind(1, Backlog.body)
      func commit(_ sample: inout Sample) throws {
        let start = ContinuousClock.now
        try insert.run()
        sample.add((ContinuousClock.now - start) / .milliseconds(1))
        usleep(2000)
      }
      var count = 0
      let usage = try bench.drain(
        backlog, port: peer.port,
        meanwhile: { _ in
          try commit(&beside)
          count += 1
        })
      rates.add(Double(rows) / usage.wall)
      for _ in 0..<count { try commit(&alone) }
    }
    func line(_ what: String, _ share: Double, _ target: Line.Target?) -> Line {
      Line(
        "backend's commit beside a drain, \(what)", beside.quantile(share), "ms",
        of: Line.Reference(name: "without", value: alone.quantile(share)), target)
    }
    return [
      line("median", 0.5, nil), line("p99", 0.99, .atMost(2)),
      Line("the drain beside a backend that commits", rates.median, "nudges/s"),
    ]
  }
}
