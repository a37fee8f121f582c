import CNghttp2

/// What the callbacks of nghttp2 change. It lives in memory of its own, which is nghttp2's user data, so that
/// a callback is one access and nothing is held while nghttp2 runs. Not copyable, so that no read copies it.
struct SessionState: ~Copyable {
  static let responseLimit = 65_536
  /// All unfinished and untaken response bodies of a connection together.
  static let responsesLimit = 1 << 20
  static let capturedLimit = 128

  var slots: [Slot] = []
  var free: [Int] = []
  var staged: [Int] = []
  var ended: [Int] = []
  let capture: StaticString?

  /// Streams that nghttp2 has, and streams whose answer is awaited: the former may outlast the latter.
  var sessionStreams = 0
  var openStreams = 0
  /// Ends of the list of open streams in order of submission.
  var oldest = -1
  var newest = -1

  /// Body bytes of submitted requests that are not framed yet; nghttp2 takes a frame off the window when it
  /// hands it out.
  var unframedBytes = 0
  var responseBytes = 0

  /// HEADERS go out in the order of stream ids (RFC 9113, 5.1.1), so one number says which of them have a
  /// byte in the output buffer, and one which of those were given to TLS.
  var framedThrough: Int32 = 0
  var handedThrough: Int32 = 0

  var streamLimit = 0
  var hasSettings = false
  var goaway: Goaway?
  /// Why nghttp2 itself ends the connection.
  var localGoaway: String?
  var pingNumber: UInt64 = 0
  var answeredPing: UInt64 = 0

  struct Goaway {
    var lastStreamID: Int32
    var code: UInt32
    var debug: String?
  }

  init(capture: StaticString?) { self.capture = capture }

  // MARK: Slots

  mutating func takeSlot(_ tag: UInt64) -> Int {
    let index: Int
    if let last = free.popLast() {
      index = last
    } else {
      index = slots.count
      slots.append(Slot())
    }
    slots[index].prepare(tag: tag)
    staged.append(index)
    return index
  }

  /// Frees the slots, unless one is in use.
  mutating func releaseSlots() {
    guard free.count == slots.count else { return }
    slots = []
    free = []
  }

  mutating func discardStaged() {
    for index in staged {
      slots[index].release()
      free.append(index)
    }
    staged.removeAll(keepingCapacity: true)
  }

  mutating func opened(_ index: Int, _ id: Int32, _ submittedAt: Duration) {
    slots[index].stage = .open
    slots[index].isInSession = true
    slots[index].streamID = id
    slots[index].submittedAt = submittedAt
    slots[index].older = newest
    slots[index].newer = -1
    if newest >= 0 { slots[newest].newer = index } else { oldest = index }
    newest = index
    sessionStreams += 1
    openStreams += 1
    unframedBytes += slots[index].request.body.count
  }

  /// The request has its end; what the stream does afterwards changes nothing.
  mutating func end(_ index: Int, _ end: EndedStream.End) {
    guard slots[index].stage == .open else { return }
    slots[index].stage = .ended
    slots[index].end = end
    slots[index].wasHandedOver = end == .timedOut || wasHandedOver(index)
    let (older, newer) = (slots[index].older, slots[index].newer)
    if older >= 0 { slots[older].newer = newer } else { oldest = newer }
    if newer >= 0 { slots[newer].older = older } else { newest = older }
    openStreams -= 1
    ended.append(index)
  }

  /// A staged request that cannot be submitted ends without ever having been a stream.
  mutating func endStaged(_ index: Int) {
    slots[index].stage = .ended
    slots[index].end = .notHandedOver
    slots[index].wasHandedOver = false
    ended.append(index)
  }

  /// nghttp2 has let go of the stream.
  mutating func left(_ index: Int) {
    guard slots[index].isInSession else { return }
    slots[index].isInSession = false
    sessionStreams -= 1
    unframedBytes -= slots[index].request.body.count - slots[index].bodySent
    recycle(index)
  }

  mutating func taken(_ index: Int) {
    slots[index].isTaken = true
    responseBytes -= slots[index].responseBody.count
    if !slots[index].responseBody.isEmpty { slots[index].emptyResponse() }
    recycle(index)
  }

