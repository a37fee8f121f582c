import Foundation

/// Where the products and the peers of this package are.
enum Paths {
  /// The root of the package, from this file's own place in it.
  static let package: String = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  static let peers = "\(package)/Tests/Peers"
  static let python = "/usr/bin/python3"

  /// The built `nudged`: beside the test runner, since both come from one build.
  static func nudged() throws -> String {
    let runner = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    let candidates: [String?] = [
      ProcessInfo.processInfo.environment["END_TO_END_NUDGED"],
      URL(filePath: runner).deletingLastPathComponent().appending(path: "nudged").path,
      "\(package)/.build/debug/nudged",
    ]
    for case let path? in candidates where FileManager.default.isExecutableFile(atPath: path) { return path }
    throw Failure("no built nudged: run `swift build` first; looked at \(candidates.compactMap { $0 })")
  }

  /// A program of the machine, by name.
  static func program(_ name: String) throws -> String {
    for folder in ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin"] {
      let path = "\(folder)/\(name)"
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    throw Failure("\(name) is not installed: run `make deps`")
  }
}
