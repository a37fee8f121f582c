/// A request as a server received it: storage of a slot that is used again, emptied before each use.
///
/// All names and values stand in one run of bytes, so that a request is no more memory to touch than it has to
/// be. nghttp2 has checked names and values (RFC 9113, 8.2.1 and 8.3.1): the pseudo-header fields are complete
/// and come first, and each once.
package struct ServerRequest {
  /// The most bytes of a body that are kept.
  package static let bodyLimit = 65_536

  /// Where a field's name and value are in ``bytes``.
  package struct Field {
    package var name: Range<Int>
    package var value: Range<Int>
  }

  package private(set) var bytes: [UInt8] = []
  package private(set) var fields: [Field] = []
  /// The first ``bodyLimit`` bytes of the body.
  package private(set) var body: [UInt8] = []
  /// The length of the whole body.
  package private(set) var bodyCount = 0

  package init() {}

  mutating func append(_ name: UnsafeBufferPointer<UInt8>, _ value: UnsafeBufferPointer<UInt8>) {
    let start = bytes.count
    unsafe bytes.append(contentsOf: name)
    unsafe bytes.append(contentsOf: value)
    let middle = start + name.count
    fields.append(Field(name: start..<middle, value: middle..<(middle + value.count)))
  }

  mutating func appendBody(_ part: UnsafeBufferPointer<UInt8>) {
    bodyCount += part.count
    unsafe body.append(contentsOf: part.prefix(Self.bodyLimit - body.count))
  }

  mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    fields.removeAll(keepingCapacity: true)
    if body.capacity > 16_384 { body = [] } else { body.removeAll(keepingCapacity: true) }
    bodyCount = 0
  }
}

/// Names a request while its stream lives: the slot may serve another later, and then this one is stale.
package struct RequestID: Hashable, Sendable {
  let slot: Int
  /// The stream's number (RFC 9113, 5.1.1).
  package let stream: Int32
}
