import APNsSimulator
import Glibc

/// C programs that do the least that can be done for the same job, with the same libraries.
struct Ceiling {
  private let script: String

  /// Nil where they are not.
  init?(_ folder: String) {
    script = "\(folder)/run.sh"
    guard access(script, R_OK) == 0 else { return nil }
  }

  /// Compiles all of them into a folder, and starts the server there with our certificate.
  func serve(_ material: Material, in folder: String) throws -> Server {
    mkdir(folder, 0o755)
    for (file, link) in [(material.certificateFile, "srv.crt"), (material.certificateKeyFile, "srv.key")] {
      symlink(file, "\(folder)/\(link)")
    }
    // What stands for a provider token.
    try write(String(repeating: "x", count: 150), to: "\(folder)/jwt.txt")
    return try Server(core: .peer) { port in ["bash", script, "serve", "\(port)", folder] }
  }

  /// Claims, sends and records a backlog.
  static func drain(_ rows: Int, port: UInt16, in folder: String) throws -> Usage {
    let database = "\(folder)/queue"
    for suffix in ["", "-wal", "-shm"] { unlink(database + suffix) }
    try run(["\(folder)/sqbench", "build", database, "\(rows)", "\(rows)", "tail"])
    return try run(["\(folder)/h2sq", "\(port)", "\(folder)/jwt.txt", database, "FULL", "\(rows)", "500"])
  }

  /// Sends, and does nothing else.
  static func send(_ rows: Int, port: UInt16, in folder: String) throws -> Usage {
    // The last number is a warm-up, which is not to be counted.
    try run(["\(folder)/h2cli", "\(port)", "\(folder)/jwt.txt", "\(rows)", "1000", "0"])
  }

  @discardableResult
  private static func run(_ arguments: [String]) throws -> Usage {
    let usage = try Child(arguments, core: .client).wait()
    guard usage.exitCode == 0 else { throw Trouble("\(arguments[0]) ended with \(usage.exitCode)") }
    return usage
  }
}
