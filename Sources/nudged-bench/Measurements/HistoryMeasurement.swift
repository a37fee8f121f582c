extension Measurement {
  static let history = Measurement(
    name: "history", summary: "the same backlog behind settled rows, among them, and behind rows due later"
  ) { bench in
    let peer = try bench.startPeer()
    defer { peer.stop() }
    let rows = bench.sizes.rows
    let alone = try bench.rate(port: peer.port) {
      let backlog = try bench.backlog()
      try backlog.add(rows)
      return backlog
    }
    func line(_ what: String, _ rate: Double, _ target: Line.Target? = nil) -> Line {
      // By time, as the figure to reach is said.
      Line(
        "\(what), time each", 1_000_000 / rate, "µs",
        of: Line.Reference(name: "behind none", value: 1_000_000 / alone),
        target)
    }
    var lines: [Line] = []
    for count in bench.sizes.histories {
      let backlog = try bench.backlog("history")
      defer { backlog.remove() }
      try backlog.addHistory(count)
      let words = "\(Table.grouped(count)) settled rows"
      lines.append(
        line(
          "behind \(words)",
          try bench.rate(port: peer.port) {
            try backlog.add(rows)
            return backlog
          }, .atMost(1.1)))
      guard count == bench.sizes.histories.last else { continue }
      lines.append(
        line(
          "scattered among \(words)",
          try bench.rate(port: peer.port) {
            try backlog.scatter(rows)
            return backlog
          }))
    }
    lines.append(
      line(
        "with \(Table.grouped(bench.sizes.later)) rows due later",
        try bench.rate(port: peer.port) {
          let backlog = try bench.backlog()
          try backlog.addLater(bench.sizes.later)
          try backlog.add(rows)
          return backlog
        }))
    return lines
  }
}
