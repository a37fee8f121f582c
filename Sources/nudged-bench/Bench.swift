import APNsSimulator
import Glibc

/// The programs under test, what they need to trust each other, and a folder for everything.
struct Bench {
  let options: Options
  let folder: String
  /// The path of the worker.
  var nudged: String
  let simulator: String
  let material: Material
  /// The C programs of the ceiling, where they are.
  let ceiling: Ceiling?

  private let cleaner: UnsafeMutablePointer<FILE>?

  static let teamID = "SIMULATOR1"

  var sizes: Sizes { options.sizes }

  init(_ options: Options) throws {
    self.options = options
    guard let program = realpath("/proc/self/exe", nil) else {
      throw Trouble("cannot find this program's folder")
    }
    let path = String(cString: program)
    free(program)
    let binaries = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
    for name in ["nudged", "apns-simulator"] where access("\(binaries)/\(name)", X_OK) != 0 {
      throw Trouble("\(binaries)/\(name) is not built: `make bench` builds it")
    }
    (nudged, simulator) = ("\(binaries)/nudged", "\(binaries)/apns-simulator")
    let parent = options.folder ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(parent)/nudged-bench.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Trouble("cannot make a folder in \(parent)") }
    folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    cleaner = Self.removeAtEnd(folder)
    material = try Material(directory: "\(folder)/material")
    ceiling = Ceiling(options.ceiling)
  }

  /// Ends what must not outlive the program.
  func close() { if let cleaner { pclose(cleaner) } }

  /// Starts a shell that removes the folder as soon as this process has ended, however it ends: then nobody holds
  /// the other side of its input.
  private static func removeAtEnd(_ folder: String) -> UnsafeMutablePointer<FILE>? {
    setenv("BENCH_FOLDER", folder, 1)
    return popen(#"trap "" INT TERM HUP; cat >/dev/null; rm -rf "$BENCH_FOLDER""#, "we")
  }

  // MARK: The peer

  var peerName: String { ceiling == nil ? "apns-simulator" : "h2srv of the ceiling" }

  /// Where the ceiling's programs are, once its server was started.
  var ceilingFolder: String { "\(folder)/ceiling" }

  /// Starts the peer that every program sends to: the ceiling's where it is, which costs the least.
  func startPeer() throws -> Server {
    try ceiling?.serve(material, in: ceilingFolder) ?? startSimulator()
  }

  func startSimulator(_ flags: [String] = []) throws -> Server {
    try Server(core: .peer) { port in
      [simulator, "--quiet", "--directory", material.directory, "--production-port", "\(port)"] + flags
    }
  }

  // MARK: The worker

  /// The command line of `nudged run`.
  private func run(_ backlog: Backlog, port: UInt16) -> [String] {
    let url = "https://127.0.0.1:\(port)"
    return [
      nudged, "run", "--log-level", "error", "--database", backlog.path, "--key-file", material.keyFile,
      "--team-id", Self.teamID, "--ca-file", material.authorityFile, "--production-url", url, "--sandbox-url",
      url,
    ]
  }

  /// A worker that goes on until it is terminated.
  func startWorker(_ backlog: Backlog, port: UInt16) throws -> Child {
    try Child(run(backlog, port: port), core: .client)
  }

  /// Sends all that is due and makes sure that it was accepted.
  ///
  /// - Parameters:
  ///   - flags: further ones of `nudged run`.
  ///   - tracer: a program, with its arguments, that runs the worker.
  ///   - meanwhile: as ``Child/wait(meanwhile:)`` takes it.
  func drain(
    _ backlog: Backlog, port: UInt16, flags: [String] = [], tracer: [String] = [],
    meanwhile: (pid_t) throws -> Void = { _ in usleep(2000) }
  ) throws -> Usage {
    let before = try backlog.lastAttempt()
    let due = try backlog.due()
    let usage = try Child(tracer + run(backlog, port: port) + ["--drain"] + flags, core: .client)
      .wait(meanwhile: meanwhile)
    guard usage.exitCode == 0 else { throw Trouble("nudged run --drain ended with \(usage.exitCode)") }
    let accepted = try backlog.accepted(after: before)
    guard accepted == due else { throw Trouble("\(accepted) of \(due) were accepted") }
    return usage
  }

  /// Backlogs of the size that was asked for, each sent as often as was asked for.
  ///
  /// - Parameter prepare: makes the backlog of each run, or adds to the one of the run before.
  /// - Returns: nudges a second, the median.
  func rate(port: UInt16, flags: [String] = [], _ prepare: () throws -> Backlog) throws -> Double {
    var rates = Sample()
    for _ in 1...sizes.runs {
      let backlog = try prepare()
      let due = try backlog.due()
      rates.add(Double(due) / (try drain(backlog, port: port, flags: flags)).wall)
    }
    return rates.median
  }

  /// A new database, in place of the last one of that name.
  func backlog(_ name: String = "chat", devices: Int = 1000) throws -> Backlog {
    // Alone in their folder: the worker looks whenever a file beside its database changes.
    mkdir("\(folder)/databases", 0o755)
    return try Backlog(at: "\(folder)/databases/\(name).db", devices: devices)
  }
}

extension Bench {
  /// A peer in this process, for what needs to know when a request arrives or to say when it is answered.
  func receiver(isHolding: Bool = false) throws -> Receiver {
    try Receiver(
      certificateFile: material.certificateFile, keyFile: material.certificateKeyFile, isHolding: isHolding)
  }
}
