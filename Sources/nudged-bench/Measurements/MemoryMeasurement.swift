extension Measurement {
  static let memory = Measurement(
    name: "memory", summary: "what a worker takes that drains a long backlog"
  ) { bench in
    let peer = try bench.startPeer()
    defer { peer.stop() }
    let backlog = try bench.backlog()
    try backlog.add(bench.sizes.pending)
    let usage = try bench.drain(backlog, port: peer.port)
    return [
      Line(
        "\(Table.grouped(bench.sizes.pending)) pending rows, peak memory", usage.peakMiB, "MiB", .atMost(32))
    ]
  }
}
