/// What the benchmark was told.
struct Options {
  var only: [Measurement] = Measurement.all
  var sizes = Sizes.full
  /// Where the databases live, for the time of the run; nil for TMPDIR.
  var folder: String?
  /// The C programs of the least that can be done; left out when the folder is not there.
  var ceiling = "../shared/ceiling"

  /// Where the counts stand that new ones are compared with, and whether the new ones are to stand there.
  var kept = "scripts/counts.txt"
  var keeps = false
  /// A figure that does not reach what it should is an error.
  var checks = false

  /// What the command line asks for.
  enum Request {
    case run(Options)
    case show(String)
  }

  static func read(_ arguments: ArraySlice<String>) throws(Trouble) -> Request {
    var options = Options()
    var rest = arguments
    while let argument = rest.popFirst() {
      switch argument {
      case "--help": return .show(help)
      case "--list": return .show(list)
      case "--quick": options.sizes = .quick
      case "--only": options.only = try measurements(try value(rest.popFirst(), of: argument))
      case "--rows": options.sizes.rows = try number(rest.popFirst(), of: argument)
      case "--runs": options.sizes.runs = try number(rest.popFirst(), of: argument)
      case "--folder": options.folder = try value(rest.popFirst(), of: argument)
      case "--ceiling": options.ceiling = try value(rest.popFirst(), of: argument)
      case "--kept": options.kept = try value(rest.popFirst(), of: argument)
      case "--keep": options.keeps = true
      case "--check": options.checks = true
      default: throw Trouble("unknown argument \(argument); --help lists what there is")
      }
    }
    return .run(options)
  }

  private static func value(_ text: String?, of name: String) throws(Trouble) -> String {
    guard let text, !text.isEmpty else { throw Trouble("\(name) needs a value") }
    return text
  }

  private static func number(_ text: String?, of name: String) throws(Trouble) -> Int {
    guard let text, let value = Int(text), value > 0 else { throw Trouble("\(name) needs a positive number") }
    return value
  }

  private static func measurements(_ names: String) throws(Trouble) -> [Measurement] {
    try names.split(separator: ",").map { name throws(Trouble) in
      guard let found = Measurement.all.first(where: { $0.name == name }) else {
        throw Trouble("there is no measurement \(name); --list shows them")
      }
      return found
    }
  }

  private static var list: String {
    Measurement.all.map { measurement in
      "  " + measurement.name + String(repeating: " ", count: 10 - measurement.name.count)
        + measurement.summary
    }.joined(separator: "\n")
  }

  private static let help = """
    usage: nudged-bench [--quick] [--only NAME,NAME] [--check] [--flag value ...]
           nudged-bench --list

    Measures `nudged` and prints one table: a figure a line, with what it is compared with in the same run, and
    the figure to reach. Takes `nudged` and `apns-simulator` from the folder of this program. On more than one
    core the peer has the first and the client the second.

      --quick         small sizes, for every day: about a minute
      --only NAMES    some of the measurements, with commas between
      --list          says what they are
      --rows N        rows in a backlog (100000; 20000 with --quick); what else is counted grows with them
      --runs N        runs of a backlog; the median counts (3)
      --folder DIR    where the databases are put for the time of the run ($TMPDIR or /tmp): a real disk
      --ceiling DIR   C programs that do the least possible for the same job (../shared/ceiling); where they are,
                      all send to the server among them, else to apns-simulator
      --kept FILE     the counts of an earlier version, to compare with (scripts/counts.txt)
      --keep          writes the new counts there
      --check         ends with exit code 1 when a figure is not what it should be
    """
}

/// How much is measured. All of it follows from the length of a backlog.
struct Sizes {
  let isQuick: Bool
  /// Alerts in a backlog, and how often it is sent.
  var rows: Int
  var runs = 3

  static let full = Sizes(isQuick: false, rows: 100_000)
  static let quick = Sizes(isQuick: true, rows: 20_000)

  /// Commits whose way to the peer is timed.
  var commits: Int { min(isQuick ? 100 : 500, rows) }
  var idleSeconds: Int { isQuick ? 3 : 10 }
  /// Settled rows in front of a backlog.
  var histories: [Int] { isQuick ? [rows * 5] : [rows * 10, rows * 100] }
  /// The backlog beside which a backend commits: the worker takes its time.
  var besideCommits: Int { rows / (isQuick ? 10 : 5) }
  /// Rows that are due later.
  var later: Int { isQuick ? rows * 5 : rows }
  /// The backlog whose memory is measured.
  var pending: Int { isQuick ? rows * 5 : rows * 10 }
  var tokens: [Int] { [1000, pending] }
  /// A short backlog and a longer one, whose difference is counted.
  var counted: (few: Int, many: Int) {
    let few = min(500, rows / 5)
    return (few, few * 5)
  }
}
