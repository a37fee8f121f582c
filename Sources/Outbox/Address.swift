import SQLite

extension Store {
  /// The devices that a nudge is addressed to, with their token of the kind and scope, in the order of their
  /// ids, behind the last one that was looked at: bound, not yet stepped.
  func targets(of nudge: borrowing Nudge, tokenKind: String, scope: String) -> Statement {
    let statement: Statement
    if !nudge.isNull(.deviceID) {
      statement = statements.targetsOfDevice
      statement.bind(2, nudge.bytes(.deviceID))
    } else if nudge.isNull(.surface) {
      statement = statements.targetsOnSurface
      statement.bind(2, "phone")
    } else if nudge.bytes(.surface).isStar {
      statement = statements.targetsAnywhere
      statement.bind(2, "*")
    } else {
      statement = statements.targetsOnSurface
      statement.bind(2, nudge.bytes(.surface))
    }
    if nudge.isNull(.recipient) {
      statement.bind(1, "owner")
    } else {
      statement.bind(1, nudge.bytes(.recipient))
    }
    statement.bind(3, tokenKind)
    statement.bind(4, scope)
    if let walk = fanOuts[nudge.id] {
      statement.bind(5, walk.device)
    } else {
      statement.bind(5, "")
    }
    return statement
  }

  /// Why nobody can be sent this nudge, in words.
  ///
  /// - Parameter setAside: how many devices have a token that every host refused.
  func unaddressed(
    _ nudge: borrowing Nudge, tokenKind: String, scope: String, setAside: Int
  ) throws(SQLiteError) -> String {
    if setAside > 0 {
      return "every token is set aside: all hosts answered BadDeviceToken; waiting for a new registration"
    }
    let recipient = nudge.string(.recipient) ?? "owner"
    let token = scope.isEmpty ? tokenKind : "\(tokenKind) (\(scope))"
    if let device = nudge.string(.deviceID) {
      let owner = try database.prepare("select recipient from nudge_device where device_id = ?1")
      owner.bind(1, device)
      defer { owner.reset() }
      guard try owner.step() else { return "no such device is registered" }
      return owner.string(0) == recipient
        ? "the device has no \(token) token" : "the device does not belong to recipient \(recipient)"
    }
    let surface = nudge.string(.surface) ?? "phone"
    let devices = try database.prepare(
      """
      select count(*), coalesce(sum(surface = ?2 or ?2 = '*'), 0) from nudge_device where recipient = ?1
      """)
    devices.bind(1, recipient)
    devices.bind(2, surface)
    defer { devices.reset() }
    guard try devices.step(), devices.integer(0) > 0 else { return "recipient \(recipient) has no device" }
    return devices.integer(1) > 0
      ? "no device of recipient \(recipient) on surface \(surface) has a token of kind \(token)"
      : "recipient \(recipient) has no device on surface \(surface)"
  }
}

extension Span<UInt8> {
  fileprivate var isStar: Bool {
    count == 1 && self[0] == UInt8(ascii: "*")
  }
}
