import APNs
import Glibc

/// What the benchmark was told.
struct Options {
  var rows = 100_000
  var runs = 3
  var devices = 1000

  static let help = """
    usage: nudged-bench [--quick] [--rows N] [--runs N]

    Sends a backlog with `nudged run --drain` to `apns-simulator`, and as many requests with h2load to the same
    simulator, and prints one table: the rate, and the CPU time of the client's whole process per nudge. Each
    program has a core of its own where there are two. Both programs are taken from the folder of this one.

      --quick     10,000 rows, one run
      --rows N    rows in the backlog (100000)
      --runs N    runs of each; the median is printed (3)
    """

  init(_ arguments: ArraySlice<String>) throws(Trouble) {
    var rest = arguments
    while let argument = rest.popFirst() {
      switch argument {
      case "--quick": (rows, runs) = (10_000, 1)
      case "--rows": rows = try Options.number(rest.popFirst(), of: argument)
      case "--runs": runs = try Options.number(rest.popFirst(), of: argument)
      default: throw Trouble("unknown argument \(argument)\n\(Options.help)")
      }
    }
  }

  private static func number(_ text: String?, of name: String) throws(Trouble) -> Int {
    guard let text, let value = Int(text), value > 0 else { throw Trouble("\(name) needs a positive number") }
    return value
  }
}

/// One row of the table.
struct Figure {
  var name: String
  var usages: [Usage]
  var count: Int

  /// The run with the median rate.
  private var median: Usage { usages.sorted { $0.wall < $1.wall }[usages.count / 2] }
  var rate: Double { Double(count) / median.wall }
  var microseconds: Double {
    let cpu = usages.map(\.cpu).sorted()[usages.count / 2]
    return cpu / Double(count) * 1_000_000
  }
  var residentKiB: Int { usages.map(\.residentKiB).max() ?? 0 }
}

/// The peer, a folder for everything, and the programs under test.
struct Bench {
  let options: Options
  let folder: String
  private let binaries: String

