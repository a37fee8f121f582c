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
    for (index, field) in request.fields.enumerated() {
      let isFirst = set(field.name, field.value)
      if !isFirst || (isOther(field.name) && repeats(index, request.fields)) { hasDuplicates = true }
    }
  }

  /// Keeps a field that APNs knows; false when it is there already.
  private mutating func set(_ name: Range<Int>, _ value: Range<Int>) -> Bool {
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
    default: break
    }
    return true
  }

  private static func set(_ field: inout Range<Int>?, _ value: Range<Int>) -> Bool {
    if field != nil { return false }
    field = value
    return true
  }

  /// Not a pseudo-header field, and not one of those that `set` looks after. A cookie may come in pieces (RFC
  /// 9113, 8.2.3).
  private func isOther(_ name: Range<Int>) -> Bool {
    bytes[name.lowerBound] != UInt8(ascii: ":") && !starts(with: "apns-", name)
      && !holds("authorization", name) && !holds("cookie", name)
  }

  private func repeats(_ index: Int, _ fields: [ServerRequest.Field]) -> Bool {
    let name = fields[index].name
    return fields[..<index].contains { $0.name.count == name.count && bytes[$0.name] == bytes[name] }
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

  /// The row of the table for the push type, or nil: one row stands for all three kinds of `liveactivity`.
  var pushType: PushType? {
    guard let type else { return nil }
    // By index: a row that is only looked at is not copied.
    for index in PushType.table.indices where holds(PushType.table[index].header, type) {
      return PushType.table[index]
    }
    return nil
  }
}
