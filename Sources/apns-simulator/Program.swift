import APNsSimulator
import CLinux
import Glibc

/// From arguments to exit code.
enum Program {
  static func run(_ arguments: [String]) -> Int32 {
    signal(SIGPIPE, SIG_IGN)
    do throws(SimulatorFault) {
      switch try Invocation.parse(arguments) {
      case .show(let text): print(text, terminator: "")
      case .run(let options) where options.printsToken:
        let material = try Material(directory: options.directory)
        print(
          try material.authorization(teamID: options.teamID, wallMilliseconds: Simulator.wallMilliseconds()))
      case .run(let options): try serve(options)
      }
      return 0
    } catch {
      let lines = error.description.split(separator: "\n").map { "apns-simulator: \($0)\n" }.joined()
      _ = lines.withCString { write(STDERR_FILENO, $0, strlen($0)) }
      return error.code.rawValue
    }
  }

  private static func serve(_ options: Options) throws(SimulatorFault) {
    var set = sigset_t()
    sigemptyset(&set)
    for number in [SIGINT, SIGTERM] { sigaddset(&set, number) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    let signals = signalfd(-1, &set, Int32(SFD_CLOEXEC) | Int32(SFD_NONBLOCK))
    guard signals >= 0 else {
      throw SimulatorFault(.inputOutput, "signalfd: \(String(cString: strerror(errno)))")
    }
    defer { close(signals) }
    allowManyConnections()
    let simulator = try Simulator(options)
    simulator.run(signals: signals, output: STDOUT_FILENO)
  }

  /// As many descriptors as this process may have: a load test opens many connections.
  private static func allowManyConnections() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
