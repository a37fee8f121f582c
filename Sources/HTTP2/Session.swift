import CNghttp2

/// The client's side of an HTTP/2 connection without its socket: bytes in, bytes and ended streams out.
///
/// Time is a parameter, so every deadline can be tested without waiting. The corresponding C type is
/// `nghttp2_session`. Not `Sendable`.
@safe
package final class Session {
  /// As many streams at once as we use, also where the peer allows more or names no limit.
  package static let maximumStreams = 1_000
  /// Stream ids that are left over when a session takes no more requests (RFC 9113, 5.1.1: they cannot be
  /// used again, and end at 2^31 - 1).
  static let reservedStreamIDs = 65_536
  static let localWindow: Int32 = 1 << 20

  let handle: OpaquePointer
  let state: UnsafeMutablePointer<SessionState>
  let options: ConnectionOptions
  let authority: [UInt8]
  let nameValues: UnsafeMutableBufferPointer<nghttp2_nv>
  private var output = OutputBuffer()

  let beganAt: ContinuousClock.Instant
  var nextStreamID: Int32
  /// Addresses of the names that were entered into the table for `FieldIndexing.without`.
  var indexedNames: [UInt] = []

  /// When bytes last arrived, the handshake's included.
  package internal(set) var lastRead: ContinuousClock.Instant
  var pingSentAt: ContinuousClock.Instant?
  private(set) var fault: ConnectionFault?
  private var isRetired = false
  private(set) var isOver = false

  /// - Parameters:
  ///   - authority: the value of `:authority`.
  ///   - capture: the name, in lower case, of the one response header field to keep.
  ///   - firstStreamID: odd; other than 1 only to test the end of the ids.
  /// - Throws: ``ConnectionFault`` when memory ran out.
  package init(
    authority: String, capture: StaticString?, options: ConnectionOptions, now: ContinuousClock.Instant,
    firstStreamID: Int32 = 1
  ) throws(ConnectionFault) {
    let state = UnsafeMutablePointer<SessionState>.allocate(capacity: 1)
    unsafe state.initialize(to: SessionState(capture: capture))
    guard let handle = unsafe Self.makeHandle(state, firstStreamID) else {
      unsafe state.deinitialize(count: 1)
      unsafe state.deallocate()
      throw ConnectionFault(.local, "no HTTP/2 session")
    }
    unsafe self.handle = handle
    unsafe self.state = state
    self.authority = Array(authority.utf8)
    self.options = options
    unsafe nameValues = .allocate(capacity: Self.maximumFields)
    nextStreamID = firstStreamID
    beganAt = now
    lastRead = now
  }

  deinit {
    unsafe nghttp2_session_del(handle)
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe nameValues.deallocate()
  }

  private static func makeHandle(
    _ state: UnsafeMutablePointer<SessionState>, _ firstStreamID: Int32
  ) -> OpaquePointer? {
    guard let callbacks = unsafe SessionCallbacks.make() else { return nil }
    defer { unsafe nghttp2_session_callbacks_del(callbacks) }
    var options: OpaquePointer?
    guard unsafe nghttp2_option_new(&options) == 0 else { return nil }
    defer { unsafe nghttp2_option_del(options) }
    // Closed streams are kept only for their priorities, which we do not use.
    unsafe nghttp2_option_set_no_closed_streams(options, 1)
    var handle: OpaquePointer?
    guard unsafe nghttp2_session_client_new2(&handle, callbacks, state, options) == 0 else { return nil }
    let settings = [
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0)
    ]
    guard unsafe nghttp2_submit_settings(handle, 0, settings, settings.count) == 0,
      unsafe nghttp2_session_set_local_window_size(handle, 0, 0, localWindow) == 0,
      unsafe firstStreamID == 1 || nghttp2_session_set_next_stream_id(handle, firstStreamID) == 0
    else {
      unsafe nghttp2_session_del(handle)
      return nil
    }
    return unsafe handle
  }

  // MARK: What there is room for

  /// Requests that may be staged now.
  package var freeStreams: Int {
    guard unsafe !isRetired && !isOver && state.pointee.hasSettings else { return 0 }
    let limit = unsafe min(state.pointee.streamLimit, Self.maximumStreams)
    let staged = unsafe state.pointee.staged.count
    let room = unsafe limit - state.pointee.sessionStreams - staged
    return max(0, min(room, remainingRequests - staged))
  }

  private var remainingRequests: Int { (Int(Int32.max) - Int(nextStreamID)) / 2 - Self.reservedStreamIDs }

  /// What the connection's flow-control window has room for beyond the bodies already submitted.
  package var sendWindow: Int {
    let window = unsafe Int(nghttp2_session_get_remote_window_size(handle))
    return unsafe max(0, window - state.pointee.unframedBytes)
  }

  /// Requests whose end is awaited.
  package var openStreams: Int { unsafe state.pointee.openStreams }

  /// No new requests: the peer said GOAWAY, the ids run out, or `retire` was called.
  package var isRetiring: Bool { unsafe isRetired || state.pointee.goaway != nil }

  /// The debug data of the peer's GOAWAY, printable and cut at 256 bytes.
  package var goawayDebug: String? { unsafe state.pointee.goaway?.debug }

  var goaway: SessionState.Goaway? { unsafe state.pointee.goaway }

  /// The peer's first SETTINGS have arrived.
  package var hasSettings: Bool { unsafe state.pointee.hasSettings }

  /// Nothing staged, nothing awaited, and nothing left to write.
  var isIdle: Bool {
    unsafe state.pointee.openStreams == 0 && state.pointee.staged.isEmpty && output.isEmpty
  }

  /// The peer's GOAWAY in words.
  var goawayFault: ConnectionFault? {
    guard let goaway = unsafe state.pointee.goaway else { return nil }
    let debug = goaway.debug.map { ": \($0)" } ?? ""
    return ConnectionFault(
      .goaway, "GOAWAY \(errorName(goaway.code)), last stream \(goaway.lastStreamID)\(debug)")
  }

  package func retire() { isRetired = true }

  // MARK: Bytes

  /// Feeds what arrived.
  package func receive(_ bytes: UnsafeRawBufferPointer, now: ContinuousClock.Instant) {
    guard unsafe !isOver && !bytes.isEmpty else { return }
    lastRead = now
    let count = unsafe nghttp2_session_mem_recv(
      handle, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    if count < 0 { fail(ConnectionFault(.protocol, Self.words(Int32(clamping: count)))) }
    // Only the answer to the PING that is out ends the wait, not one with bytes that we never sent.
    if unsafe state.pointee.answeredPing == state.pointee.pingNumber { pingSentAt = nil }
    if goaway != nil || remainingRequests <= 0 { isRetired = true }
  }

  /// The bytes to write next, empty when there are none. The same bytes are returned until ``wrote(_:)``.
  package func bytesToWrite() -> UnsafeRawBufferPointer {
    var code = 0
    let bytes = unsafe output.bytes(of: isOver ? nil : handle) { code = $0 }
    if code < 0 { fail(ConnectionFault(.local, Self.words(Int32(clamping: code)))) }
    return unsafe bytes
  }

  /// To be called before the bytes are passed to TLS: from then on their requests are handed over.
  package func willWrite() { unsafe state.pointee.handedThrough = state.pointee.framedThrough }

  package func wrote(_ count: Int) { output.wrote(count) }

  /// nghttp2 wants neither to read nor to write: it has ended the connection, or both sides have.
  package var isFinished: Bool {
    unsafe nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0
      && output.isEmpty
  }

  /// Why nghttp2 ended the connection.
  var localGoaway: String? { unsafe state.pointee.localGoaway }

  /// Requests have ended that nobody has taken yet.
  var hasEnded: Bool { unsafe !state.pointee.ended.isEmpty }

  func submitGoaway() { unsafe nghttp2_submit_goaway(handle, 0, 0, NGHTTP2_NO_ERROR.rawValue, nil, 0) }

  // MARK: Ends

  /// The connection is gone: every open stream ends as lost, or as never handed over.
  package func fail(_ fault: ConnectionFault?) {
    guard !isOver else { return }
    isOver = true
    self.fault = fault
    unsafe state.pointee.loseAll()
  }

  /// Each ended stream once; its slot serves another request afterwards. `body` must not take ended streams.
  package func takeEnded(_ body: (borrowing EndedStream) -> Void) {
    // By position, and not over a copy, whose buffer would have to be allocated anew.
    let count = unsafe state.pointee.ended.count
    for position in 0..<count {
      let index = unsafe state.pointee.ended[position]
      unsafe body(state.pointee.endedStream(index))
      unsafe state.pointee.taken(index)
    }
    unsafe state.pointee.ended.removeSubrange(0..<count)
  }

  /// Frees the memory that a burst of requests has left, once all of them have ended.
  package func releaseMemory() { unsafe state.pointee.releaseSlots() }

  static func words(_ code: Int32) -> String { unsafe String(cString: nghttp2_strerror(code)) }
}
