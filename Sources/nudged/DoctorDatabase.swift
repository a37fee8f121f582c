import Glibc
import Outbox
import Relay

/// The checks of the database file, from inside and from outside.
struct DatabaseChecks {
  /// As it was given.
  var path: String

  /// What SQLite finds in it, and what the tables say if they can be read.
  func look(now: Int64) -> (checks: [Check], health: Health?) {
    do throws(DatabaseFault) {
      let (condition, health) = try Health.look(databaseAt: path, now: now)
      return (
        [.ok("database", DatabaseFile.file(path)), schema(condition), journal()].compactMap(\.self), health
      )
    } catch {
      return ([.fault("database", Failure(error).exitCode, error.message, fix: fix(for: error))], nil)
    }
  }

  private func fix(for fault: DatabaseFault) -> String {
    switch fault.kind {
    case .missing: "start the backend once, which makes it; or correct --database"
    case .malformed, .refused: "correct --database, or restore a copy"
    case .busy: "try again"
    case .inputOutput where !fault.mayPass:
      "correct --database, or let the backend or the worker open it once"
    case .inputOutput:
      "run it as the file's owner, `sudo -u \(owner) nudged doctor`, or open the file to this user"
    }
  }

  private func schema(_ condition: Migration.Condition) -> Check {
    let migrate = "nudged migrate --database \(path)"
    return switch condition {
    case .current: .ok("schema", "version \(Migration.newestVersion), all parts there")
    case .absent: .fault("schema", .malformedDatabase, "there are no nudge tables", fix: migrate)
    case .older(let version):
      .fault(
        "schema", .malformedDatabase,
        "version \(version) is older than this program's, \(Migration.newestVersion)", fix: migrate)
    case .newer(let version):
      .fault(
        "schema", .malformedDatabase,
        "version \(version) is newer than this program's, \(Migration.newestVersion)",
        fix: "install the newer nudged that made it")
    case .lacking(let part):
      .fault(
        "schema", .malformedDatabase, "it was changed: \(part) is missing",
        fix: "put it back as migrations/ has it")
    }
  }

  private func journal() -> Check? {
    switch DatabaseFile.journal(of: path) {
    case nil: nil
    case .wal: .ok("journal", "wal: reading and writing do not wait for each other")
    case .rollback:
      .warning(
        "journal",
        "a rollback journal: readers keep the worker from committing, and it keeps them from reading",
        fix: "sqlite3 \(path) 'pragma journal_mode = wal'")
    }
  }

  /// Permissions, file system and space; nothing where there is no file.
  func checkAround() -> [Check] {
    guard let resolved = realpath(path, nil) else { return [] }
    defer { free(resolved) }
    let real = String(cString: resolved)
    return [permissions(real)] + volume(real)
  }

  private func permissions(_ real: String) -> Check {
    let obstacles = DatabaseFile.obstacles(to: real)
    let user = DatabaseFile.user(geteuid())
    guard obstacles.isEmpty else {
      return .fault(
        "permissions", .inputOutput, obstacles.joined(separator: "; "),
        fix: "run the worker as \(owner), or open the file and its folder to a group of both: chmod g+rwX")
    }
    guard geteuid() != 0 || worker == "root" else {
      return .warning(
        "permissions", "\(DatabaseFile.file(real)); root may do everything, the worker's user perhaps not",
        fix: "sudo -u \(worker) nudged doctor")
    }
    return .ok(
      "permissions",
      "\(user) may read and write it and its folder (\(DatabaseFile.file(DatabaseFile.folder(of: real))))")
  }

  /// The user that the worker most likely runs as: the package's if there is one, else the file's owner.
  private var worker: String { getpwnam("nudged") == nil ? owner : "nudged" }

  private var owner: String {
    var status = stat()
    return stat(path, &status) == 0 ? DatabaseFile.user(status.st_uid) : DatabaseFile.user(geteuid())
  }

  private func volume(_ real: String) -> [Check] {
    guard let volume = Volume(of: real) else { return [] }
    return DatabaseChecks.volume(volume, path: real)
  }

  static func volume(_ volume: Volume, path: String) -> [Check] {
    let mebibytes = volume.freeBytes >> 20
    let space: Check =
      switch mebibytes {
      case ..<1:
        .fault(
          "disk", .inputOutput, "less than 1 MiB free: without room for the attempt nothing is sent",
          fix: "df -h \(DatabaseFile.folder(of: path))")
      case ..<100:
        .warning("disk", "\(mebibytes) MiB free", fix: "df -h \(DatabaseFile.folder(of: path))")
      default: .ok("disk", "\(mebibytes) MiB free")
      }
    guard let name = volume.remoteName else { return [.ok("file system", "local"), space] }
    return [
      .warning(
        "file system", "\(name): locks and the write-ahead log need a local disk",
        fix: "move the database to a local disk"), space,
    ]
  }
}
