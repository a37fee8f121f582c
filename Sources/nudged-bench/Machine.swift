import Glibc
import SQLite

/// What the figures were measured on.
enum Machine {
  static func words(_ bench: Bench) throws -> String {
    // A program that is not there says nothing.
    func printed(_ command: String...) -> [Substring] {
      (Child.printed(command, through: "\(bench.folder)/printed") ?? "").split { $0 == " " || $0 == "\n" }
    }
    let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    let cpu = value(of: "model name", in: "/proc/cpuinfo") ?? "an unknown CPU"
    let memory = value(of: "MemTotal", in: "/proc/meminfo")?.split(separator: " ").first.flatMap {
      Double($0)
    }
    let versions = [
      printed(bench.nudged, "--version").joined(separator: " "),
      "SQLite \(try Database(path: ":memory:").text("select sqlite_version()") ?? "")",
      printed("openssl", "version").prefix(2).joined(separator: " "),
      String(printed("h2load", "--version").last ?? ""),
    ]
    let load = printed("cat", "/proc/loadavg").first ?? ""
    let system = printed("uname", "-sr").joined(separator: " ")
    // On tmpfs a sync costs nothing.
    let fileSystem = printed("stat", "-f", "-c", "%T", bench.folder).joined()
    return """
      \(cores) cores of \(cpu), \(Table.grouped(Int(memory ?? 0) / 1024)) MiB, load \(load)
      \(system), \(versions.filter { !$0.isEmpty }.joined(separator: ", "))
      databases in \(bench.folder) (\(fileSystem))
      peer: \(bench.peerName); a simulator for streams; this program for latency, idle and counts
      """
  }

  /// What follows a name and a colon in a file of /proc.
  private static func value(of name: String, in path: String) -> String? {
    for line in (contents(of: path) ?? "").split(separator: "\n") where line.hasPrefix(name) {
      return line.firstIndex(of: ":").map { String(line[$0...].dropFirst().drop { $0 == " " }) }
    }
    return nil
  }
}
