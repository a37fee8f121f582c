// `environ` is a global of C; nothing in this program writes to it.
@preconcurrency import Glibc

/// What the kernel and the parent process hand to this one.
enum Process {
  /// The arguments behind the program's name.
  ///
  /// The standard library looks for them on the stack just below the environment, and finds none when a preloaded
  /// library has set a variable before `main` and so has moved the environment (libfaketime does). The kernel
  /// knows them too: separated by NUL bytes (proc_pid_cmdline(5)).
  static func arguments() -> [String] {
    if !CommandLine.arguments.isEmpty { return Array(CommandLine.arguments.dropFirst()) }
    let descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      guard count > 0 else { break }
      text += chunk[..<count]
    }
    return text.split(separator: 0, omittingEmptySubsequences: false).dropFirst().dropLast()
      .map { String(decoding: $0, as: UTF8.self) }
  }

  /// The environment, the first of two entries with one name, as getenv has it.
  static func environment() -> [String: String] {
    var variables: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let pair = Pair.split(String(cString: text))
      if let value = pair.value, variables[pair.name] == nil { variables[pair.name] = value }
      entry += 1
    }
    return variables
  }

  /// Makes descriptors 0 to 2 exist and a closed pipe an error instead of the end.
  ///
  /// With standard error closed, the next file or socket would become number 2 and receive the log.
  static func prepareStandardStreams() {
    signal(SIGPIPE, SIG_IGN)
    while true {
      let descriptor = open("/dev/null", O_RDWR)
      guard descriptor >= 0 else { return }
      if descriptor > STDERR_FILENO {
        close(descriptor)
        return
      }
    }
  }

  /// Whether standard error is the journal, as systemd says by device and inode (systemd.exec(5)).
  static func logsToJournal(_ environment: [String: String]) -> Bool {
    var status = stat()
    guard let stream = environment["JOURNAL_STREAM"], fstat(STDERR_FILENO, &status) == 0 else {
      return false
    }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }

  /// Writes all of `text`; the error number of the first write that failed, else nil.
  static func write(_ text: String, to descriptor: Int32) -> Int32? {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        return errno
      }
    }
    return nil
  }

  /// The system's words for an error number.
  static func words(_ code: Int32) -> String { String(cString: strerror(code)) }
}
