import Glibc
import Relay

/// `nudged run`: the worker.
struct Run: Command {
  /// Everything but the keys, which `run` reads from their files.
  var configuration: Configuration
  var keys: KeySettings
  /// The setting that named the extra trust root.
  var caFileOrigin: String?
  var logLevel: Log.Level

  static func parse(_ given: Given) throws(Failure) -> Run {
    var missing = ["database", "team-id"].filter { given[$0] == nil }.map(Missing.name)
    let sharedKey = try KeySettings.source("key", of: given, missing: &missing)
    let productionKey = try KeySettings.source("production-key", of: given, missing: &missing)
    let sandboxKey = try KeySettings.source("sandbox-key", of: given, missing: &missing)
    if given["key-file"] == nil, given["production-key-file"] == nil, given["sandbox-key-file"] == nil {
      missing.append("\(Missing.name("key-file")), or a key of one host")
    }
    if let team = given["team-id"], !KeySettings.isID(team.text) {
      throw KeySettings.noTeamID(team)
    }
    guard missing.isEmpty, let database = given["database"]?.text, let team = given["team-id"]?.text else {
      throw Missing.failure(.run, missing)
    }
    let keys = KeySettings(
      teamID: team, production: productionKey ?? sharedKey, sandbox: sandboxKey ?? sharedKey)
    try keys.refuseSwapped()

    var configuration = Configuration(database: database, teamID: team, hosts: try hosts(given))
    try tune(&configuration, given)
    return Run(
      configuration: configuration, keys: keys, caFileOrigin: given["ca-file"]?.origin,
      logLevel: try given["log-level"]?.logLevel() ?? .info)
  }

  /// Both hosts; one keeps its place without a key: it is known, and never dialled.
  static func hosts(_ given: Given) throws(Failure) -> [Configuration.Host] {
    func host(_ value: Given.Value?, initial: String) throws(Failure) -> HostURL {
      try value.map(HostURL.parse) ?? HostURL(name: initial, port: 443)
    }
    let production = try host(given["production-url"], initial: "api.push.apple.com")
    let sandbox = try host(given["sandbox-url"], initial: "api.sandbox.push.apple.com")
    return [
      .init(environment: .production, name: production.name, port: production.port, key: nil),
      .init(environment: .sandbox, name: sandbox.name, port: sandbox.port, key: nil),
    ]
  }

  /// What has a default, within the ranges that make sense.
  private static func tune(_ configuration: inout Configuration, _ given: Given) throws(Failure) {
    let day = 24 * 3600
    func take(
      _ name: String, _ field: WritableKeyPath<Configuration, Duration>, _ range: ClosedRange<Duration>
    ) throws(Failure) {
      if let value = given[name] { configuration[keyPath: field] = try value.duration(in: range) }
    }
    try take("expire-after", \.expireAfter, .milliseconds(1) ... .seconds(365 * day))
    // Apple keeps a notification for 30 days at most.
    try take("store-for", \.storeFor, .seconds(1) ... .seconds(30 * day))
    try take("retain", \.retain, .milliseconds(1) ... .seconds(3650 * day))
    try take("poll-interval", \.pollInterval, .milliseconds(10) ... .seconds(3600))
    try take("answer-timeout", \.answerTimeout, .milliseconds(10) ... .seconds(600))
    try take("stop-timeout", \.stopTimeout, .zero ... .seconds(600))
    if let value = given["connections"] { configuration.connections = try value.integer(in: 1...64) }
    configuration.caFile = given["ca-file"]?.text
    configuration.drain = given.has("drain")
  }

  func run() throws(Failure) -> Outcome {
    // Before the keys are read: whoever changes them meanwhile and says so is heard.
    Signals.holdReload()
    let environment = Process.environment()
    let log = Log(threshold: logLevel, hasPriorityPrefix: Process.logsToJournal(environment))
    let exitCode = try runWorker(
      try complete(), readKey: keys.reread, notify: Notify(environment: environment), log: log)
    return Outcome(exitCode: exitCode)
  }

  /// The configuration with its keys read.
  func complete() throws(Failure) -> Configuration {
    var complete = configuration
    for index in complete.hosts.indices {
      let source = complete.hosts[index].environment == .production ? keys.production : keys.sandbox
      if let source { complete.hosts[index].key = try KeyFile.read(source) }
    }
    if let file = configuration.caFile {
      try KeyFile.requireReadable(file, origin: caFileOrigin ?? "--ca-file")
    }
    return complete
  }
}
