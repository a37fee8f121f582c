import SQLite

extension Store {
  /// The devices that a nudge is addressed to, with their token of the kind and scope, in the order of their
  /// ids, behind the last one that was looked at: bound, not yet stepped.
  ///
  /// For an update or the end of a Live Activity also the devices that have no token for it.
  ///
  /// - Parameters:
  ///   - kind: the token kind of the delivery.
  ///   - device: the last one that was looked at; empty at the beginning.
  @_lifetime(borrow nudge, copy kind, copy device)
  func targets(
    of nudge: borrowing Nudge, _ delivery: Delivery, kind: Span<UInt8>, behind device: Span<UInt8>
  ) -> Execution {
    let mayLackToken = delivery.event == .update || delivery.event == .end
    let isOneDevice = !nudge.isNull(.deviceID)
    let isAnywhere = !isOneDevice && nudge.bytes(.surface).isStar
    let statement =
      if isOneDevice {
        mayLackToken ? statements.activityTargetsOfDevice : statements.targetsOfDevice
      } else if isAnywhere {
        mayLackToken ? statements.activityTargetsAnywhere : statements.targetsAnywhere
      } else {
        mayLackToken ? statements.activityTargetsOnSurface : statements.targetsOnSurface
      }
    var targets = statement.execution()
    if nudge.isNull(.recipient) {
      targets.bind(1, "owner")
    } else {
      targets.bind(1, nudge.bytes(.recipient))
    }
    if isOneDevice {
      targets.bind(2, nudge.bytes(.deviceID))
    } else if nudge.isNull(.surface) {
      targets.bind(2, "phone")
    } else {
      targets.bind(2, nudge.bytes(.surface))
    }
    targets.bind(3, kind)
    if let scope = delivery.scope {
      targets.bind(4, nudge.bytes(scope))
    } else {
      targets.bind(4, "")
    }
    targets.bind(5, device)
    return targets
  }

  /// Why nobody can be sent this nudge, in words.
  ///
  /// - Parameter setAside: how many devices have a token that every host refused.
  func unaddressed(
    _ nudge: borrowing Nudge, _ delivery: Delivery, setAside: Int
  ) throws(SQLiteError) -> String {
    if setAside > 0 {
      return "every token is set aside: all hosts answered BadDeviceToken; waiting for a new registration"
    }
    let recipient = nudge.string(.recipient) ?? "owner"
    let scope = delivery.scope.flatMap { nudge.string($0) }
    let token = scope.map { "\(delivery.tokenKind) (\($0))" } ?? delivery.tokenKind
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
