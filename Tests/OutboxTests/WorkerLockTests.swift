import Foundation
import Testing

@testable import Outbox

@Suite("WorkerLock")
struct WorkerLockTests {
  let folder: TemporaryFolder
  let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = try folder.database()
  }

  /// What F_OFD_SETLK says: such a lock belongs to an open file, so it meets this process's own lock too
  /// (`man 2 fcntl`).
  private func lock(_ file: FileHandle) -> Bool {
    var range = flock()
    range.l_type = Int16(F_WRLCK)
    return fcntl(file.fileDescriptor, 37, &range) == 0
  }

  private func lockFile() throws -> FileHandle {
    let file = path + "-nudged.lock"
    if !FileManager.default.fileExists(atPath: file) {
      _ = FileManager.default.createFile(atPath: file, contents: nil)
    }
    return try #require(FileHandle(forUpdatingAtPath: file))
  }

  @Test("its file has the mode of the database, whatever the umask and the mode that it had")
  func mode() throws {
    for mode in [0o660, 0o600, 0o664] {
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
      _ = try WorkerLock(databasePath: path)
      let attributes = try FileManager.default.attributesOfItem(atPath: path + "-nudged.lock")
      #expect(attributes[.posixPermissions] as? Int == mode)
    }
  }

  @Test("it stands beside the real database, whatever link leads there, and goes with its scope")
  func scope() throws {
    let link = folder.file("link.db")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
    do {
      let held = try WorkerLock(databasePath: link)
      #expect(try lock(lockFile()) == false)
      #expect(URL(filePath: held.databasePath).lastPathComponent == "app.db")
    }
    #expect(try lock(lockFile()))
    #expect(!FileManager.default.fileExists(atPath: link + "-nudged.lock"))
  }

  @Test("while another holds it, it cannot be had")
  func held() throws {
    let other = try lockFile()
    #expect(lock(other))
    do {
      _ = try WorkerLock(databasePath: path)
      Issue.record("two workers")
    } catch {
      guard case .held = error else {
        Issue.record("\(error)")
        return
      }
    }
    try other.close()
    _ = try WorkerLock(databasePath: path)
  }

  @Test("a path that leads nowhere is said to, and no lock file is made")
  func missing() throws {
    do {
      _ = try WorkerLock(databasePath: folder.file("none.db"))
      Issue.record("locked nothing")
    } catch {
      guard case .noDatabase = error else {
        Issue.record("\(error)")
        return
      }
    }
    #expect(!FileManager.default.fileExists(atPath: folder.file("none.db-nudged.lock")))
  }

  @Test("a lock file that cannot be written is named")
  func unwritable() throws {
    let file = path + "-nudged.lock"
    try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
    do {
      _ = try WorkerLock(databasePath: path)
      Issue.record("locked a folder")
    } catch {
      guard case .file(let named, let words) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(named == (realPath(path) + "-nudged.lock"))
      #expect(words == "Is a directory")
    }
  }

  private func realPath(_ path: String) -> String { URL(filePath: path).resolvingSymlinksInPath().path }
}
