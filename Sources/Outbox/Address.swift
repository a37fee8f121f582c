import SQLite

extension Store {
  /// Opens `targets` at the next devices that a nudge is addressed to, with their token of the kind and scope, in the
  /// order of their ids.
  ///
  /// For an update or the end of a Live Activity also the devices that have no token for it.
  ///
  /// - Parameter walk: knows the last one that was looked at.
  func readTargets(
    of nudge: borrowing Nudge, _ delivery: Delivery, behind walk: borrowing Walk,
    by dispatcher: any Dispatcher
  ) throws(SQLiteError) {
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
    var question = Texts()
    swap(&question, &spareQuestion)
    defer { swap(&question, &spareQuestion) }
    question.removeAll()
    question.append(nudge, .recipient, orElse: "owner")
    question.append(nudge, isOneDevice ? .deviceID : .surface, orElse: "phone")
    question.append(delivery.tokenKind)
    if let scope = delivery.scope { question.append(nudge.bytes(scope)) } else { question.append("") }
    question.append(walk.device.span)
    question.append(walk.isBlob ? "blob" : "")
    guard !targets.open(statement, question) else { return }
    targets.begin()
    do {
      var select = statement.execution()
      select.bind(1, question[0])
      select.bind(2, question[1])
      select.bind(3, question[2])
      select.bind(4, question[3])
      select.bind(5, question[4], asBlob: walk.isBlob)
      select.bind(6, Int64(AddressBook.page))
      while try select.step() {
        targets.append(select.statement, ofActivity: mayLackToken, by: dispatcher)
      }
    }
    targets.keep(statement, &question, isFleeting: mayLackToken)
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

extension Texts {
  /// Appends a column, or what its NULL means.
  fileprivate mutating func append(_ nudge: borrowing Nudge, _ column: Nudge.Column, orElse other: String) {
    if let bytes = nudge.optionalBytes(column) { append(bytes) } else { append(other) }
  }
}
