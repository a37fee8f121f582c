extension PushType {
  /// The value of `apns-priority` for what the row's `priority` column says; nil is NULL.
  ///
  /// Which values are legal for which push type: Apple, "Sending notification requests to APNs".
  package func priority(_ asked: Int64?) throws(HeaderFault) -> Int {
    guard let asked else { return defaultPriority }
    if let legal = priorities.first(where: { Int64($0) == asked }) { return legal }
    let wanted = priorities.map(String.init).joined(separator: " or ")
    throw HeaderFault(words: "priority \(asked) is an error for \(kind.name), use \(wanted)")
  }
}
