import APNs
import Foundation

@testable import Relay

/// What hosts and connections are made of in a test: a fresh key, and a network that nothing answers on.
final class Bench {
  let poller: Poller
  let network: Network
  let signer: Signer
  let start = ContinuousClock.now
  private var tag: UInt64 = 100

  init() throws {
    poller = try Poller()
    network = try Network(caFile: nil, epoll: poller.descriptor, resolverTag: 2, answerTimeout: .seconds(30))
    signer = try Bench.signer()
  }

  static func key() throws -> [UInt8] {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/openssl")
    process.arguments = ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let key = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return Array(key)
  }

  static func signer() throws -> Signer {
    try Signer(
      Configuration.Key(file: "AuthKey.p8", id: "ABC123DEFG", content: try key()), teamID: "TEAM000001")
  }

  func host(_ environment: APNs.Environment = .production, signer: Signer? = nil) -> Relay.Host {
    Relay.Host(
      Configuration.Host(environment: environment, name: "127.0.0.1", port: 1, key: nil),
      signer: signer ?? self.signer)
  }

  /// A connection that has not been advanced yet: it dials.
  func link() -> Link {
    tag += 1
    return Link(network.connect(host: "127.0.0.1", port: 1, tag: tag, now: start), tag: tag, now: start)
  }
}
