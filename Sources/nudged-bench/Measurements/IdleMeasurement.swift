import SQLite

extension Measurement {
  static let idle = Measurement(
    name: "idle", summary: "a worker that is connected and has nothing to do"
  ) { bench in
    let receiver = try bench.receiver()
    let backlog = try bench.backlog(devices: 1)
    let worker = try bench.startWorker(backlog, port: receiver.port)
    defer { worker.terminate() }
    let database = try Database(path: backlog.path, busyTimeout: .seconds(5))
    try database.execute("insert into nudge_outbox (recipient, title) values ('user-0', 'One')")
    _ = try receiver.nextArrival()
    // It settles, and looks again for a while.
    receiver.serve(for: .seconds(2))
    let (sleeps, cpu) = (ProcessFile.sleeps(worker.pid), ProcessFile.cpu(worker.pid))
    receiver.serve(for: .seconds(bench.sizes.idleSeconds))
    let seconds = Double(bench.sizes.idleSeconds)
    let lines = [
      // What is counted ends somewhere between two wake-ups.
      Line("idle, wake-ups", Double(ProcessFile.sleeps(worker.pid) - sleeps) / seconds, "/s", .atMost(1)),
      Line("idle, CPU", (ProcessFile.cpu(worker.pid) - cpu) / seconds * 1_000_000, "µs/s"),
    ]
    let connected = memory(of: worker, "idle")
    try database.execute(
      """
      with recursive n(i) as (values (1) union all select i + 1 from n where i < \(burst))
      insert into nudge_outbox (recipient, title, body) select 'user-0', i, '\(Backlog.body)' from n
      """)
    for _ in 1...burst { _ = try receiver.nextArrival() }
    receiver.serve(for: .seconds(4))
    return lines + connected + memory(of: worker, "idle after \(burst) nudges at once")
  }

  /// As many as a connection takes at once.
  private static let burst = 1000

  private static func memory(of worker: Child, _ what: String) -> [Line] {
    let (status, memory) = (ProcessFile.status(worker.pid), ProcessFile.memory(worker.pid))
    func mebibytes(_ kibibytes: Int?) -> Double { Double(kibibytes ?? 0) / 1024 }
    return [
      Line("\(what), resident memory", mebibytes(status["VmRSS"]), "MiB", .atMost(12)),
      Line("\(what), of that its share of what is mapped (PSS)", mebibytes(memory["Pss"]), "MiB"),
      Line("\(what), of that its own (anonymous)", mebibytes(status["RssAnon"]), "MiB"),
    ]
  }
}
