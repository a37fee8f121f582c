/// Waits until `condition` holds, looking again every few milliseconds, and fails after `limit`, saying what was
/// waited for and what `state` shows at that time.
func eventually(
  _ what: String, within limit: Duration = .seconds(15), state: () -> String = { "" },
  _ condition: () throws -> Bool
) async throws {
  let deadline = ContinuousClock.now + limit
  while true {
    if try condition() { return }
    if ContinuousClock.now > deadline { throw Failure("not within \(limit): \(what). \(state())") }
    try await Task.sleep(for: .milliseconds(5))
  }
}
