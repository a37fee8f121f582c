/// The times that a connection keeps.
package struct ConnectionOptions: Sendable {
  /// For resolving, connecting and the TLS handshake together.
  package var dialTimeout: Duration = .seconds(10)
  /// From submitting a request to its answer.
  package var answerTimeout: Duration = .seconds(30)
  /// A connection from which nothing was read for so long is not fresh.
  package var readIdleBeforeProbe: Duration = .seconds(60)
  /// Silence while answers are due, after which a PING goes out.
  package var silenceWhileAwaiting: Duration = .seconds(10)
  /// From a PING to its answer.
  package var pingTimeout: Duration = .seconds(5)
  /// Between the starts of two connection attempts (RFC 8305, 5).
  package var attemptStagger: Duration = .milliseconds(250)

  package init() {}
}
