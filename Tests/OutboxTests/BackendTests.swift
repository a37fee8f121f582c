import Foundation
@testable import Outbox
import SQLite
import Testing

@Suite("Backend")
struct BackendTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
    _ = try Migration.apply(databaseAt: path)
  }

  private func fault(_ body: () throws -> Void) -> DatabaseFault? {
    do {
      try body()
      return nil
    } catch {
      return error as? DatabaseFault
    }
  }

  @Test("a nudge gets the given columns, and defaults for the rest")
  func send() throws {
    let body = "Grüße 👩‍👩‍👧 'quoted'; drop table nudge_outbox"
    let id = try Backend.send([.body: .text(body), .priority: .integer(5)], databaseAt: path)
    let database = try Database(path: path)
    #expect(try database.text("select body from nudge_outbox where id = \(id)") == body)
    #expect(try database.integer("select priority from nudge_outbox where id = \(id)") == 5)
    #expect(
      try database.text("select kind || recipient || surface || state from nudge_outbox")
        == "alertownerphonepending")
    #expect(try database.integer("select count(*) from nudge_outbox where title is null") == 1)
  }

  @Test("ids are those of the rows, also when a trigger settles the row at once")
  func ids() throws {
    #expect(try Backend.send([:], databaseAt: path) == 1)
    #expect(try Backend.send([.dedupeKey: .text("k")], databaseAt: path) == 2)
    #expect(try Backend.send([.dedupeKey: .text("k")], databaseAt: path) == 3)
    let database = try Database(path: path)
    #expect(try database.text("select state from nudge_outbox where id = 3") == "suppressed")
  }

  @Test("a row that can never be sent is taken all the same")
  func invalid() throws {
    #expect(try Backend.send([.kind: .text("nonsense"), .aps: .text("[")], databaseAt: path) == 1)
  }

  @Test("the outbox's columns are those of the table, but for what is not the backend's")
  func columns() throws {
    let database = try Database(path: path)
    let statement = try database.prepare("select name from pragma_table_info('nudge_outbox')")
    var names: Set<String> = []
    while try statement.step() { names.insert(statement.string(0) ?? "") }
    let ours = Set(Backend.OutboxColumn.allCases.map(\.rawValue))
    #expect(ours.isSubset(of: names))
    #expect(names.subtracting(ours) == ["id", "created_at", "state", "detail", "settled_at"])
  }

  @Test("the registration's columns are those of the view")
  func registrationColumns() throws {
    let database = try Database(path: path)
    let statement = try database.prepare("select name from pragma_table_info('nudge_registration')")
    var names: [String] = []
    while try statement.step() { names.append(statement.string(0) ?? "") }
    #expect(names == Backend.RegistrationColumn.allCases.map(\.rawValue))
  }

  @Test("devices come with their tokens, in the order of recipient and id")
  func devices() throws {
    #expect(try Backend.devices(databaseAt: path) == [])
    for (device, recipient) in [("b", "owner"), ("a", "owner"), ("z", "guest")] {
      try Backend.register(
        [.deviceID: .text(device), .recipient: .text(recipient), .topic: .text("com.example.app")],
        databaseAt: path)
    }
    try Backend.register(
      [
        .deviceID: .text("a"), .kind: .text("alert"), .token: .text("<ABCD ef01>"),
        .environment: .text("sandbox"), .registeredAt: .integer(1_790_000_000_000),
      ], databaseAt: path)
    try Backend.register(
      [
        .deviceID: .text("a"), .kind: .text("activity_start"), .scope: .text("Ride"),
        .token: .text("0123"), .registeredAt: .integer(1_790_000_000_001),
      ], databaseAt: path)
    let devices = try Backend.devices(databaseAt: path)
    #expect(devices.map(\.id) == ["z", "a", "b"])
    #expect(devices[0].tokens == [])
    #expect(
      devices[1].tokens == [
        .init(
          kind: "activity_start", scope: "Ride", token: "0123", environment: nil, provenAt: nil,
          registeredAt: 1_790_000_000_001, rejectedAt: nil),
        .init(
          kind: "alert", scope: "", token: "abcdef01", environment: "sandbox", provenAt: nil,
          registeredAt: 1_790_000_000_000, rejectedAt: nil),
      ])
  }

  @Test(
    "a malformed registration is refused in the schema's words and changes nothing",
    arguments: [
      ([:], "nudge_registration.device_id"),
      ([.deviceID: .text("a"), .token: .text("xyz")], "nudge_registration.token"),
      ([.deviceID: .text("a"), .environment: .text("staging")], "nudge_registration.environment"),
      ([.deviceID: .text("a"), .registeredAt: .integer(1_790_000_000)], "nudge_registration.registered_at"),
    ] as [([Backend.RegistrationColumn: Backend.Value], String)])
  func refused(row: [Backend.RegistrationColumn: Backend.Value], column: String) throws {
    let fault = fault { try Backend.register(row, databaseAt: path) }
    #expect(fault?.kind == .refused)
    #expect(fault?.message.hasPrefix(column) == true)
    #expect(try Backend.devices(databaseAt: path) == [])
  }

  @Test("without the tables it says which command makes them")
  func unmigrated() throws {
    let other = try folder.database("other.db")
    let steps: [() throws -> Void] = [
      { _ = try Backend.send([:], databaseAt: other) },
      { try Backend.register([:], databaseAt: other) },
      { _ = try Backend.devices(databaseAt: other) },
    ]
    for step in steps {
      #expect(fault(step)?.message.contains("nudged migrate --database \(other)") == true)
    }
  }
}
