import HTTP2
import Testing

/// A session and the scripted peer it talks to, without a socket; time moves only when told.
final class Peer {
  let session: Session
  var now: ContinuousClock.Instant
  /// All frames that the session wrote, after the preface.
  private(set) var written: [Frame] = []
  private var pending: [UInt8] = []
  private var hasPreface = false

  init(
    maximumStreams: Int? = 100, settings: [(Int, Int)] = [], options: ConnectionOptions = ConnectionOptions(),
    capture: StaticString? = "apns-unique-id", firstStreamID: Int32 = 1
  ) throws {
    now = ContinuousClock.now
    session = try Session(
      authority: "example.test", capture: capture, options: options, now: now, firstStreamID: firstStreamID)
    if let maximumStreams { send(.settings([(3, maximumStreams)] + settings)) }
  }

  func pass(_ duration: Duration) { now += duration }

  /// The peer sends these frames in one read; what the session writes then is collected.
  func send(_ frames: Frame...) {
    receive(frames.flatMap(\.bytes))
    drain()
  }

  func receive(_ bytes: [UInt8]) { bytes.withUnsafeBytes { session.receive($0, now: now) } }

  /// Lets the session write everything it has to write.
  func drain() {
    while writeOnce() > 0 {}
  }

  /// One write of at most one record; the whole of it when `limit` is nil.
  @discardableResult
  func writeOnce(limit: Int? = nil) -> Int {
    let bytes = session.bytesToWrite()
    guard !bytes.isEmpty else { return 0 }
    session.willWrite()
    let count = min(limit ?? bytes.count, bytes.count)
    pending += bytes.prefix(count)
    session.wrote(count)
    let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    if !hasPreface, pending.count >= preface.count {
      #expect(pending.starts(with: preface))
      pending.removeFirst(preface.count)
      hasPreface = true
    }
    if hasPreface { written += takeFrames(&pending) }
    return count
  }

  func frames(_ kind: Frame.Kind) -> [Frame] { written.filter { $0.kind == kind } }

  /// Submits a request for each tag and returns when they are written.
  func submit(_ tags: [UInt64], body: Int = 10) {
    stage(tags, body: body)
    session.submitStaged(now: now)
    drain()
  }

  func stage(_ tags: [UInt64], body: Int = 10) {
    for tag in tags {
      let slot = session.stage(tag: tag) { request in
        request.path.append(contentsOf: "/3/device/\(tag)".utf8)
        request.body.append(contentsOf: [UInt8](repeating: 120, count: body))
        request.fields.append("apns-topic", "com.example.app", .incremental)
      }
      #expect(slot != nil)
    }
  }

  func judge() {
    session.judge(now: now)
    drain()
  }

  /// Answers the PING that is out.
  func answerPing() {
    guard let ping = frames(.ping).last(where: { $0.flags == 0 }) else { return }
    send(Frame(kind: .ping, flags: Frame.ack, payload: ping.payload))
  }

  func ended() -> [EndedStream] {
    var list: [EndedStream] = []
    session.takeEnded { list.append(copy $0) }
    return list
  }
}
