import Foundation
import Testing

@testable import Outbox

@Suite("WorkerLock.holder")
struct WorkerLockHolderTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
  }

  @Test("nobody, without a lock file, with one that nobody holds, and without a database; nothing is made")
  func nobody() throws {
    #expect(WorkerLock.holder(databasePath: path) == nil)
    #expect(!FileManager.default.fileExists(atPath: path + "-nudged.lock"))
    do { _ = try WorkerLock(databasePath: path) }
    #expect(FileManager.default.fileExists(atPath: path + "-nudged.lock"))
    #expect(WorkerLock.holder(databasePath: path) == nil)
    #expect(WorkerLock.holder(databasePath: folder.file("absent.db")) == nil)
  }

  @Test("a lock is seen through every link, and asking does not take it")
  func held() throws {
    let link = folder.file("link.db")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    _ = FileManager.default.createFile(atPath: path + "-nudged.lock", contents: nil)
    let file = try #require(FileHandle(forUpdatingAtPath: path + "-nudged.lock"))
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    // F_OFD_SETLK: such a lock meets this process's own questions, and has no pid (`man 2 fcntl`).
    #expect(fcntl(file.fileDescriptor, 37, &range) == 0)
    #expect(WorkerLock.holder(databasePath: path) == 0)
    #expect(WorkerLock.holder(databasePath: link) == 0)
    range.l_type = Int16(F_UNLCK)
    #expect(fcntl(file.fileDescriptor, 37, &range) == 0)
    #expect(WorkerLock.holder(databasePath: link) == nil)
    _ = try WorkerLock(databasePath: path)
  }
}