  init(_ options: Options) throws(Trouble) {
    self.options = options
    guard let program = realpath("/proc/self/exe", nil) else {
      throw Trouble("cannot find this program's folder")
    }
    let path = String(cString: program)
    free(program)
    binaries = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
    for name in ["nudged", "apns-simulator"] where access("\(binaries)/\(name)", X_OK) != 0 {
      throw Trouble("\(binaries)/\(name) is not built: `make bench` builds it")
    }
    var template = Array("/tmp/nudged-bench.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw Trouble("cannot make a folder in /tmp") }
    folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  func run() throws {
    let simulator = try Child(
      ["\(binaries)/apns-simulator", "--quiet", "--directory", folder], output: "\(folder)/simulator.out",
      core: 0)
    defer { simulator.terminate() }
    let settings = try settings()
    var nudged = Figure(name: "nudged: claim, send, record", usages: [], count: options.rows)
    var bare = Figure(name: "h2load: send only", usages: [], count: options.rows)
    let hasH2load = isInstalled("h2load")
    for run in 1...options.runs {
      nudged.usages.append(try drain(settings, run: run))
      if hasH2load { bare.usages.append(try load(settings)) }
    }
    print(table(hasH2load ? [nudged, bare] : [nudged]))
    if !hasH2load { print("h2load is not installed (package nghttp2-client): nothing to compare with") }
  }

  func removeFolder() {
    guard let removal = try? Child(["rm", "-rf", folder], core: 0) else { return }
    _ = removal.wait()
  }

  /// The settings that the simulator writes for its users, once it listens.
  private func settings() throws -> [String: String] {
    let deadline = ContinuousClock.now + .seconds(10)
    while true {
      let text = contents(of: "\(folder)/settings.env") ?? ""
      var settings: [String: String] = [:]
      for line in text.split(separator: "\n") {
        guard let sign = line.firstIndex(of: "=") else { continue }
        settings[String(line[..<sign])] = String(line[line.index(after: sign)...])
      }
      if settings["NUDGED_CA_FILE"] != nil && text.hasSuffix("\n") { return settings }
      guard ContinuousClock.now < deadline else { throw Trouble("the simulator did not start") }
      usleep(10_000)
    }
  }

  private func drain(_ settings: [String: String], run: Int) throws -> Usage {
    let database = "\(folder)/chat-\(run).db"
    try Backlog.make(at: database, rows: options.rows, devices: options.devices)
    var arguments = ["\(binaries)/nudged", "run", "--drain", "--log-level", "error", "--database", database]
    for (name, value) in settings {
      arguments += [
        "--" + name.dropFirst("NUDGED_".count).lowercased().map { $0 == "_" ? "-" : "\($0)" }.joined(), value,
      ]
    }
    let usage = try Child(arguments, core: 1).wait()
    guard usage.exitCode == 0 else { throw Trouble("nudged run --drain ended with \(usage.exitCode)") }
    let accepted = try Backlog.accepted(at: database)
    guard accepted == options.rows else { throw Trouble("\(accepted) of \(options.rows) were accepted") }
    return usage
  }

  /// The same number of requests of the same size, with nothing behind them and always the same token.
  private func load(_ settings: [String: String]) throws -> Usage {
    let keyFile = settings["NUDGED_KEY_FILE"] ?? ""
    let key = Array((contents(of: keyFile) ?? "").utf8)
    let provider = try ProviderToken(
      pem: key, keyID: KeyIdentity.keyID(fromPath: keyFile) ?? "", teamID: settings["NUDGED_TEAM_ID"] ?? "")
    var wall = timespec()
    clock_gettime(CLOCK_REALTIME, &wall)
    let token = try provider.current(wallMilliseconds: Int64(wall.tv_sec) * 1000, now: .now)
    let authorization = String(decoding: token.headerValue, as: UTF8.self)
    let body = "\(folder)/body.json"
    guard let file = fopen(body, "w") else { throw Trouble("cannot write \(body)") }
    fputs(
      #"{"aps":{"alert":{"title":"\#(Backlog.title)","body":"\#(Backlog.body)"},"thread-id":"conversation-1",\#(Backlog.aps.dropFirst().dropLast())},"conversation_id":"conversation-1"}"#,
      file)
    fclose(file)
    let url = (settings["NUDGED_PRODUCTION_URL"] ?? "") + "/3/device/" + Backlog.token(1)
    let arguments = [
      "h2load", "-n", "\(options.rows)", "-c", "1", "-m", "500", "-d", body, "-H",
      "authorization: \(authorization)", "-H",
      "apns-topic: \(Backlog.topic)",
      "-H", "apns-push-type: alert", "-H", "apns-priority: 10", "-H", "apns-expiration: 1999999999",
      "-H", "apns-id: 8f14e45f-ceea-467f-a9a4-000000000000", url,
    ]
    let usage = try Child(arguments, core: 1).wait()
    guard usage.exitCode == 0 else { throw Trouble("h2load ended with \(usage.exitCode)") }
    return usage
  }

  private func table(_ figures: [Figure]) -> String {
    var lines = [["what", "per second", "CPU us each", "resident MiB", "of the first's rate", "of its CPU"]]
    for figure in figures {
      lines.append([
        figure.name, String(Int(figure.rate)), decimal(figure.microseconds, 2),
        decimal(Double(figure.residentKiB) / 1024, 1), decimal(figure.rate / figures[0].rate, 2),
        decimal(figure.microseconds / figures[0].microseconds, 2),
      ])
    }
    let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    return lines.map { line in
      line.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return column == 0 ? cell + space : space + cell
      }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  private func decimal(_ value: Double, _ places: Int) -> String {
    var scale = 1.0
    for _ in 0..<places { scale *= 10 }
    let rounded = Int((value * scale).rounded())
    let fraction = String(rounded % Int(scale))
    return "\(rounded / Int(scale))." + String(repeating: "0", count: places - fraction.count) + fraction
  }
}
