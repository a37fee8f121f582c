import Foundation
import Outbox
import SQLite
import Testing

@Suite("DatabaseFile")
struct DatabaseFileTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func fault(opening path: String) -> DatabaseFault? {
    do {
      _ = try Migration.apply(databaseAt: path)
      return nil
    } catch {
      return error
    }
  }

  @Test("a missing file is named and not created", arguments: ["missing.db", "no/such/folder.db", ""])
  func missing(name: String) {
    let path = name.isEmpty ? "" : folder.file(name)
    #expect(fault(opening: path)?.kind == .missing)
    #expect((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) == [])
  }

  @Test("names with a meaning for SQLite are file names here", arguments: [":memory:", "file:x?mode=memory"])
  func specialNames(name: String) {
    #expect(fault(opening: name)?.kind == .missing)
  }

  @Test("noise, long or short, is no database and stays as it is", arguments: [5, 99, 100, 4096, 70_000])
  func noise(size: Int) throws {
    var generator = SystemRandomNumberGenerator()
    let noise = Data((0..<size).map { _ in UInt8.random(in: 1...255, using: &generator) })
    try noise.write(to: URL(filePath: folder.file("noise.db")))
    let fault = fault(opening: folder.file("noise.db"))
    #expect(fault?.kind == .malformed)
    #expect(fault?.message.contains("noise.db: file is not a database") == true)
    #expect(try folder.content("noise.db") == noise)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["noise.db"])
  }

  @Test("a directory is named with owner and mode")
  func directory() {
    let fault = fault(opening: folder.path)
    #expect(fault?.kind == .inputOutput)
    #expect(fault?.message.contains("\(folder.path) is a directory") == true)
    #expect(fault?.message.contains("owner ") == true)
    #expect(fault?.message.contains("mode 0") == true)
  }

  @Test("a device is no database")
  func device() {
    #expect(fault(opening: "/dev/null")?.message.contains("not a regular file") == true)
  }

  @Test(
    "errors of SQLite become kinds with the path, and owner and mode where access failed",
    arguments: [
      (5, DatabaseFault.Kind.busy), (6, .busy), (8, .inputOutput), (14, .inputOutput), (13, .inputOutput),
      (10, .inputOutput), (11, .malformed), (26, .malformed), (1, .malformed), (1811, .refused),
    ] as [(Int32, DatabaseFault.Kind)])
  func kinds(code: Int32, kind: DatabaseFault.Kind) throws {
    let path = try folder.database()
    let fault = DatabaseFile.explain(SQLiteError(code: code, message: "words"), path: path)
    #expect(fault.kind == kind)
    if kind != .refused { #expect(fault.message.contains(path)) }
    if kind == .inputOutput { #expect(fault.message.contains("mode 0")) }
  }
}
