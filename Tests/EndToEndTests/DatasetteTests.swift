import Foundation
import Testing

/// `deploy/datasette/metadata` offers the queries of `deploy/audit` as pages.
@Suite("deploy/datasette")
struct DatasetteTests {
  private func metadata(_ database: String, _ s: Scenario) throws -> [String: Any] {
    let made = try runToEnd(["\(Paths.package)/deploy/datasette/metadata", database], folder: s.folder)
    guard made.exit == .code(0) else { throw Failure(made.errors) }
    try made.output.write(toFile: s.path("metadata.json"), atomically: true, encoding: .utf8)
    return try #require(try JSONSerialization.jsonObject(with: Data(made.output.utf8)) as? [String: Any])
  }

  @Test("each query is a page with its own text, a title, a description and its parameters")
  func pages() async throws {
    try await scenario(migrated: false) { s in
      let databases = try #require(try metadata(s.database, s)["databases"] as? [String: [String: Any]])
      let queries = try #require(databases["app"]?["queries"] as? [String: [String: Any]])
      let folder = "\(Paths.package)/deploy/audit"
      let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
      #expect(queries.keys.sorted() == files.map { $0.replacing(".sql", with: "") })
      for (name, query) in queries {
        #expect(
          query["sql"] as? String == (try String(contentsOfFile: "\(folder)/\(name).sql", encoding: .utf8)))
        let title = query["title"] as? String ?? ""
        #expect(title.contains(/^[A-Z][^:.]{10,50}$/), "\(name): \(title)")
        let description = query["description_html"] as? String ?? ""
        #expect(
          description.contains(/^<p>[A-Z].*[.)]<\/p>/) && !description.contains("sqlite3"),
          "\(name): \(description)")
      }
      let parameters = queries.mapValues { $0["params"] as? [String] ?? [] }
      #expect(parameters["burned"] == ["since", "until"])
      #expect(parameters["why-not"] == ["record", "since"])
      #expect(parameters["activity"] == ["activity"])
      #expect(parameters["wrong-hosts"] == [])
      let wrong = try runToEnd(["\(Paths.package)/deploy/datasette/metadata"], folder: s.folder)
      #expect(wrong.exit == .code(1) && wrong.errors.hasPrefix("usage: metadata DATABASE"))
    }
  }

  /// From PyPI, so not among the packages that `make deps` installs.
  private static let datasette =
    ProcessInfo.processInfo.environment["DATASETTE"]
    ?? ["/usr/local/bin/datasette", "/usr/bin/datasette"].first {
      FileManager.default.isExecutableFile(atPath: $0)
    }

  @Test(
    "Datasette serves every page, with and without what was typed into its form",
    .enabled(if: datasette != nil, "Datasette is not installed; DATASETTE=/path/to/datasette names one"))
  func served() async throws {
    let program = try #require(Self.datasette)
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge(["title": "T", "record_id": "m-1"])
      try await s.drain(production: peer)
      let databases = try #require(try metadata(s.database, s)["databases"] as? [String: [String: Any]])
      let queries = try #require(databases["app"]?["queries"] as? [String: [String: Any]])
      let socket = s.path("socket")
      _ = try s.run("datasette", [program, s.database, "-m", s.path("metadata.json"), "--uds", socket])
      func get(_ page: String) throws -> String {
        let answer = try runToEnd(
          [try Paths.program("curl"), "-sS", "--fail", "--unix-socket", socket, "http://datasette/\(page)"],
          folder: s.folder)
        guard answer.exit == .code(0) else { throw Failure("\(page): \(answer.errors)") }
        return answer.output
      }
      try await eventually("Datasette answers", within: .seconds(60)) { (try? get("-/versions.json")) != nil }
      let index = try get("app")
      for (name, query) in queries {
        let title = (query["title"] as? String ?? "").replacing("?", with: "")
        #expect(index.contains(title))
        #expect(try get("app/\(name)").contains("<h1"))
        let empty = (query["params"] as? [String] ?? []).map { "\($0)=" }.joined(separator: "&")
        #expect(try get("app/\(name).json?_shape=array&\(empty)").hasPrefix("["), "\(name)")
      }
      #expect(try get("app/record.json?_shape=array&record=m-1").contains("\"accepted\""))
      #expect(try get("app/last-day.json?_shape=array&since=").contains(#""what": "accepted", "count": 1"#))
      #expect(
        try get("app/last-day.json?_shape=array&since=2099-01-01").contains(#""what": "all", "count": 0"#))
    }
  }
}
