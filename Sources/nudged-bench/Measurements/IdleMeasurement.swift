import SQLite

extension Measurement {
  static let idle = Measurement(
    name: "idle", summary: "a worker that is connected and has nothing to do"
  ) { bench in
    let receiver = try bench.receiver()
    let backlog = try bench.backlog(devices: 1)
    let worker = try bench.startWorker(backlog, port: receiver.port)
    defer { worker.terminate() }
    try Database(path: backlog.path, busyTimeout: .seconds(5)).execute(
      "insert into nudge_outbox (recipient, title) values ('user-0', 'One')")
    _ = try receiver.nextArrival()
    // It settles, and looks again for a while.
    receiver.serve(for: .seconds(2))
    let (sleeps, cpu) = (ProcessFile.sleeps(worker.pid), ProcessFile.cpu(worker.pid))
    receiver.serve(for: .seconds(bench.sizes.idleSeconds))
    let seconds = Double(bench.sizes.idleSeconds)
    let (status, memory) = (ProcessFile.status(worker.pid), ProcessFile.memory(worker.pid))
    func mebibytes(_ kibibytes: Int?) -> Double { Double(kibibytes ?? 0) / 1024 }
    return [
      // What is counted ends somewhere between two wake-ups.
      Line("idle, wake-ups", Double(ProcessFile.sleeps(worker.pid) - sleeps) / seconds, "/s", .atMost(1)),
      Line("idle, CPU", (ProcessFile.cpu(worker.pid) - cpu) / seconds * 1_000_000, "µs/s"),
      Line("idle, resident memory", mebibytes(status["VmRSS"]), "MiB", .atMost(12)),
      Line("idle, of that its share of what is mapped (PSS)", mebibytes(memory["Pss"]), "MiB"),
      Line("idle, of that its own (anonymous)", mebibytes(status["RssAnon"]), "MiB"),
    ]
  }
}
