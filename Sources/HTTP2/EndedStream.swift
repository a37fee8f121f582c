/// How a request ended, with what was learned until then.
///
/// The arrays share the slot's storage: keep none of them beyond the call, or its memory is copied.
package struct EndedStream {
  /// What the way of ending means only where no status arrived.
  package enum End: Equatable, Sendable {
    /// END_STREAM.
    case complete
    /// RST_STREAM with this error code, from the peer or for a malformed answer.
    case reset(UInt32)
    /// REFUSED_STREAM, or above a GOAWAY's last stream id: not processed (RFC 9113, 8.7).
    case refused
    /// The connection ended first.
    case lost
    /// No complete answer within the answer time-out; the stream was cancelled.
    case timedOut
    /// Ended before any byte of it was given to TLS.
    case notHandedOver
  }

  /// The caller's, from `stage`.
  package var tag: UInt64
  /// The first final status, 200 or more; nil when none arrived.
  package var status: Int?
  /// The answer's body, whole when `end` is `complete`; nil when it is larger than 64 KiB, or when the
  /// connection holds more than 1 MiB of bodies already.
  package var body: [UInt8]?
  /// The value of the captured header field, cut at 128 bytes; nil when the answer has none.
  package var captured: [UInt8]?
  /// The request's path.
  package var path: [UInt8]
  package var end: End
  /// Any byte of the request has been in a buffer passed to TLS, whatever that returned.
  package var wasHandedOver: Bool

  /// The peer provably never processed the request: it counts as never sent.
  package var isProvablyUnprocessed: Bool {
    status == nil && (end == .refused || !wasHandedOver)
  }
}
