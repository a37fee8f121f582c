import SQLite

extension Measurement {
  static let latency = Measurement(
    name: "latency", summary: "from COMMIT's return to the request, the worker idle and its connection proven"
  ) { bench in
    let receiver = try bench.receiver()
    let backlog = try bench.backlog(devices: 1)
    let worker = try bench.startWorker(backlog, port: receiver.port)
    defer { worker.terminate() }
    return try ["FULL", "NORMAL"].flatMap { synchronous in
      let database = try Database(path: backlog.path, busyTimeout: .seconds(5))
      try database.execute("pragma synchronous = \(synchronous)")
      let insert = try database.prepare(
        "insert into nudge_outbox (recipient, title, body) values ('user-0', ?1, ?2)")
      insert.bind(1, Backlog.title)
      insert.bind(2, Backlog.body)
      var delays = Sample()
      // The first ones find a connection that is being made, and caches that are cold.
      for number in -10..<bench.sizes.commits {
        try insert.run()
        let committed = ContinuousClock.now
        let delay = (try receiver.nextArrival() - committed) / .milliseconds(1)
        if number >= 0 { delays.add(delay) }
        receiver.serve(for: .milliseconds(20))
      }
      let what = "COMMIT to request, synchronous=\(synchronous)"
      return [
        Line("\(what), median", delays.median, "ms", .atMost(1)),
        Line("\(what), p99", delays.quantile(0.99), "ms", .atMost(3)),
      ]
    }
  }
}
