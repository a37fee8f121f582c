import APNs

/// Decides about pushes as APNs would.
struct Judge {
  let credentials: Credentials
  let rules: Examination.Rules
  var tokens = TokenTable()

  /// Why a push is refused; nil when it is accepted.
  ///
  /// - Parameter connection: what the connection remembers of provider tokens; a good one is noted there.
  func refusal(
    of push: Push, on connection: inout ConnectionCredentials, host: Environment, wallMilliseconds: Int64,
    now: ContinuousClock.Instant
  ) -> Refusal? {
    let examination = Examination(
      push, host: host, entry: push.token.flatMap { tokens.entry(push.bytes[$0]) }, rules: rules,
      wallMilliseconds: wallMilliseconds)
    if let refusal = Check.first(of: Check.ofRequest, toRefuse: examination) { return refusal }
    if let reason = connection.objection(
      to: push, credentials, wallSeconds: wallMilliseconds / 1000, now: now)
    {
      return Refusal(reason)
    }
    return Check.first(of: Check.ofPush, toRefuse: examination)
  }
}
