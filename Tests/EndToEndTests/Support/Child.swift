import Foundation
import Glibc
import Synchronization

/// How a process ended.
enum Exit: Equatable, CustomStringConvertible {
  case code(Int32)
  case signal(Int32)

  var description: String {
    switch self {
    case .code(let code): "exit code \(code)"
    case .signal(let signal): "signal \(signal)"
    }
  }
}

/// A process of a test: its output goes to files, so that it can never block on a reader, and its environment is
/// exactly what the test gives.
///
/// Foundation's `Process` shares SIGCHLD and descriptors with everything else in the test runner; this one only spawns
/// and waits.
final class Child {
  let name: String
  let pid: pid_t
  let outputPath: String
  let errorPath: String
  /// The write end of the child's standard input. A peer ends when it closes, so also when the test runner dies.
  private var input: Int32
  private(set) var exit: Exit?

  /// Spawns `command` (an absolute path and its arguments) with files for its output in `folder`.
  init(
    _ name: String, _ command: [String], folder: String, environment: [String: String] = [:],
    outputDescriptor: Int32? = nil
  ) throws {
    let ends = try Pipe.open()
    self.name = name
    input = ends.write
    outputPath = "\(folder)/\(name).out"
    errorPath = "\(folder)/\(name).err"
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends.read, 0)
    if let outputDescriptor {
      posix_spawn_file_actions_adddup2(&actions, outputDescriptor, 1)
    } else {
      posix_spawn_file_actions_addopen(&actions, 1, outputPath, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    }
    posix_spawn_file_actions_addopen(&actions, 2, errorPath, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    // Nothing that the runner blocks or ignores is inherited.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    var all = sigset_t()
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    var settings = ["PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin", "HOME": folder, "LANG": "C.UTF-8"]
    // Under a sanitizer the worker has to end at its first report, or no test would hear of it.
    let ours = ProcessInfo.processInfo.environment
    for name in ["ASAN_OPTIONS", "TSAN_OPTIONS"] { settings[name] = ours[name] }
    settings.merge(environment) { $1 }
    var argv = command.map { strdup($0) }
    argv.append(nil)
    var envp = settings.map { strdup("\($0)=\($1)") }
    envp.append(nil)
    defer {
      argv.forEach { free($0) }
      envp.forEach { free($0) }
    }
    var spawned: pid_t = 0
    let status = Pipe.spawning.withLock { _ in
      posix_spawn(&spawned, command[0], &actions, &attributes, argv, envp)
    }
    close(ends.read)
    guard status == 0 else {
      close(ends.write)
      throw Failure("cannot start \(command[0]): \(String(cString: strerror(status)))")
    }
    pid = spawned
  }

  deinit {
    kill()
  }

  var output: String { Self.text(outputPath) }
  var errors: String { Self.text(errorPath) }

  /// The lines of ``errors`` that contain `words`.
  func lines(_ words: String) -> [Substring] {
    errors.split(separator: "\n").filter { $0.contains(words) }
  }

  /// Waits until `words` stand in a line of ``errors``, or in exactly so many.
  func says(_ words: String, times: Int? = nil, within limit: Duration = .seconds(15)) async throws {
    let what = "\(name) says \"\(words)\"" + (times.map { " \($0) times" } ?? "")
    try await eventually(what, within: limit, state: { errors }) {
      let count = lines(words).count
      return times.map { count == $0 } ?? (count > 0)
    }
  }

  var isRunning: Bool {
    poll()
    return exit == nil
  }

  func signal(_ number: Int32) {
    if isRunning { Glibc.kill(pid, number) }
  }

  /// Writes a line to the child's standard input.
  func write(line: String) throws {
    var rest = Array((line + "\n").utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
      guard count > 0 else { throw Failure("\(name) reads no more: \(errors.suffix(2000))") }
      rest = rest.dropFirst(count)
    }
  }

  /// Closes the child's standard input.
  func endInput() {
    guard input >= 0 else { return }
    close(input)
    input = -1
  }

  /// Ends the process now and reaps it.
  func kill() {
    endInput()
    guard isRunning else { return }
    Glibc.kill(pid, SIGKILL)
    waitBlocking()
  }

  /// Waits without a deadline: for helpers that end by themselves, and after a kill.
  @discardableResult
  func waitBlocking() -> Exit {
    if let exit { return exit }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) == -1 && errno == EINTR {}
    return settle(status)
  }

  /// How the process ended, waited for with a deadline.
  @discardableResult
  func wait(within limit: Duration = .seconds(30)) async throws -> Exit {
    let deadline = ContinuousClock.now + limit
    while isRunning {
      if ContinuousClock.now > deadline {
        throw Failure("\(name) still runs after \(limit); stderr: \(errors.suffix(3000))")
      }
      try await Task.sleep(for: .milliseconds(5))
    }
    guard let exit else { throw Failure("\(name) was lost") }
    return exit
  }

  private func poll() {
    guard exit == nil else { return }
    var status: Int32 = 0
    if waitpid(pid, &status, WNOHANG) == pid { settle(status) }
  }

  @discardableResult
  private func settle(_ status: Int32) -> Exit {
    let signal = status & 0x7f
    let ended = signal == 0 ? Exit.code((status >> 8) & 0xff) : .signal(signal)
    exit = ended
    return ended
  }

  private static func text(_ path: String) -> String {
    guard let data = FileManager.default.contents(atPath: path) else { return "" }
    return String(decoding: data, as: UTF8.self)
  }
}

/// What a test's own machinery has to say when it cannot go on.
struct Failure: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) {
    self.description = description
  }
}

/// A pipe that no child inherits.
enum Pipe {
  /// Held while a pipe is made and while a child is spawned: Glibc's module has no `pipe2`, and between `pipe` and
  /// FD_CLOEXEC another thread's child would take the ends with it.
  static let spawning = Mutex(())

  static func open() throws -> (read: Int32, write: Int32) {
    try spawning.withLock { _ in
      var ends: [Int32] = [0, 0]
      guard pipe(&ends) == 0 else { throw Failure("pipe: \(errno)") }
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      return (ends[0], ends[1])
    }
  }
}
