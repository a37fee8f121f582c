/// The place of one request and its answer; a slot's number is nghttp2's stream user data.
struct Slot {
  enum Stage { case free, staged, open, ended }

  var stage = Stage.free
  /// nghttp2 still has the stream, so the slot cannot serve another.
  var isInSession = false
  var isTaken = false
  var streamID: Int32 = 0
  var tag: UInt64 = 0
  var request = Request()
  /// Bytes of the body that were framed.
  var bodySent = 0

  /// 0 until a final status arrived.
  var status: Int32 = 0
  var responseBody: [UInt8] = []
  var isResponseTooLarge = false
  var captured: [UInt8] = []
  var hasCaptured = false
  var end = EndedStream.End.lost
  var wasHandedOver = false

  /// When it was submitted, since the session began: the layout of an `Instant` is known at run time only, and so
  /// would be that of every slot.
  var submittedAt = Duration.zero
  /// The order of answer deadlines, which is the order of submission.
  var older = -1
  var newer = -1

  mutating func prepare(tag: UInt64) {
    self.tag = tag
    stage = .staged
    isTaken = false
    streamID = 0
    bodySent = 0
    status = 0
    isResponseTooLarge = false
    hasCaptured = false
    request.removeAll()
  }

  /// Memory of an unusually large answer is not kept for the next.
  mutating func emptyResponse() {
    if responseBody.capacity > 4_096 {
      responseBody = []
    } else {
      responseBody.removeAll(keepingCapacity: true)
    }
  }

  mutating func release() {
    stage = .free
    if !responseBody.isEmpty { emptyResponse() }
    if !captured.isEmpty { captured.removeAll(keepingCapacity: true) }
    if request.body.capacity > 16_384 { request.body = [] }
  }
}
