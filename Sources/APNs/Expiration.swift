extension PushType {
  /// The value of `apns-expiration`, UNIX seconds; 0 is "try once, do not store".
  ///
  /// The row's own `expires_at` if it has one; else the kind's rule, which is `createdAt` plus
  /// `storeFor` for most. Rounded down: APNs never keeps a nudge longer than was asked. Source:
  /// Apple, "Sending notification requests to APNs".
  ///
  /// - Parameters:
  ///   - expiresAt: milliseconds since 1970, nil for NULL.
  ///   - createdAt: milliseconds since 1970.
  ///   - storeFor: milliseconds.
  package func expirationSeconds(expiresAt: Int64?, createdAt: Int64, storeFor: Int64) -> Int64 {
    if let expiresAt { return max(0, expiresAt / 1000) }
    switch storage {
    case .immediate: return 0
    case .stored:
      let (sum, overflow) = createdAt.addingReportingOverflow(storeFor)
      return max(0, (overflow ? Int64.max : sum) / 1000)
    }
  }
}