  private mutating func recycle(_ index: Int) {
    guard slots[index].isTaken, !slots[index].isInSession, slots[index].stage == .ended else { return }
    slots[index].release()
    free.append(index)
  }

  func wasHandedOver(_ index: Int) -> Bool {
    let id = slots[index].streamID
    return id > 0 && id <= handedThrough
  }

  /// Its HEADERS will go to TLS, or have: nghttp2 cannot take them back.
  func isFramed(_ index: Int) -> Bool { slots[index].streamID <= framedThrough }

  func slot(ofStream id: Int32) -> Int? {
    slots.firstIndex { $0.isInSession && $0.streamID == id }
  }

  func endedStream(_ index: Int) -> EndedStream {
    // Member by member: a copy of the slot would retain all of its arrays.
    EndedStream(
      tag: slots[index].tag, status: slots[index].status > 0 ? Int(slots[index].status) : nil,
      body: slots[index].isResponseTooLarge ? nil : slots[index].responseBody,
      captured: slots[index].hasCaptured ? slots[index].captured : nil, path: slots[index].request.path,
      end: slots[index].end, wasHandedOver: slots[index].wasHandedOver)
  }

  // MARK: What arrives

  mutating func receivedStatus(_ index: Int, _ status: Int32) {
    // 1xx is no answer, and the first final status is the answer, whatever follows.
    guard status >= 200, slots[index].stage == .open, slots[index].status == 0 else { return }
    slots[index].status = status
  }

  mutating func receivedBody(_ index: Int, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard slots[index].stage == .open, !slots[index].isResponseTooLarge else { return }
    let held = slots[index].responseBody.count
    if held + bytes.count > Self.responseLimit || responseBytes + bytes.count > Self.responsesLimit {
      slots[index].isResponseTooLarge = true
      slots[index].responseBody = []
      responseBytes -= held
    } else {
      unsafe slots[index].responseBody.append(contentsOf: bytes)
      responseBytes += bytes.count
    }
  }

  mutating func receivedCapture(_ index: Int, _ value: UnsafeBufferPointer<UInt8>) {
    guard slots[index].stage == .open, !slots[index].hasCaptured else { return }
    slots[index].hasCaptured = true
    unsafe slots[index].captured.append(contentsOf: value.prefix(Self.capturedLimit))
  }

  /// How a stream ends that closes with `code` before it was answered in full.
  func end(of index: Int, closedWith code: UInt32) -> EndedStream.End {
    if !wasHandedOver(index) { return .notHandedOver }
    if code == NGHTTP2_REFUSED_STREAM.rawValue { return .refused }
    if code == 0, slots[index].status > 0 { return .complete }
    return .reset(code)
  }

  /// END_STREAM arrived; says whether our side of the stream is still open.
  mutating func completed(_ index: Int) -> Bool {
    // Without a final status nghttp2 finds the answer malformed and resets the stream itself.
    guard slots[index].status > 0, slots[index].stage == .open else { return false }
    end(index, .complete)
    return slots[index].bodySent < slots[index].request.body.count
  }

  /// The connection is gone, and nghttp2 with all its streams.
  mutating func loseAll() {
    while oldest >= 0 { end(oldest, wasHandedOver(oldest) ? .lost : .notHandedOver) }
    for index in slots.indices { left(index) }
  }

  mutating func closed(_ index: Int, _ code: UInt32) {
    end(index, end(of: index, closedWith: code))
    left(index)
  }

  /// Copies the next part of a request's body, and says whether it is the last.
  mutating func copyBody(_ index: Int, into buffer: UnsafeMutableRawBufferPointer) -> (Int, Bool) {
    let sent = slots[index].bodySent
    let total = slots[index].request.body.count
    let count = min(buffer.count, total - sent)
    unsafe slots[index].request.body.withUnsafeBytes { body in
      unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: body[sent..<sent + count]))
    }
    slots[index].bodySent = sent + count
    unframedBytes -= count
    return (count, sent + count == total)
  }
}
