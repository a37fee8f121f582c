import Glibc
import Relay

/// The settings of `nudged run`, read piece by piece: what is wrong with one does not hide the others.
struct DoctorSettings: Sendable {
  private var checks: [Check] = []
  /// The keys that are given so far that they can be read.
  private var production, sandbox: KeySettings.Source?
  private var teamID: String?
  private var hosts: [Configuration.Host] = []
  private var caFile: (path: String, origin: String)?

  init(_ given: Given) {
    readKeys(given)
    do throws(Failure) {
      let (production, sandbox) = (production, sandbox)
      hosts = try Run.hosts(given).filter {
        ($0.environment == .production ? production : sandbox) != nil
      }
    } catch {
      checks.append(.fault("settings", error))
    }
    caFile = given["ca-file"].map { ($0.text, $0.origin) }
  }

  private mutating func readKeys(_ given: Given) {
    let names =
      ["team-id"] + ["key", "production-key", "sandbox-key"].flatMap { [$0 + "-file", $0 + "-id"] }
    guard names.contains(where: { given[$0] != nil }) else {
      checks.append(
        .warning(
          "settings", "no key is given, so keys and hosts are not checked",
          fix: "give --key-file and --team-id, or the variables that the worker has"))
      return
    }
    var missing = given["team-id"] == nil ? [Missing.name("team-id")] : []
    func source(_ prefix: String) -> KeySettings.Source? {
      do throws(Failure) { return try KeySettings.source(prefix, of: given, missing: &missing) } catch {
        checks.append(.fault("settings", error))
        return nil
      }
    }
    let shared = source("key")
    production = source("production-key") ?? shared
    sandbox = source("sandbox-key") ?? shared
    if !["key-file", "production-key-file", "sandbox-key-file"].contains(where: { given[$0] != nil }) {
      missing.append("\(Missing.name("key-file")), or a key of one host")
    }
    checks += missing.map {
      .fault("settings", .configuration, "missing: \($0)", fix: "`nudged help settings`")
    }
    if let team = given["team-id"] { readTeam(team) }
  }

  private mutating func readTeam(_ team: Given.Value) {
    guard KeySettings.isID(team.text) else {
      checks.append(.fault("settings", KeySettings.noTeamID(team)))
      return
    }
    teamID = team.text
    do throws(Failure) {
      try KeySettings(teamID: team.text, production: production, sandbox: sandbox).refuseSwapped()
    } catch {
      checks.append(.fault("settings", error))
    }
  }

  // MARK: Keys

  /// The settings, and the key files behind them.
  func check() -> [Check] {
    if let production, production == sandbox { return checks + check(production, "key") }
    return checks + (production.map { check($0, "production key") } ?? [])
      + (sandbox.map { check($0, "sandbox key") } ?? [])
  }

  private func check(_ source: KeySettings.Source, _ name: String) -> [Check] {
    let content: Configuration.Key
    do throws(Failure) { content = try KeyFile.read(source) } catch {
      return [.fault(name, error, fix: "correct \(source.origin), or let the worker's user read it")]
    }
    if let objection = content.objection {
      return [
        .fault(
          name, .configuration, "\(source.file): \(objection)",
          fix: "take the .p8 file that Apple gave you for key \(source.id)")
      ]
    }
    var status = stat()
    let mode = stat(source.file, &status) == 0 ? status.st_mode & 0o777 : 0
    if mode & 0o077 != 0 {
      return [
        .warning(
          name, "\(source.file) is open to others (mode 0\(String(mode, radix: 8)))",
          fix: "chmod 600 \(source.file)")
      ]
    }
    if let id = KeySettings.id(fromFileName: source.file), id != source.id {
      return [
        .warning(
          name, "\(source.file) is by its name the key \(id), but is used as \(source.id)",
          fix: "leave the key id out, or give the file of \(source.id)")
      ]
    }
    // No check of form finds an id that was taken for the other: so both are shown.
    return [.ok(name, "\(source.file): P-256, key id \(source.id)\(teamID.map { ", team id \($0)" } ?? "")")]
  }

  // MARK: Hosts

  /// The way to each host that has a key: a line for each step, and what was found.
  func checkHosts() -> (checks: [Check], hosts: [HostCheck]) {
    guard !hosts.isEmpty else { return ([], []) }
    do throws(Failure) {
      if let caFile { try KeyFile.requireReadable(caFile.path, origin: caFile.origin) }
      let found = try HostCheck.run(hosts, caFile: caFile?.path)
      return (found.flatMap(DoctorSettings.lines), found)
    } catch {
      return ([.fault("trust roots", error, fix: "correct --ca-file, or leave it out")], [])
    }
  }

  private static func lines(_ host: HostCheck) -> [Check] {
    let environment = host.host.environment.rawValue
    let place = "\(host.host.name):\(host.host.port)"
    var lines = host.done.map { step, took in
      Check.ok("\(environment) \(step.rawValue)", "\(words(step, host, place)), \(took.milliseconds) ms")
    }
    if let (step, words) = host.failure {
      lines.append(
        .fault(
          "\(environment) \(step.rawValue)", .unavailable,
          words.hasPrefix(host.host.name) ? words : "\(place): \(words)",
          fix: fix(step, words, host.host, setting: "--\(environment)-url")))
    }
    return lines
  }

  private static func words(_ step: HostCheck.Step, _ host: HostCheck, _ place: String) -> String {
    switch step {
    case .dns: host.host.name
    case .tcp: host.address ?? place
    case .tls: "the certificate and its name are good"
    case .alpn: "h2"
    }
  }

  private static func fix(
    _ step: HostCheck.Step, _ words: String, _ host: Configuration.Host, setting: String
  ) -> String {
    switch step {
    case .dns: "getent hosts \(host.name); if that fails too, see /etc/resolv.conf"
    case .tcp: "let TCP to port \(host.port) out of the firewall"
    case .tls where words.hasSuffix("certificate has expired") || words.hasSuffix("not yet valid"):
      "timedatectl: is the clock right?"
    case .tls where words.hasSuffix("mismatch"): "correct \(setting)"
    case .tls where words.hasPrefix("certificate verify failed"):
      "apt-get install ca-certificates; for a test server --ca-file; a proxy that opens TLS is of no use"
    case .tls: "connect without a proxy: the other side does not finish the TLS handshake"
    case .alpn: "connect without a proxy: the other side does not speak HTTP/2"
    }
  }
}
