import Glibc

extension Measurement {
  static let counts = Measurement(
    name: "counts", summary: "instructions and allocations of a nudge, beside those of an earlier version"
  ) { bench in
    guard isInstalled("valgrind"), isInstalled("strip") else { return [] }
    let (few, many) = bench.sizes.counted
    let (start, whole) = (try bench.profile(rows: few), try bench.profile(rows: many))
    func each(_ count: KeyPath<Profile, Int>) -> Double {
      Double(whole[keyPath: count] - start[keyPath: count]) / Double(many - few)
    }
    let counts = [("instructions", each(\.instructions)), ("allocations", each(\.allocations))]
    if bench.options.keeps {
      try write(
        counts.map { "\($0) \(Table.decimal($1, 1))\n" }.joined(), to: bench.options.kept)
    }
    let kept = (contents(of: bench.options.kept) ?? "").split(separator: "\n").map {
      $0.split(separator: " ")
    }
    return counts.map { name, count in
      let before = kept.first { $0.first == name[...] }?.last.flatMap { Double($0) }
      return Line(
        "\(name) each", count, "", of: before.map { Line.Reference(name: "kept", value: $0) },
        before.map { _ in .atMost(1.1) })
    }
  }
}

extension Bench {
  /// Drains a backlog under callgrind.
  ///
  /// The peer answers only when the worker has nothing more to do: how many answers meet in a turn, and so how
  /// many turns there are, would else depend on what the machine does besides.
  fileprivate func profile(rows: Int) throws -> Profile {
    // valgrind 3.19 stumbles over the debug sections, and needs the symbols.
    var stripped = self
    stripped.nudged = "\(folder)/stripped"
    _ = Child.printed(["strip", "--strip-debug", "-o", stripped.nudged, nudged], through: "/dev/null")
    let receiver = try receiver(isHolding: true)
    let backlog = try backlog()
    try backlog.add(rows)
    let output = "\(folder)/profile"
    // Of epoll_pwait2 it says at each call that it does not know it; the worker then does without.
    let tracer = [
      "valgrind", "--tool=callgrind", "--callgrind-out-file=\(output)", "--log-file=\(folder)/valgrind.log",
    ]
    var waits = 0
    _ = try stripped.drain(backlog, port: receiver.port, tracer: tracer) { pid in
      receiver.serve(for: .milliseconds(10))
      waits = ProcessFile.isWaiting(pid) ? waits + 1 : 0
      if waits >= 20 {
        receiver.release()
        waits = 0
      }
    }
    return Profile(contents(of: output) ?? "")
  }
}
