/// One of the two worlds of APNs; a device token and (for newer keys) a signing key belong to one of them.
///
/// The raw values are the words of the `environment` columns. Hosts: Apple, "Sending notification requests to APNs".
package enum Environment: String, Sendable, CaseIterable {
  case production
  case sandbox

  /// The environment to ask when this one answers `BadDeviceToken`.
  package var other: Environment {
    switch self {
    case .production: .sandbox
    case .sandbox: .production
    }
  }
}
