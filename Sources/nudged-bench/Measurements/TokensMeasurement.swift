extension Measurement {
  static let tokens = Measurement(
    name: "tokens", summary: "the same backlog for one token and for many"
  ) { bench in
    let peer = try bench.startPeer()
    defer { peer.stop() }
    func rate(_ tokens: Int) throws -> Double {
      let backlog = try bench.backlog(devices: tokens)
      return try bench.rate(port: peer.port) {
        try backlog.add(bench.sizes.rows)
        return backlog
      }
    }
    let one = try rate(1)
    return try bench.sizes.tokens.map { count in
      Line(
        "backlog for \(Table.grouped(count)) tokens", try rate(count), "nudges/s",
        of: Line.Reference(name: "for one", value: one))
    }
  }
}
