import APNs
import Glibc
import HTTP2

/// A request as APNs reads it: the fields it knows, as ranges of the request's own bytes.
struct Push {
  let bytes: [UInt8]
  let body: [UInt8]
  /// The length of the whole body, of which ``body`` keeps only the first 64 KiB.
  let bodyCount: Int

  private(set) var method = 0..<0
  private(set) var path = 0..<0
  private(set) var authorization: Range<Int>?
  private(set) var id: Range<Int>?
  private(set) var topic: Range<Int>?
  private(set) var type: Range<Int>?
  private(set) var priority: Range<Int>?
  private(set) var expiration: Range<Int>?
  private(set) var collapseID: Range<Int>?
  /// Any field came twice.
  private(set) var hasDuplicates = false

  static let pathPrefix: StaticString = "/3/device/"

  init(_ request: borrowing ServerRequest) {
    bytes = request.bytes
    body = request.body
    bodyCount = request.bodyCount
    let fields = request.fields
    for index in fields.indices {
      switch set(fields[index].name, fields[index].value) {
      case .kept: break
      case .repeated: hasDuplicates = true
      case .other: if repeats(index, fields) { hasDuplicates = true }
      }
    }
  }

  private enum Kept { case kept, repeated, other }

  /// Keeps a field that APNs knows.
  private mutating func set(_ name: Range<Int>, _ value: Range<Int>) -> Kept {
    switch name.count {
    case 5 where holds(":path", name): path = value
    case 7 where holds(":method", name): method = value
    case 7 where holds("apns-id", name): return Self.set(&id, value)
    case 10 where holds("apns-topic", name): return Self.set(&topic, value)
    case 13 where holds("authorization", name): return Self.set(&authorization, value)
    case 13 where holds("apns-priority", name): return Self.set(&priority, value)
    case 14 where holds("apns-push-type", name): return Self.set(&type, value)
    case 15 where holds("apns-expiration", name): return Self.set(&expiration, value)
    case 16 where holds("apns-collapse-id", name): return Self.set(&collapseID, value)
    // A cookie may come in pieces (RFC 9113, 8.2.3).
    case 6 where holds("cookie", name): break
    default: return .other
    }
    return .kept
  }

  private static func set(_ field: inout Range<Int>?, _ value: Range<Int>) -> Kept {
    if field != nil { return .repeated }
    field = value
    return .kept
  }

  private func repeats(_ index: Int, _ fields: [ServerRequest.Field]) -> Bool {
    let name = fields[index].name
    for earlier in 0..<index
    where fields[earlier].name.count == name.count && bytes[fields[earlier].name] == bytes[name] {
      return true
    }
    return false
  }

  /// Whether the bytes of `range` are exactly `text`.
  func holds(_ text: StaticString, _ range: Range<Int>) -> Bool {
    guard range.count == text.utf8CodeUnitCount else { return false }
    return starts(with: text, range)
  }

  /// Whether the bytes of `range` are exactly `other`.
  func holds(_ other: [UInt8], _ range: Range<Int>) -> Bool {
    guard range.count == other.count else { return false }
    return bytes.withUnsafeBytes { bytes in
      other.withUnsafeBytes { other in
        guard let mine = bytes.baseAddress, let start = other.baseAddress else { return true }
        return memcmp(mine + range.lowerBound, start, other.count) == 0
      }
    }
  }

  /// Whether the bytes of `range` begin with `text`.
  func starts(with text: StaticString, _ range: Range<Int>) -> Bool {
    guard range.count >= text.utf8CodeUnitCount else { return false }
    let span = bytes.span
    return text.withUTF8Buffer { expected in
      for index in 0..<expected.count where span[range.lowerBound + index] != expected[index] { return false }
      return true
    }
  }

  /// What stands behind `/3/device/`; nil for another path.
  var token: Range<Int>? {
    guard starts(with: Self.pathPrefix, path) else { return nil }
    return (path.lowerBound + Self.pathPrefix.utf8CodeUnitCount)..<path.upperBound
  }

  func text(_ range: Range<Int>?) -> String? {
    range.map { String(decoding: bytes[$0], as: UTF8.self) }
  }

  /// A decimal number without sign; nil for anything else.
  func number(_ range: Range<Int>) -> Int64? {
    guard (1...18).contains(range.count) else { return nil }
    var value: Int64 = 0
    for index in range {
      guard (0x30...0x39).contains(bytes[index]) else { return nil }
      value = value * 10 + Int64(bytes[index] - 0x30)
    }
    return value
  }

  /// Which row of `PushType.table` the push type names, or nil: the first stands for all three of
  /// `liveactivity`.
  var typeIndex: Int? {
    guard let type else { return nil }
    return Self.typeHeaders.indices.first { holds(Self.typeHeaders[$0], type) }
  }

  private static let typeHeaders = PushType.table.map(\.header)
}
