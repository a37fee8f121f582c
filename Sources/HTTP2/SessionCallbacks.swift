import CNghttp2
import Glibc

/// The callbacks of nghttp2: each unwraps what C gives, and makes one change to the state.
@safe
enum SessionCallbacks {
  /// A set for `nghttp2_session_client_new3`, which copies it; the caller deletes it.
  static func make() -> OpaquePointer? {
    var callbacks: OpaquePointer?
    guard unsafe nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
    unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks, onHeader)
    unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, onData)
    unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, onFrame)
    unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, onClose)
    unsafe nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, beforeSend)
    unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, onNotSent)
    return unsafe callbacks
  }

  /// A slot as nghttp2's stream user data, which is a pointer: nil is no slot.
  static func userData(_ slot: Int) -> UnsafeMutableRawPointer? {
    unsafe UnsafeMutableRawPointer(bitPattern: slot + 1)
  }
}

private func slot(_ session: OpaquePointer?, _ id: Int32) -> Int? {
  guard let data = unsafe nghttp2_session_get_stream_user_data(session, id) else { return nil }
  return Int(bitPattern: data) - 1
}

private func state(_ user: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<SessionState>? {
  unsafe user?.assumingMemoryBound(to: SessionState.self)
}

private func onHeader(
  session: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, name: UnsafePointer<UInt8>?, nameCount: Int,
  value: UnsafePointer<UInt8>?, valueCount: Int, flags: UInt8, user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame = unsafe frame, let name = unsafe name, let value = unsafe value,
    let state = unsafe state(user)
  else { return 0 }
  if unsafe nameCount == 7 && name[0] == UInt8(ascii: ":") {
    // ":status", the only pseudo-header field of a response; nghttp2 lets nothing but three digits through.
    guard valueCount == 3, let slot = unsafe slot(session, frame.pointee.hd.stream_id) else { return 0 }
    let digits = unsafe (Int32(value[0]) - 48, Int32(value[1]) - 48, Int32(value[2]) - 48)
    unsafe state.pointee.receivedStatus(slot, digits.0 * 100 + digits.1 * 10 + digits.2)
  } else if let capture = unsafe state.pointee.capture, nameCount == capture.utf8CodeUnitCount,
    unsafe memcmp(name, capture.utf8Start, nameCount) == 0,
    let slot = unsafe slot(session, frame.pointee.hd.stream_id)
  {
    unsafe state.pointee.receivedCapture(slot, UnsafeBufferPointer(start: value, count: valueCount))
  }
  return 0
}

private func onData(
  session: OpaquePointer?, flags: UInt8, stream: Int32, bytes: UnsafePointer<UInt8>?, count: Int,
  user: UnsafeMutableRawPointer?
) -> Int32 {
  if let state = unsafe state(user), let slot = unsafe slot(session, stream) {
    unsafe state.pointee.receivedBody(slot, UnsafeBufferPointer(start: bytes, count: count))
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
    // The answer is whole. Where the request is not, nghttp2 would go on sending it: take the stream back.
    let unfinished = unsafe state.pointee.completed(slot)
    if unfinished {
      unsafe nghttp2_submit_rst_stream(session, 0, header.stream_id, NGHTTP2_CANCEL.rawValue)
    }
  case NGHTTP2_SETTINGS.rawValue where header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0:
    let limit = unsafe nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    unsafe state.pointee.hasSettings = true
    unsafe state.pointee.streamLimit = Int(limit)
  case NGHTTP2_GOAWAY.rawValue:
    let goaway = unsafe frame.pointee.goaway
    let debug = unsafe UnsafeBufferPointer(start: goaway.opaque_data, count: goaway.opaque_data_len)
    unsafe state.pointee.goaway = SessionState.Goaway(
      lastStreamID: goaway.last_stream_id, code: goaway.error_code,
      debug: debug.isEmpty ? state.pointee.goaway?.debug : printable(debug))
  case NGHTTP2_PING.rawValue where header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0:
    var data = unsafe frame.pointee.ping.opaque_data
    unsafe state.pointee.answeredPing = withUnsafeBytes(of: &data) {
      unsafe $0.loadUnaligned(as: UInt64.self)
    }
  default: break
  }
  return 0
}

private func onClose(
  session: OpaquePointer?, stream: Int32, code: UInt32, user: UnsafeMutableRawPointer?
) -> Int32 {
  if let state = unsafe state(user), let slot = unsafe slot(session, stream) {
    unsafe state.pointee.closed(slot, code)
  }
  return 0
}

private func beforeSend(
  session: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame = unsafe frame, let state = unsafe state(user) else { return 0 }
  switch unsafe UInt32(frame.pointee.hd.type) {
  case NGHTTP2_HEADERS.rawValue:
    unsafe state.pointee.framedThrough = max(state.pointee.framedThrough, frame.pointee.hd.stream_id)
  case NGHTTP2_GOAWAY.rawValue where unsafe frame.pointee.goaway.error_code != 0:
    let goaway = unsafe frame.pointee.goaway
    let debug = unsafe UnsafeBufferPointer(start: goaway.opaque_data, count: goaway.opaque_data_len)
    unsafe state.pointee.localGoaway =
      debug.isEmpty ? errorName(goaway.error_code) : "\(errorName(goaway.error_code)): \(printable(debug))"
  default: break
  }
  return 0
}

private func onNotSent(
  session: OpaquePointer?, frame: UnsafePointer<nghttp2_frame>?, error: Int32, user: UnsafeMutableRawPointer?
) -> Int32 {
  guard let frame = unsafe frame, let state = unsafe state(user),
    unsafe UInt32(frame.pointee.hd.type) == NGHTTP2_HEADERS.rawValue,
    let slot = unsafe state.pointee.slot(ofStream: frame.pointee.hd.stream_id)
  else { return 0 }
  // GOAWAY came between submitting and framing: the stream never was.
  unsafe state.pointee.closed(slot, NGHTTP2_REFUSED_STREAM.rawValue)
  return 0
}

/// Hands nghttp2 the next part of a request's body; the source is the slot.
func readBody(
  session: OpaquePointer?, stream: Int32, buffer: UnsafeMutablePointer<UInt8>?, count: Int,
  flags: UnsafeMutablePointer<UInt32>?, source: UnsafeMutablePointer<nghttp2_data_source>?,
  user: UnsafeMutableRawPointer?
) -> Int {
  guard let buffer = unsafe buffer, let flags = unsafe flags, let source = unsafe source,
    let state = unsafe state(user)
  else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
  let slot = unsafe Int(source.pointee.fd)
  let (copied, isWhole) = unsafe state.pointee.copyBody(
    slot, into: UnsafeMutableRawBufferPointer(start: buffer, count: count))
  if isWhole { unsafe flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue }
  return copied
}
