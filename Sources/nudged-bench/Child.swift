import Glibc

/// What a finished child process has used (`man 2 wait4`).
struct Usage {
  var exitCode: Int32
  /// Seconds from start to end.
  var wall: Double
  /// Seconds of user and system time.
  var cpu: Double
  /// Peak resident memory in KiB.
  var residentKiB: Int
}

/// Why the benchmark cannot go on, in words.
struct Trouble: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A child process on a core of its own, where there is more than one.
struct Child {
  let pid: pid_t
  private let started: ContinuousClock.Instant

  /// Starts a program found in PATH or by its path; its standard output goes to `output`, its errors through.
  init(_ arguments: [String], output: String = "/dev/null", core: Int) throws(Trouble) {
    var command = arguments
    if sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 { command = ["taskset", "-c", "\(core)"] + arguments }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
    words.append(nil)
    defer { words.forEach { free($0) } }
    var pid: pid_t = 0
    started = ContinuousClock.now
    let code = posix_spawnp(&pid, command[0], &actions, nil, words, environ)
    guard code == 0 else { throw Trouble("cannot start \(command[0]): \(String(cString: strerror(code)))") }
    self.pid = pid
  }

  /// Waits for the end.
  func wait() -> Usage {
    var status: Int32 = 0
    var usage = rusage()
    while wait4(pid, &status, 0, &usage) < 0 && errno == EINTR {}
    let wall = (ContinuousClock.now - started) / .seconds(1)
    let exitCode = status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
    let cpu =
      Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1_000_000
    return Usage(exitCode: exitCode, wall: wall, cpu: cpu, residentKiB: usage.ru_maxrss)
  }

  func terminate() {
    kill(pid, SIGTERM)
    _ = wait()
  }
}

/// Whether a program is in PATH.
func isInstalled(_ program: String) -> Bool {
  guard let path = getenv("PATH") else { return false }
  return String(cString: path).split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
}

/// The content of a small file; nil when it cannot be read.
func contents(of path: String) -> String? {
  guard let file = fopen(path, "r") else { return nil }
  defer { fclose(file) }
  var bytes: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: 65536)
  while true {
    let count = fread(&buffer, 1, buffer.count, file)
    guard count > 0 else { break }
    bytes += buffer[..<count]
  }
  return String(decoding: bytes, as: UTF8.self)
}
