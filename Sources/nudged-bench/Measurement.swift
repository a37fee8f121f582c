/// One thing that is measured, and the lines of the table that come of it.
struct Measurement: Sendable {
  /// As `--only` takes it.
  let name: String
  let summary: String
  let run: @Sendable (borrowing Bench) throws -> [Line]

  /// In the order of the table.
  static let all = [
    backlog, latency, idle, history, commits, memory, tokens, streams, costs, counts,
  ]
}
