import CNghttp2

/// The callbacks of a server's nghttp2: each unwraps what C gives, and makes one change to the state.
@safe
enum ServerCallbacks {
  /// A set for `nghttp2_session_server_new2`, which copies it; the caller deletes it.
  static func make() -> OpaquePointer? {
    var callbacks: OpaquePointer?
    guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
    unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, onBegin)
    unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onClose)
    return unsafe callbacks
  }
}

private func state(_ user: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<ServerState>? {
  unsafe user?.assumingMemoryBound(to: ServerState.self)
}

private func slot(_ session: OpaquePointer?, _ id: Int32) -> Int? {
  guard let data = unsafe nghttp2_session_get_stream_user_data(session, id) else { return nil }
  return Int(bitPattern: data) - 1
}

private func onBegin(
  session: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame = unsafe frame, let state = unsafe state(user) else { return 0 }
  // A trailer begins a second block on a stream: nothing of it is kept.
  unsafe state.pointee.receiving = -1
  guard unsafe UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue,
    unsafe frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST
  else { return 0 }
  let id = unsafe frame.pointee.hd.stream_id
  let index = unsafe state.pointee.open(id)
  unsafe nghttp2_session_set_stream_user_data(session, id, SessionCallbacks.userData(index))
  return 0
}

private func onHeader(
  session: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, name: UnsafePointer<UInt8>?, nameCount: Int,
  value: UnsafePointer<UInt8>?, valueCount: Int, flags: UInt8, user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let state = unsafe state(user) else { return 0 }
  let index = unsafe state.pointee.receiving
  guard index >= 0 else { return 0 }
  unsafe state.pointee.slots[index].pointee.request.append(
    UnsafeBufferPointer(start: name, count: nameCount), UnsafeBufferPointer(start: value, count: valueCount))
  return 0
}

private func onData(
  session: OpaquePointer?, flags: UInt8, stream: Int32, bytes: UnsafePointer<UInt8>?, count: Int,
  user: UnsafeMutableRawPointer?
) -> Int32 {
  if let state = unsafe state(user), let slot = unsafe slot(session, stream) {
    unsafe state.pointee.slots[slot].pointee.request.appendBody(
      UnsafeBufferPointer(start: bytes, count: count))
  }
  return 0
}

private func onFrame(
  session: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame = unsafe frame, let state = unsafe state(user) else { return 0 }
  let header = unsafe frame.pointee.hd
  switch UInt32(header.type) {
  case NGHTTP2_HEADERS.rawValue, NGHTTP2_DATA.rawValue:
    guard header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0,
      let slot = unsafe slot(session, header.stream_id)
    else { return 0 }
    unsafe state.pointee.completed(slot)
  case NGHTTP2_GOAWAY.rawValue: unsafe state.pointee.isGoing = true
  default: break
  }
  return 0
}

private func onClose(
  session: OpaquePointer?, stream: Int32, code: UInt32, user: UnsafeMutableRawPointer?
) -> Int32 {
  if let state = unsafe state(user), let slot = unsafe slot(session, stream) {
    unsafe state.pointee.close(slot)
  }
  return 0
}

/// Hands nghttp2 the next part of an answer's body; the source is the slot.
func readAnswer(
  session: OpaquePointer?, stream: Int32, buffer: UnsafeMutablePointer<UInt8>?, count: Int,
  flags: UnsafeMutablePointer<UInt32>?, source: UnsafeMutablePointer<nghttp2_data_source>?,
  user: UnsafeMutableRawPointer?
) -> Int {
  guard let buffer = unsafe buffer, let flags = unsafe flags, let source = unsafe source,
    let state = unsafe state(user)
  else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
  let (copied, isWhole) = unsafe state.pointee.copyBody(
    Int(source.pointee.fd), into: UnsafeMutableRawBufferPointer(start: buffer, count: count))
  if isWhole { unsafe flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
  return copied
}
