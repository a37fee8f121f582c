/// One request while it is staged: storage of a slot that is used again, emptied before each use.
///
/// `:method POST`, `:scheme` and `:authority` are the connection's. Values are sent as they are: the caller
/// answers for their being legal (RFC 9113, 8.2.1).
package struct Request {
  /// The value of `:path`; sent without indexing.
  package var path: [UInt8] = []
  package var body: [UInt8] = []
  /// The header fields, sent in this order after the pseudo-header fields.
  package var fields = RequestFields()

  package init() {}

  /// Empties the request and keeps its memory.
  package mutating func removeAll() {
    path.removeAll(keepingCapacity: true)
    body.removeAll(keepingCapacity: true)
    fields.removeAll()
  }
}

/// How a header field goes into HPACK (RFC 7541, 6.2), as near as nghttp2 allows.
///
/// nghttp2 never indexes `authorization` and never enters `:path` into the table, whatever is asked. The
/// literal that it can be asked for is the never-indexed one (6.2.3), which differs from the one without
/// indexing (6.2.2) in one bit that only intermediaries heed.
package enum FieldIndexing: UInt8, Sendable {
  /// Entered into the dynamic table: for values that repeat.
  case incremental
  /// A literal; only the first on a connection is entered, so that later ones name it by index.
  case without
  /// Always a literal.
  case never
}

/// A request's header fields: all values in one run of bytes, and what is known of each in place, so that a
/// request is no more memory to touch than it has to be.
package struct RequestFields {
  /// The most fields that a request may have.
  package static let limit = 16

  struct Field {
    var name: StaticString = ""
    /// Where the value ends in `bytes`; it starts where the previous one ends.
    var end: Int32 = 0
    var indexing = FieldIndexing.incremental
  }

  private(set) var bytes: [UInt8] = []
  private(set) var list = InlineArray<16, Field>(repeating: Field())
  package private(set) var count = 0

  /// The fields as text, for tests and for people.
  package var values: [(name: String, value: String)] {
    var start = 0
    return (0..<count).map { position in
      let field = list[position]
      defer { start = Int(field.end) }
      return (field.name.description, String(decoding: bytes[start..<Int(field.end)], as: UTF8.self))
    }
  }

  package init() {}

  /// Appends a field, ``limit`` at most; `name` is lower case (RFC 9113, 8.2.1).
  package mutating func append(_ name: StaticString, _ value: [UInt8], _ indexing: FieldIndexing) {
    bytes.append(contentsOf: value)
    end(name, indexing)
  }

  /// Appends a field whose value is borrowed, for example from a database's column.
  package mutating func append(_ name: StaticString, _ value: Span<UInt8>, _ indexing: FieldIndexing) {
    unsafe value.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    end(name, indexing)
  }

  /// Appends a field with a value that is part of the program.
  package mutating func append(_ name: StaticString, _ value: StaticString, _ indexing: FieldIndexing) {
    unsafe bytes.append(
      contentsOf: UnsafeBufferPointer(start: value.utf8Start, count: value.utf8CodeUnitCount))
    end(name, indexing)
  }

  /// Appends a field with a decimal number.
  package mutating func append(_ name: StaticString, _ value: Int64, _ indexing: FieldIndexing) {
    if value < 0 { bytes.append(UInt8(ascii: "-")) }
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var first = digits.count
    var rest = value.magnitude
    repeat {
      first -= 1
      digits[first] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    } while rest > 0
    unsafe digits.span.extracting(first...).withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    end(name, indexing)
  }

  /// Appends a field whose value `write` appends to the bytes it is given; it must not touch those before.
  package mutating func append(
    _ name: StaticString, _ indexing: FieldIndexing, _ write: (inout [UInt8]) -> Void
  ) {
    write(&bytes)
    end(name, indexing)
  }

  /// The bytes appended since the last field are this one's value.
  private mutating func end(_ name: StaticString, _ indexing: FieldIndexing) {
    precondition(count < Self.limit, "too many header fields")
    list[count] = Field(name: name, end: Int32(bytes.count), indexing: indexing)
    count += 1
  }

  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
    count = 0
  }
}
