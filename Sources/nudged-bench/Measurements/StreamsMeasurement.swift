extension Measurement {
  static let streams = Measurement(
    name: "streams", summary: "a peer that answers after 50 ms, on 1, 2 and 4 connections"
  ) { bench in
    let script = "\(bench.folder)/delay.json"
    try write(#"{"rules": [{"delay": "50ms"}]}"#, to: script)
    // The simulator allows 1,000 streams a connection.
    let peer = try bench.startSimulator(["--script", script])
    defer { peer.stop() }
    return try [1, 2, 4].map { connections in
      let rate = try bench.rate(port: peer.port, flags: ["--connections", "\(connections)"]) {
        let backlog = try bench.backlog()
        try backlog.add(bench.sizes.rows)
        return backlog
      }
      return Line(
        "answers after 50 ms, --connections \(connections)", rate, "nudges/s",
        of: Line.Reference(name: "streams/RTT", value: Double(connections) * 1000 / 0.05))
    }
  }
}
