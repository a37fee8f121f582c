import Outbox
import Relay

/// `nudged devices`: who can be nudged, as a table for people.
struct Devices: Command {
  var database: String
  var showTokens: Bool

  static func parse(_ given: Given) throws(Failure) -> Devices {
    Devices(database: try Missing.requireDatabase(given), showTokens: given.has("show-tokens"))
  }

  func run() throws(Failure) -> Outcome {
    let devices = try Failure.wrap { () throws(DatabaseFault) in
      try Backend.devices(databaseAt: database)
    }
    guard !devices.isEmpty else {
      return Outcome(text: "no devices are registered in \(database)\n")
    }
    return Outcome(text: table(devices))
  }

  /// One line a token; a device without tokens has a line of its own.
  func table(_ devices: [Backend.Device]) -> String {
    var table = TextTable(header: [
      "DEVICE", "RECIPIENT", "SURFACE", "TOPIC", "KIND", "SCOPE", "ENVIRONMENT", "PROVEN",
      "REGISTERED", "SET ASIDE", "TOKEN",
    ])
    for device in devices {
      let start = [device.id, device.recipient, device.surface, device.topic]
      for token in device.tokens {
        table.append(
          start + [
            token.kind, token.scope, token.environment ?? "", date(token.provenAt),
            date(token.registeredAt), date(token.rejectedAt),
            showTokens ? token.token : String(token.token.prefix(8)) + "...",
          ])
      }
      if device.tokens.isEmpty { table.append(start + ["no token", "", "", "", "", "", ""]) }
    }
    return table.text
  }

  /// `2026-11-30T19:03:46Z`, or nothing for nil.
  private func date(_ milliseconds: Int64?) -> String { milliseconds.map(WallTime.text) ?? "" }
}
