import Outbox
import Relay

/// `nudged doctor`: everything between the backend's row and Apple's host, looked at without touching it.
struct Doctor: Command {
  var database: String
  var settings: DoctorSettings
  var json: Bool

  static let options = [
    Option(
      name: "json", value: nil, help: "JSON lines with check, status, detail and fix", initial: nil,
      commands: [.doctor], isSetting: false)
  ]

  static func parse(_ given: Given) throws(Failure) -> Doctor {
    Doctor(
      database: try Missing.requireDatabase(given), settings: DoctorSettings(given), json: given.has("json"))
  }

  func run() throws(Failure) -> Outcome {
    let now = Clock.system.wall()
    let file = DatabaseChecks(path: database)
    var (checks, health) = file.look(now: now)
    checks += file.checkAround()
    let (ways, hosts) = settings.checkHosts()
    checks += settings.check() + [clock(now, hosts)] + ways
    if let health {
      let history = HistoryChecks(
        health: health, worker: WorkerLock.holder(databasePath: database), now: now)
      checks += history.all
    }
    let report = Report(checks: checks)
    return Outcome(
      text: json ? report.json : report.text(inColour: Terminal.takesColour), exitCode: report.exitCode)
  }

  /// Provider tokens carry the time: Apple refuses one that is an hour off.
  private func clock(_ now: Int64, _ hosts: [HostCheck]) -> Check {
    let time = WallTime.text(now)
    // From this program's first year to the end of the century.
    guard (1_767_225_600_000..<4_102_444_800_000).contains(now) else {
      return .fault("clock", .configuration, "\(time) cannot be", fix: "timedatectl set-ntp true")
    }
    guard let host = hosts.first(where: { $0.done.contains { $0.step == .tls } })?.host.name else {
      return .ok("clock", "\(time); there was no certificate to hold it against")
    }
    return .ok("clock", "\(time); the certificate of \(host) is valid now")
  }
}
