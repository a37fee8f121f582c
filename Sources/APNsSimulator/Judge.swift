import APNs

/// Decides about pushes as APNs would.
struct Judge {
  let credentials: Credentials
  let rules: Examination.Rules
  /// As `tokens.json` has them.
  var tokens = TokenTable()
  /// Those that cards got from ``Adopter``, good where their start was accepted; `tokens.json` outweighs them.
  private(set) var issued: [[UInt8]: TokenTable.Entry] = [:]

  /// Why a push is refused; nil when it is accepted.
  ///
  /// - Parameter connection: what the connection remembers of provider tokens; a good one is noted there.
  func refusal(
    of push: Push, on connection: inout ConnectionCredentials, host: Environment, wallMilliseconds: Int64,
    now: ContinuousClock.Instant
  ) -> Refusal? {
    let examination = Examination(
      push, host: host, entry: push.token.flatMap { entry(push.bytes[$0]) }, rules: rules,
      wallMilliseconds: wallMilliseconds)
    if let refusal = Check.first(of: Check.ofRequest, toRefuse: examination) { return refusal }
    if let reason = connection.objection(
      to: push, credentials, wallSeconds: wallMilliseconds / 1000, now: now)
    {
      return Refusal(reason)
    }
    return Check.first(of: Check.ofPush, toRefuse: examination)
  }

  /// A card has its update token.
  mutating func issue(_ token: [UInt8], to card: Card) {
    issued[token] = TokenTable.Entry(environment: card.host, topic: card.app, kind: "activity_update")
  }

  private func entry(_ token: ArraySlice<UInt8>) -> TokenTable.Entry? {
    tokens.entry(token) ?? (issued.isEmpty ? nil : issued[TokenTable.key(token)])
  }
}
