import CNghttp2

/// Gathers the frames that nghttp2 hands out, so that each write to TLS fills a record.
///
/// nghttp2's own bytes are good only until it is asked for more, and a frame seldom ends where a record does.
@safe
struct OutputBuffer: ~Copyable {
  /// What goes into one TLS record (RFC 8446, 5.1).
  static let size = 16_384

  private let storage: UnsafeMutableRawBufferPointer
  private var start = 0
  private var end = 0
  /// What nghttp2 handed out and did not fit.
  private var leftover = unsafe UnsafeRawBufferPointer(start: nil, count: 0)

  init() {
    unsafe storage = .allocate(byteCount: Self.size, alignment: 16)
  }

  deinit { unsafe storage.deallocate() }

  /// Whether every byte that it was given has been written.
  var isEmpty: Bool { unsafe start == end && leftover.isEmpty }

  /// The bytes to write next, empty when there are none; the same ones until ``wrote(_:)``.
  ///
  /// - Parameters:
  ///   - session: nil once the connection is over: what was taken before is still written.
  ///   - failed: is given nghttp2's error code.
  mutating func bytes(of session: OpaquePointer?, failed: (Int) -> Void) -> UnsafeRawBufferPointer {
    if start == end {
      (start, end) = (0, 0)
      while end < Self.size, unsafe fill(from: session, failed: failed) {}
    }
    return unsafe UnsafeRawBufferPointer(rebasing: storage[start..<end])
  }

  /// So many of the bytes are on their way.
  mutating func wrote(_ count: Int) { start += count }

  /// Takes the next piece; false when nghttp2 has none.
  private mutating func fill(from session: OpaquePointer?, failed: (Int) -> Void) -> Bool {
    if unsafe leftover.isEmpty {
      guard let session = unsafe session else { return false }
      var next: UnsafePointer<UInt8>?
      let count = unsafe nghttp2_session_mem_send(session, &next)
      if count < 0 { failed(count) }
      guard count > 0 else { return false }
      unsafe leftover = UnsafeRawBufferPointer(start: next, count: count)
    }
    let count = unsafe min(Self.size - end, leftover.count)
    unsafe UnsafeMutableRawBufferPointer(rebasing: storage[end..<end + count]).copyMemory(
      from: UnsafeRawBufferPointer(rebasing: leftover[..<count]))
    unsafe leftover = UnsafeRawBufferPointer(rebasing: leftover.dropFirst(count))
    end += count
    return true
  }
}
