import CNghttp2

/// The server's side of an HTTP/2 connection without its socket: bytes in, requests out, answers in, bytes out.
///
/// The corresponding C type is `nghttp2_session`. Not `Sendable`.
@safe
package final class ServerSession {
  static let localWindow: Int32 = 1 << 22

  private let handle: OpaquePointer
  private let state: UnsafeMutablePointer<ServerState>
  private let nameValues: UnsafeMutableBufferPointer<nghttp2_nv>
  private var output = OutputBuffer()
  /// The peer broke the rules, or the connection is gone.
  package private(set) var isOver = false

  /// - Parameter settings: the first SETTINGS frame.
  /// - Throws: ``ConnectionFault`` when memory ran out.
  package init(settings: [ServerSetting]) throws(ConnectionFault) {
    let state = UnsafeMutablePointer<ServerState>.allocate(capacity: 1)
    unsafe state.initialize(to: ServerState())
    guard let handle = unsafe Self.makeHandle(state) else {
      unsafe state.deinitialize(count: 1)
      unsafe state.deallocate()
      throw ConnectionFault(.local, "no HTTP/2 session")
    }
    unsafe self.handle = handle
    unsafe self.state = state
    unsafe nameValues = .allocate(capacity: 1 + RequestFields.limit)
    submit(settings)
    unsafe nghttp2_session_set_local_window_size(handle, 0, 0, Self.localWindow)
  }

  deinit {
    unsafe nghttp2_session_del(handle)
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe nameValues.deallocate()
  }

  private static func makeHandle(_ state: UnsafeMutablePointer<ServerState>) -> OpaquePointer? {
    guard let callbacks = unsafe ServerCallbacks.make() else { return nil }
    defer { unsafe nghttp2_session_callbacks_del(callbacks) }
    var options: OpaquePointer?
    guard unsafe nghttp2_option_new(&options) == 0 else { return nil }
    defer { unsafe nghttp2_option_del(options) }
    unsafe nghttp2_option_set_no_closed_streams(options, 1)
    var handle: OpaquePointer?
    guard unsafe nghttp2_session_server_new2(&handle, callbacks, state, options) == 0 else { return nil }
    return unsafe handle
  }

  // MARK: Requests

  /// Feeds what arrived.
  package func receive(_ bytes: UnsafeRawBufferPointer) {
    guard unsafe !isOver && !bytes.isEmpty else { return }
    let count = unsafe nghttp2_session_mem_recv(
      handle, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    if count < 0 { isOver = true }
  }

  /// Requests that have arrived in full since the last call, in the order of their ends.
  package func takeRequests() -> [RequestID] {
    guard unsafe !state.pointee.ready.isEmpty else { return [] }
    defer { unsafe state.pointee.ready.removeAll(keepingCapacity: true) }
    return unsafe state.pointee.ready
  }

  /// Whether the request's stream still awaits an answer.
  package func isOpen(_ id: RequestID) -> Bool { unsafe !isOver && state.pointee.isOpen(id) }

  /// Lends the request; nil when its stream is gone.
  package func withRequest<Result>(_ id: RequestID, _ body: (borrowing ServerRequest) -> Result) -> Result? {
    guard isOpen(id) else { return nil }
    return unsafe body(state.pointee.slots[id.slot].pointee.request)
  }

  /// Streams that are not closed.
  package var openStreams: Int { unsafe state.pointee.openStreams }

  /// The peer has said GOAWAY and every stream is closed: there is nothing more to come.
  package var isDone: Bool {
    unsafe isOver || (state.pointee.isGoing && state.pointee.openStreams == 0 && output.isEmpty)
      || isFinished
  }

  private var isFinished: Bool {
    unsafe nghttp2_session_want_read(handle) == 0 && nghttp2_session_want_write(handle) == 0
      && output.isEmpty
  }

  // MARK: Answers

  /// Answers a request; a stream that is gone is left alone.
  package func respond(_ id: RequestID, _ response: borrowing ServerResponse) {
    guard isOpen(id) else { return }
    let status = decimal(response.status)
    unsafe status.span.withUnsafeBufferPointer { status in
      unsafe response.fields.bytes.withUnsafeBufferPointer { values in
        let count = unsafe fill(status, response.fields, values)
        if response.body.isEmpty {
          unsafe nghttp2_submit_response(handle, id.stream, nameValues.baseAddress, count, nil)
          return
        }
        unsafe state.pointee.slots[id.slot].pointee.body = response.body
        unsafe state.pointee.slots[id.slot].pointee.bodySent = 0
        var provider = unsafe nghttp2_data_provider(
          source: nghttp2_data_source(fd: Int32(id.slot)), read_callback: readAnswer)
        unsafe nghttp2_submit_response(handle, id.stream, nameValues.baseAddress, count, &provider)
      }
    }
  }

  /// Sends an informational response before the answer (RFC 9110, 15.2); `status` is 100 to 199.
  package func inform(_ id: RequestID, status: Int) {
    guard isOpen(id) else { return }
    let digits = decimal(status)
    unsafe digits.span.withUnsafeBufferPointer { digits in
      unsafe nameValues[0] = pair(":status", digits, noCopyName)
      unsafe nghttp2_submit_headers(handle, 0, id.stream, nil, nameValues.baseAddress, 1, nil)
    }
  }

  /// Ends a stream with RST_STREAM (RFC 9113, 6.4).
  package func reset(_ id: RequestID, code: UInt32) {
    guard isOpen(id) else { return }
    unsafe nghttp2_submit_rst_stream(handle, 0, id.stream, code)
  }

  /// Says GOAWAY (RFC 9113, 6.8); streams at or below `lastStream` may still be answered.
  package func goaway(lastStream: Int32, code: UInt32, debug: [UInt8]) {
    unsafe nghttp2_submit_goaway(handle, 0, lastStream, code, debug, debug.count)
  }

  /// Sends a SETTINGS frame (RFC 9113, 6.5).
  package func submit(_ settings: [ServerSetting]) {
    let entries = settings.map { nghttp2_settings_entry(settings_id: $0.id, value: $0.value) }
    _ = unsafe nghttp2_submit_settings(handle, 0, entries, entries.count)
  }

  private func fill(
    _ status: UnsafeBufferPointer<UInt8>, _ fields: borrowing RequestFields,
    _ values: UnsafeBufferPointer<UInt8>
  ) -> Int {
    unsafe nameValues[0] = pair(":status", status, noCopyName)
    var start = 0
    for position in 0..<fields.count {
      let field = fields.list[position]
      let value = unsafe UnsafeBufferPointer(rebasing: values[start..<Int(field.end)])
      let flag = field.indexing == .incremental ? 0 : UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
      unsafe nameValues[1 + position] = pair(field.name, value, noCopyName | flag)
      start = Int(field.end)
    }
    return 1 + fields.count
  }

  private func decimal(_ status: Int) -> InlineArray<3, UInt8> {
    [
      UInt8(48 + status / 100 % 10), UInt8(48 + status / 10 % 10), UInt8(48 + status % 10),
    ]
  }

  // MARK: Bytes

  /// The bytes to write next, empty when there are none. The same bytes are returned until ``wrote(_:)``.
  package func bytesToWrite() -> UnsafeRawBufferPointer {
    unsafe output.bytes(of: isOver ? nil : handle) { _ in isOver = true }
  }

  package func wrote(_ count: Int) { output.wrote(count) }
}

/// One value of a SETTINGS frame (RFC 9113, 6.5.2).
package struct ServerSetting: Sendable, Equatable {
  let id: Int32
  package let value: UInt32

  /// SETTINGS_MAX_CONCURRENT_STREAMS.
  package static func maximumStreams(_ value: UInt32) -> ServerSetting {
    ServerSetting(id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: value)
  }

  /// SETTINGS_INITIAL_WINDOW_SIZE, at most 2^31 - 1.
  package static func initialWindow(_ value: UInt32) -> ServerSetting {
    ServerSetting(id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: value)
  }
}

/// The error code that a name of RFC 9113, 7 stands for; nil for a name that is none.
package func errorCode(named name: String) -> UInt32? {
  (0...13).first { errorName($0) == name }
}
