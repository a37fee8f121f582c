import SQLite

/// What went wrong inside SQLite, for those who drive a `Store`.
package typealias StoreError = SQLiteError

/// The worker's side of the tables: it claims rows, writes attempts and settles what was answered.
///
/// It knows no network. Whom to send to, when, and how often is decided by SQL in here; over which host and
/// with what bytes is decided by the `Dispatcher` that the claim is handed.
package final class Store {
  let database: Database
  private let writeAheadLog: WriteAheadLog
  let statements: Statements
  /// The database's path, for messages.
  let path: String

  /// The environments that can be reached (their key is known), in the order in which they are asked.
  let environments: [String]
  /// How long after its creation a row without an expiry of its own may still be sent, in milliseconds.
  let expireAfter: Int64

  /// How far the queue has been looked through; see `Scan`.
  package var scan = Scan()
  /// Nudges that have more devices than went into one claim, by id.
  var fanOuts: [Int64: Walk] = [:]
  /// The id of the next attempt. Chosen here, so that no id is used twice while its request is in flight.
  var nextAttemptID: Int64
  /// Every nudge above this id has no attempt yet; read afresh in each claim.
  var highestAttemptedNudge: Int64 = 0
  /// What `nudge_worker` holds.
  var lowWater: Int64
  /// A buffer that is reused for each attempt.
  var apnsID: [UInt8] = []
  /// The devices that claims have read, the version of the data that they were read from, and memory for the next
  /// question.
  var targets = AddressBook()
  var targetsVersion: Int64 = 0
  var spareQuestion = Texts()
  /// The attempts that the open transaction is to write.
  var drafts = Drafts()
  /// Nudges with nothing left to claim, and nudges that end for another reason, of the open transaction.
  var claimed: [Int64] = []
  var closings: [Closing] = []
  /// Nudges that a token has to be registered for.
  var awaiting: [Int64] = []
  /// The Live Activities that have a request on its way.
  var flights = ActivityFlights()
  /// No row that waits for a token runs out before this wall time (milliseconds); nil when none waits.
  package internal(set) var waitingExpiry: Int64?
  /// Where the removal of old rows goes on.
  var retentionPosition: Int64 = 0
  /// Whether the last claim changed anything. If not, the same claim would find the same again, and the next
  /// one is to wait until something has happened.
  package internal(set) var hasProgressed = false
  private var lastDataVersion: Int64
  /// What this store knows of the schema and of the last commit that it has judged; see `Change`.
  var judged: Judged
  /// What others have done to the database so that this store must not go on; see `Change`.
  package internal(set) var change: Change?
  /// How long the next COMMIT may wait for readers; it grows while they are in the way.
  private var commitPatience = Store.shortestPatience
  private static let shortestPatience = Duration.milliseconds(50)
  private static let longestPatience = Duration.seconds(1)

  /// Opens the database of a running service; its tables must be there, as this program knows them.
  ///
  /// - Parameters:
  ///   - environments: the environments whose host has a key, in the order of asking.
  ///   - expireAfter: milliseconds.
  ///   - patience: how long a lock is waited for; later ones are waited for by the loop.
  package init(
    path: String, environments: [String], expireAfter: Int64, patience: Duration = DatabaseFile.patience
  ) throws(DatabaseFault) {
    let database = try DatabaseFile.open(path, busyTimeout: patience)
    do throws(DatabaseFault) {
      try Migration.check(database)
    } catch {
      if error.kind == .malformed { database.leaveFilesOnClose() }
      throw error
    }
    // SQLite opens what it may not write for reading, without a word.
    if database.isReadOnly {
      throw DatabaseFile.explain(
        SQLiteError(code: 8, message: "attempt to write a readonly database"), path: path)
    }
    do throws(SQLiteError) {
      // In WAL mode EXTRA is FULL: every commit is synced before it returns. With a rollback journal it also
      // syncs the folder after the journal is gone (https://www.sqlite.org/pragma.html#pragma_synchronous).
      // From here on a lock is waited for by the loop, never inside SQLite.
      try database.execute("pragma synchronous = extra; pragma temp_store = memory; pragma busy_timeout = 0")
      try Store.requireWritable(database)
      lastDataVersion = try database.integer("pragma data_version") ?? 0
      judged = Judged(
        dataVersion: lastDataVersion, schemaVersion: try database.integer("pragma schema_version") ?? 0)
      try Store.heedTriggers(database)
      canReadFirst = try database.text("pragma journal_mode") == "wal"
      statements = try Statements(database)
      // Damage shows when a page is read: the tables' roots at the start, not at the first nudge.
      for table in ["nudge_outbox", "nudge_device", "nudge_token"] {
        _ = try database.integer("select 1 from \(table) not indexed limit 1")
      }
      nextAttemptID = try (database.integer("select max(id) from nudge_attempt") ?? 0) + 1
      lowWater = try database.integer("select low_water_attempt_id from nudge_worker") ?? 0
    } catch {
      if error.kind == .malformed { database.leaveFilesOnClose() }
      throw DatabaseFile.explain(error, path: path)
    }
    self.path = path
    writeAheadLog = WriteAheadLog(of: database)
    self.database = database
    self.environments = environments
    self.expireAfter = expireAfter
    do throws(SQLiteError) {
      waitingExpiry = try expiryOfWaiting(nil)
    } catch {
      throw DatabaseFile.explain(error, path: path)
    }
  }

  /// A `-wal` or `-shm` that cannot be written shows at the first write, and stays closed to this connection
  /// even when its mode is put right: better not to begin with it. A lock is no such fault.
  private static func requireWritable(_ database: borrowing Database) throws(SQLiteError) {
    do throws(SQLiteError) {
      try database.execute("begin immediate; rollback")
    } catch {
      if error.kind != .busy { throw error }
    }
  }

  /// Whether reading holds up nobody's commit: not with a rollback journal.
  package let canReadFirst: Bool

  /// Runs one turn's write transaction; on any error nothing of it has happened.
  ///
  /// - Parameter readingFirst: takes the write lock at the first write; see `Database.transaction`.
  package func turn<Result>(
    readingFirst: Bool = false, _ body: (inout Transaction) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    let saved = (scan, nextAttemptID, lowWater, retentionPosition, flights, waitingExpiry)
    // Whether all is written but the COMMIT.
    var isReady = false
    do throws(SQLiteError) {
      let result = try database.transaction(readingFirst: readingFirst, commitPatience: commitPatience) {
        transaction throws(SQLiteError) in
        try requireOurs(in: &transaction)
        let result = try body(&transaction)
        isReady = true
        return result
      }
      commitPatience = Store.shortestPatience
      return result
    } catch {
      commitPatience =
        isReady && error.kind == .busy
        ? min(commitPatience * 2, Store.longestPatience) : Store.shortestPatience
      (scan, nextAttemptID, lowWater, retentionPosition, flights, waitingExpiry) = saved
      fanOuts.removeAll()
      // They may have been read behind writes that are undone.
      targets.forget()
      throw error
    }
  }

  /// Does what a COMMIT leaves to be done without the lock.
  package func tidy() { writeAheadLog.checkpointIfLong() }

  /// Frees what a burst has left in caches.
  package func releaseMemory() {
    targets = AddressBook()
    database.releaseMemory()
  }

  /// Whether another connection has committed since the last call (`pragma data_version`).
  ///
  /// Own commits do not count. It is a hint that is cheap to ask for, not a statement about the queue.
  package func hasForeignCommit() throws(SQLiteError) -> Bool {
    let version = try dataVersion()
    defer { lastDataVersion = version }
    return version != lastDataVersion
  }

  /// A number that changes whenever another connection has committed; in a transaction it stands for what that reads.
  func dataVersion() throws(SQLiteError) -> Int64 {
    _ = try statements.dataVersion.step()
    defer { statements.dataVersion.reset() }
    return statements.dataVersion.integer(0)
  }
}

