import APNs

/// An answer of any status and body: it has a meaning, and what is kept of its text is bounded.
func fuzzAnswer(_ input: Input) {
  var input = input
  let status = Int(input.byte()) << 2 | Int(input.byte() & 3)
  let body = input.all()
  let answer = Answer(status: status < 200 ? nil : status, body: body.span, uniqueID: body.span)
  let scalars = answer.uniqueID?.unicodeScalars
  require(scalars.map { (1...128).contains($0.count) } ?? true, "an id of the wrong length")
  require(scalars?.allSatisfy { $0.value >= 32 && $0.value != 127 } ?? true, "a control character in the id")
  let length = answer.reason?.unicodeScalars.count ?? 1
  require((1...1024).contains(length), "a reason of the wrong length")
  require(answer.timestampMilliseconds.map { $0 >= 0 } ?? true, "a time before 1970")
  require((answer.meaning == .silence) == (answer.status == nil), "an answer that is silence")
  require((answer.meaning == .accepted) == (answer.status == 200), "accepted without 200")
  require((answer.meaning == .deadToken) == (answer.status == 410), "a dead token without 410")
  let stops: Consequence = [.credentialsRefused, .tooManyProviderTokenUpdates, .serverError]
  require(
    !answer.consequences.contains(.provesConnection) || answer.consequences.isDisjoint(with: stops),
    "an answer that proves the connection and pauses the host")
}
