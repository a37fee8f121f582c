import CNghttp2

/// The place of one request at a server.
struct ServerSlot: ~Copyable {
  /// 0 while the slot is free.
  var stream: Int32 = 0
  var request = ServerRequest()
  /// What of the answer's body is still to be framed.
  var body: [UInt8] = []
  var bodySent = 0
}

/// What the callbacks of a server's nghttp2 change; memory of its own, like ``SessionState``.
@safe
struct ServerState: ~Copyable {
  /// Each slot in memory of its own: what is borrowed from one does not move when another is added.
  private(set) var slots: [UnsafeMutablePointer<ServerSlot>]
  private var free: [Int] = []
  /// The slot whose header is being received: one block at a time (RFC 9113, 4.3).
  var receiving = -1
  /// Requests that have arrived in full and were not taken, in order of their ends.
  var ready: [RequestID] = []
  var openStreams = 0
  /// The peer said GOAWAY.
  var isGoing = false

  init() { unsafe slots = [] }

  deinit {
    // By index: the formatter of this toolchain does not know `for unsafe`.
    for index in unsafe slots.indices {
      unsafe slots[index].deinitialize(count: 1)
      unsafe slots[index].deallocate()
    }
  }

  mutating func open(_ stream: Int32) -> Int {
    let index: Int
    if let last = free.popLast() {
      index = last
    } else {
      index = unsafe slots.count
      let slot = UnsafeMutablePointer<ServerSlot>.allocate(capacity: 1)
      unsafe slot.initialize(to: ServerSlot())
      unsafe slots.append(slot)
    }
    unsafe slots[index].pointee.stream = stream
    receiving = index
    openStreams += 1
    return index
  }

  mutating func close(_ index: Int) {
    unsafe slots[index].pointee.stream = 0
    unsafe slots[index].pointee.request.removeAll()
    unsafe slots[index].pointee.body.removeAll(keepingCapacity: true)
    unsafe slots[index].pointee.bodySent = 0
    free.append(index)
    if receiving == index { receiving = -1 }
    openStreams -= 1
  }

  mutating func completed(_ index: Int) {
    unsafe ready.append(RequestID(slot: index, stream: slots[index].pointee.stream))
  }

  func isOpen(_ id: RequestID) -> Bool { unsafe slots[id.slot].pointee.stream == id.stream }

  /// Copies the next part of an answer's body, and says whether it is the last.
  func copyBody(_ index: Int, into buffer: UnsafeMutableRawBufferPointer) -> (Int, Bool) {
    let slot = unsafe slots[index]
    let sent = unsafe slot.pointee.bodySent
    let total = unsafe slot.pointee.body.count
    let count = min(buffer.count, total - sent)
    unsafe slot.pointee.body.withUnsafeBytes { body in
      unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: body[sent..<sent + count]))
    }
    unsafe slot.pointee.bodySent = sent + count
    return (count, sent + count == total)
  }
}