extension Store {
  /// The device that an attempt went to.
  package func device(ofAttempt id: Int64) throws(SQLiteError) -> [UInt8]? {
    let select = try database.prepare("select device_id from nudge_attempt where id = ?1")
    select.bind(1, id)
    guard try select.step() else { return nil }
    var device: [UInt8] = []
    device.replace(with: select.bytes(0))
    return device
  }
}

/// What the claim asks of the network side; nothing in here may block.
package protocol Dispatcher: AnyObject {
  /// Judges what the row itself says and composes its payload, once per nudge and claim.
  func examine(_ nudge: borrowing Nudge) -> Examination
  /// Why nothing can ever be sent to this device, in words: its token or its topic is malformed. Asked whenever a
  /// claim has read the device; only one without a fault is given a route.
  func fault(of target: borrowing Target) -> String?
  /// Says over which host the nudge that was examined last may go to this device now.
  ///
  /// - Parameter wrongHosts: environments that answered BadDeviceToken to this nudge and token.
  func route(_ target: borrowing Target, wrongHosts: [String]) -> Route
  /// Appends the first 16 hex digits of the token's SHA-256.
  func hash(_ token: Span<UInt8>, into hash: inout [UInt8])
  /// The `apns-push-type` of the nudge that was examined last, for the attempt row.
  var attemptPushType: [UInt8] { get }
  /// The `apns-topic` of the route that was given last, for the attempt row.
  var attemptTopic: [UInt8] { get }
  /// Appends a fresh UUID, 36 characters.
  func makeIdentifier(into identifier: inout [UInt8])
  /// The attempt row of the route that was given last is part of the open transaction, or that fails: the request
  /// may be made ready, but no byte of it may leave before the transaction has been committed.
  ///
  /// - Parameter timestamp: of a Live Activity's event, in seconds since 1970.
  func stage(
    attempt id: Int64, apnsID: [UInt8], nudge: borrowing Nudge, target: borrowing Target, timestamp: Int64?)
}

/// What a nudge's own columns amount to.
package enum Examination {
  /// It can never be sent; the words say why, naming the column.
  case invalid(String)
  /// It can be sent to tokens of this kind and of the scope that the column holds; nil for kinds without.
  case deliverable(tokenKind: String, scope: Nudge.Column?)
}

/// Where one device's nudge can go now.
package enum Route {
  /// Over this environment's host, at once.
  case send(environment: String)
  /// Over this environment's host, once it has room.
  case wait(environment: String)
  /// Not before this wall time (milliseconds): the device or its topic is paused.
  case waitUntil(Int64)
  /// Every host that can be reached has said that the token is not its own.
  case exhausted
}
