import Glibc
import SQLite

extension Measurement {
  static let costs = Measurement(
    name: "costs", summary: "calls of the system, writes and transactions for each nudge; size of the program"
  ) { bench in
    let peer = try bench.startPeer()
    defer { peer.stop() }
    let thousands = Double(bench.sizes.rows) / 1000
    let log = try bench.log(port: peer.port)
    var lines = [
      Line("for 1,000 nudges: write transactions", Double(log.commits) / thousands, ""),
      Line("for 1,000 nudges: pages written to the log", Double(log.pages) / thousands, ""),
    ]
    if isInstalled("strace") {
      // What starting and connecting takes is left out.
      let start = try bench.trace(rows: 1, port: peer.port)
      let whole = try bench.trace(rows: bench.sizes.rows, port: peer.port)
      let writes = whole.socketWrites - start.socketWrites
      lines += [
        Line("for 1,000 nudges: syncs to disk", Double(whole.syncs - start.syncs) / thousands, ""),
        Line("for 1,000 nudges: system calls", Double(whole.total - start.total) / thousands, ""),
        Line(
          "a write to the peer", Double(whole.socketBytes - start.socketBytes) / Double(max(1, writes)), "B"),
      ]
    }
    var file = stat()
    stat(bench.nudged, &file)
    lines.append(Line("the program's size", Double(file.st_size) / 1_048_576, "MiB"))
    return lines
  }
}

extension Bench {
  /// The log of a whole drain: somebody who reads keeps all of it from being moved into the database.
  fileprivate func log(port: UInt16) throws -> LogFile {
    let backlog = try backlog()
    try backlog.add(sizes.rows)
    let reader = try Database(path: backlog.path)
    try reader.execute("begin")
    _ = try reader.integer("select count(*) from nudge_device")
    _ = try drain(backlog, port: port)
    return try LogFile(of: backlog.path)
  }

  fileprivate func trace(rows: Int, port: UInt16) throws -> Trace {
    let backlog = try backlog()
    try backlog.add(rows)
    let file = "\(folder)/trace"
    _ = try drain(backlog, port: port, tracer: ["strace", "-f", "-y", "-s", "0", "-o", file])
    return Trace(contents(of: file) ?? "")
  }
}
