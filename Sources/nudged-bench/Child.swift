import Glibc

/// What a finished child process has used.
struct Usage {
  var exitCode: Int32
  /// Seconds from start to end.
  var wall: Double
  /// Seconds of user and system time (`man 2 wait4`).
  var cpu: Double
  /// Peak resident memory. Not of wait4, whose figure begins with the memory of the process that forked.
  var peakMiB: Double
}

/// Why the benchmark cannot go on, in words.
struct Trouble: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A core of the machine, for a child to stay on.
enum Core: Int {
  case peer = 0
  case client = 1
}

/// A child process, on a core of its own where there is more than one.
struct Child {
  let pid: pid_t
  private let started: ContinuousClock.Instant

  /// Starts a program found in PATH or by its path; its standard output goes to `output`, its errors through.
  init(_ arguments: [String], output: String = "/dev/null", core: Core) throws(Trouble) {
    // Whatever ends this process ends its children too.
    var command = ["setpriv", "--pdeathsig", "KILL"]
    if sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 { command += ["taskset", "-c", "\(core.rawValue)"] }
    command += arguments
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
    words.append(nil)
    defer { words.forEach { free($0) } }
    // A worker would read whole bundles of trust roots that are named here, which is not what is measured.
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] { unsetenv(name) }
    var pid: pid_t = 0
    started = ContinuousClock.now
    let code = posix_spawnp(&pid, command[0], &actions, nil, words, environ)
    guard code == 0 else { throw Trouble("cannot start \(command[0]): \(String(cString: strerror(code)))") }
    self.pid = pid
  }

  /// Waits for the end; `meanwhile` is called again and again until then, with the
  /// process, and may take a few milliseconds.
  func wait(meanwhile: (pid_t) throws -> Void) rethrows -> Usage {
    var status: Int32 = 0
    var usage = rusage()
    var peakKiB = 0
    while wait4(pid, &status, WNOHANG, &usage) != pid {
      peakKiB = max(peakKiB, ProcessFile.status(pid)["VmHWM"] ?? 0)
      try meanwhile(pid)
    }
    let wall = (ContinuousClock.now - started) / .seconds(1)
    let exitCode = status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
    let cpu =
      Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1_000_000
    return Usage(exitCode: exitCode, wall: wall, cpu: cpu, peakMiB: Double(peakKiB) / 1024)
  }

  /// Waits for the end.
  func wait() -> Usage { wait { _ in usleep(2000) } }

  func terminate() {
    kill(pid, SIGTERM)
    _ = wait()
  }

  /// Runs a program to its end and returns what it printed; nil when it cannot be run or fails.
  static func printed(_ arguments: [String], through file: String) -> String? {
    guard let child = try? Child(arguments, output: file, core: .client), child.wait().exitCode == 0 else {
      return nil
    }
    return contents(of: file)
  }
}

/// Whether a program is in PATH.
func isInstalled(_ program: String) -> Bool {
  guard let path = getenv("PATH") else { return false }
  return String(cString: path).split(separator: ":").contains { access("\($0)/\(program)", X_OK) == 0 }
}

/// The content of a file; nil when it cannot be read.
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

func write(_ text: String, to path: String) throws(Trouble) {
  guard let file = fopen(path, "w") else { throw Trouble("cannot write \(path)") }
  fputs(text, file)
  fclose(file)
}
