import Foundation
import SQLite
import Testing

@testable import nudged

@Suite("deploy/examples")
struct ExamplesTests {
  private let folder: TemporaryFolder
  private let variables: [String: String]
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    try Database(path: path).execute(
      "drop table message; create table message (id text primary key, conversation_id text, text text)")
    try nudged(["migrate", "--database", path])
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    variables = [
      "NUDGED_DATABASE": path, "examples": root.appending(path: "deploy/examples").path,
      "folder": folder.path,
    ]
  }

  @Test("the SQL runs as it stands")
  func sql() throws {
    let database = try Database(path: path)
    let child = try Child.shell(
      "sqlite3 -bail \"$NUDGED_DATABASE\" < \"$examples/nudges.sql\"", environment: variables)
    #expect((child.status, child.errors) == (0, ""))
    #expect(
      try database.text("select group_concat(state) from (select state from nudge_outbox order by id)")
        == "pending,pending,pending,cancelled,pending,pending,pending,pending")
    #expect(try database.integer("select count(*) from nudge_token") == 2)
    #expect(
      try database.integer(
        "select count(*) from nudge_outbox where not json_valid(coalesce(aps, '{}')) or not json_valid(coalesce(data, '{}'))"
      ) == 0)
  }

  @Test("Python writes the record and the nudge")
  func python() throws {
    let database = try Database(path: path)
    let child = try Child.shell(
      "\"$examples/backend.py\" \"$NUDGED_DATABASE\" \"It's done\"", environment: variables)
    #expect((child.status, child.errors) == (0, ""))
    #expect(
      try database.text(
        "select o.body from message m join nudge_outbox o on o.record_id = m.id and o.body = m.text")
        == "It's done")
  }

  @Test("the shell nudges when a job fails, once a day")
  func shell() throws {
    let database = try Database(path: path)
    let child = try Child.shell(
      """
      ln -s "$nudged" "$folder/nudged"; PATH="$folder:$PATH"
      "$examples/job.sh" true; "$examples/job.sh" false; "$examples/job.sh" false
      """, environment: variables)
    #expect((child.status, child.output, child.errors) == (0, "1\n2\n", ""))
    #expect(
      try database.text("select group_concat(state) from nudge_outbox where event = 'failure'")
        == "pending,suppressed")
  }
}
