import Foundation
import Testing

@Suite("Memory", .serialized)
struct MemoryTests {
  @Test(
    "an idle worker gives back what a start, a handshake and a burst have read of the program, and works on")
  func idle() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let worker = try s.worker(production: peer)
      try s.backend.script(
        """
        with recursive n(i) as (values (1) union all select i + 1 from n where i < 200)
        insert into nudge_outbox (title) select 'Number ' || i from n
        """)
      // Watched from here on: on a busy machine the worker may find itself idle before this test goes on.
      var most = 0
      try await eventually(
        "half of it is given back", within: .seconds(30), state: { "\(pages(worker)) KiB, \(most) at most" }
      ) {
        let now = pages(worker)
        most = max(most, now)
        return 0 < now && now < most / 2
      }
      try await s.backend.settled(200)
      try await s.backend.settled(try s.backend.nudge())
      #expect(try peer.requests().count == 201)
    }
  }

  /// What is resident of files, in KiB.
  private func pages(_ child: Child) -> Int {
    let status = (try? String(contentsOfFile: "/proc/\(child.pid)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("RssFile:") }
    return line?.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) } ?? 0
  }
}
