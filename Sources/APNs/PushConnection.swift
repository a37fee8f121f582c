import HTTP2

/// A push as it goes on the wire; one value is filled anew for each request, so that its storage is reused and
/// never copied.
package struct Push: ~Copyable {
  /// `bearer <JWT>`.
  package var authorization: [UInt8] = []
  /// With the suffix that the push type asks for.
  package var topic: [UInt8] = []
  package var pushType: [UInt8] = []
  package var priority: Int64 = 10
  /// UNIX seconds; 0 asks Apple not to store it.
  package var expiration: Int64 = 0
  /// Our own UUID, 36 characters.
  package var apnsID: [UInt8] = []
  /// Empty for none.
  package var collapseID: [UInt8] = []
  package var payload: [UInt8] = []

  package init() {}
}

/// The end of one push: what Apple answered, or how its stream ended without an answer.
package struct PushEnd {
  /// What the caller gave at `stage`.
  package let tag: UInt64
  package let answer: Answer
  /// Without an answer: whether the peer provably never processed it.
  package let isProvablyUnprocessed: Bool
  /// Without an answer: whether its time ran out.
  package let hasTimedOut: Bool
  /// Without an answer: whether the peer refused the stream (REFUSED_STREAM, or above a GOAWAY's last id).
  package let isRefused: Bool
  /// Without an answer: whether the stream was reset with another code.
  package let isReset: Bool
  private let path: [UInt8]

  init(_ stream: borrowing EndedStream) {
    tag = stream.tag
    path = stream.path
    if let body = stream.body, let captured = stream.captured {
      answer = Answer(status: stream.status, body: body.span, uniqueID: captured.span)
    } else if let body = stream.body {
      answer = Answer(status: stream.status, body: body.span)
    } else {
      answer = Answer(status: stream.status, body: nil)
    }
    isProvablyUnprocessed = stream.isProvablyUnprocessed
    hasTimedOut = stream.status == nil && stream.end == .timedOut
    isRefused = stream.status == nil && stream.end == .refused
    if stream.status == nil, case .reset = stream.end { isReset = true } else { isReset = false }
  }

  /// The device token that the request went to, as hex digits.
  package var token: String {
    String(decoding: path.dropFirst(PushConnection.pathPrefix.count), as: UTF8.self)
  }
}

/// One HTTP/2 connection to one of Apple's hosts; requests are staged first and leave with `sendStaged`.
package final class PushConnection {
  static let pathPrefix = Array("/3/device/".utf8)

  let connection: Connection

  init(_ connection: Connection) { self.connection = connection }

  /// Where the connection is in its life.
  package enum Phase: Sendable {
    case dialing, open, retired, closed
  }

  package var phase: Phase {
    switch connection.phase {
    case .dialing: .dialing
    case .open: .open
    case .retired: .retired
    case .closed: .closed
    }
  }

  /// Why it failed or closed, in words.
  package var fault: String? { connection.fault?.description }
  /// What the peer's GOAWAY said, if anything.
  package var goawayDebug: String? { connection.goawayDebug }
  /// The GOAWAY itself in words, if one came.
  package var goaway: String? { connection.goaway?.description }
  /// The address that was reached.
  package var peerAddress: String? { connection.peerAddress }
  /// When `advance` is due although nothing has happened.
  package var deadline: ContinuousClock.Instant? { connection.deadline }
  /// How many more requests the peer takes now; none before its SETTINGS.
  package var freeStreams: Int { connection.freeStreams }
  /// How many bytes of payload the connection's window takes now, those that were staged not counted.
  package var sendWindow: Int { connection.sendWindow }

  /// Reads, judges deadlines and writes; never blocks.
  package func advance(now: ContinuousClock.Instant) { connection.advance(now: now) }

  /// Whether the connection has given a sign of life recently; if not, `probe` before relying on it.
  package func isFresh(now: ContinuousClock.Instant) -> Bool { connection.isFresh(now: now) }

  /// Asks for a sign of life (PING).
  package func probe(now: ContinuousClock.Instant) { connection.probe(now: now) }

  /// Makes a request ready in a free stream; nothing of it reaches HTTP/2 or the wire yet.
  ///
  /// - Returns: false when no stream is free.
  package func stage(_ push: borrowing Push, to token: Span<UInt8>, tag: UInt64) -> Bool {
    let slot = connection.stage(tag: tag) { request in
      request.path.append(contentsOf: PushConnection.pathPrefix)
      token.withUnsafeBufferPointer { request.path.append(contentsOf: $0) }
      request.body.append(contentsOf: push.payload)
      // Apple's advice on HPACK: what repeats goes into the table; of `apns-id`, `apns-expiration` and
      // `apns-collapse-id` only the names ("Sending notification requests to APNs").
      request.fields.append("authorization", push.authorization, .incremental)
      request.fields.append("apns-topic", push.topic, .incremental)
      request.fields.append("apns-push-type", push.pushType, .incremental)
      request.fields.append("apns-priority", push.priority, .incremental)
      request.fields.append("apns-expiration", push.expiration, .without)
      request.fields.append("apns-id", push.apnsID, .without)
      if !push.collapseID.isEmpty {
        request.fields.append("apns-collapse-id", push.collapseID, .without)
      }
    }
    return slot != nil
  }

  /// Forgets what was staged: the transaction failed.
  package func discardStaged() { connection.discardStaged() }

  /// Sends what was staged.
  package func sendStaged(now: ContinuousClock.Instant) {
    connection.submitStaged(now: now)
    connection.flush(now: now)
  }

  /// Hands over each push that has ended since the last call, once.
  package func takeEnds(_ body: (PushEnd) -> Void) {
    connection.takeEnded { body(PushEnd($0)) }
  }

  /// Frees the memory that a burst of pushes has left, once all of them have ended.
  package func releaseMemory() { connection.releaseMemory() }

  /// Takes no new request; closes when those in flight have ended.
  package func retire() { connection.retire() }

  /// Closes at once; what is in flight ends without an answer.
  package func close(now: ContinuousClock.Instant) { connection.close(now: now) }
}
