import Glibc

/// What the kernel says of a process (`man 5 proc`).
enum ProcessFile {
  /// The numbers of /proc/PID/status by name, memory in KiB.
  static func status(_ pid: pid_t) -> [String: Int] { numbers("/proc/\(pid)/status") }

  /// The numbers of /proc/PID/smaps_rollup by name, in KiB.
  static func memory(_ pid: pid_t) -> [String: Int] { numbers("/proc/\(pid)/smaps_rollup") }

  /// How often the threads of a process have gone to sleep, hence woken up.
  static func sleeps(_ pid: pid_t) -> Int {
    threads(pid).reduce(0) {
      $0 + (numbers("/proc/\(pid)/task/\($1)/status")["voluntary_ctxt_switches"] ?? 0)
    }
  }

  /// Seconds that the threads of a process were on a CPU.
  static func cpu(_ pid: pid_t) -> Double {
    threads(pid).reduce(0) { sum, thread in
      let words = (contents(of: "/proc/\(pid)/task/\(thread)/schedstat") ?? "").split(separator: " ")
      return sum + (words.first.flatMap { Double($0) } ?? 0) / 1_000_000_000
    }
  }

  /// Whether the first thread of a process waits for something to happen: not for the CPU, nor for the disk.
  static func isWaiting(_ pid: pid_t) -> Bool {
    // `4711 (a name) S 1 ...`
    contents(of: "/proc/\(pid)/stat").flatMap { text in
      text.lastIndex(of: ")").map { text[$0...].dropFirst(2).first == "S" }
    } ?? false
  }

  private static func threads(_ pid: pid_t) -> [String] {
    guard let folder = opendir("/proc/\(pid)/task") else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }

  private static func numbers(_ path: String) -> [String: Int] {
    var found: [String: Int] = [:]
    for line in (contents(of: path) ?? "").split(separator: "\n") {
      let words = line.split { $0 == ":" || $0 == " " || $0 == "\t" }
      if words.count > 1, let number = Int(words[1]) { found[String(words[0])] = number }
    }
    return found
  }
}
