/// What APNs said to a push: data, whatever it says. Silence is an answer without a status.
package struct Answer: Equatable, Sendable {
  /// The most bytes of a body that are looked at; the caller passes nil for a longer one.
  package static let mostBodyBytes = 64 * 1024
  /// Scalars are counted, not graphemes: one grapheme may be endless.
  private static let mostReasonScalars = 1024

  /// The first final status, 200 or more; nil if none came.
  package let status: Int?
  /// The reason as it came, at most 1,024 Unicode scalars of it; nil if there was none to
  /// read.
  package let reason: String?
  /// Apple's `timestamp` of a 410, milliseconds since 1970.
  package let timestampMilliseconds: Int64?
  /// The value of `apns-unique-id`, which only the sandbox sends.
  package let uniqueID: String?

  /// Reads an answer; no body is too odd (Apple, "Handling notification responses from APNs",
  /// has the shape of a good one).
  ///
  /// - Parameters:
  ///   - status: the first final status, nil if none came.
  ///   - body: the whole body; nil if it is missing, was cut off or is longer than `mostBodyBytes`.
  ///   - uniqueID: the header `apns-unique-id`, if there was one.
  package init(status: Int?, body: Span<UInt8>?, uniqueID: Span<UInt8>? = nil) {
    self.status = status
    var reason: String?
    var timestamp: Int64?
    if status != nil, let body, body.count > 0, body.count <= Answer.mostBodyBytes {
      var object = JSONObject()
      if (try? object.read(body)) != nil {
        if let member = object.member("reason", in: body) {
          reason = Answer.text(body, member.value)
        }
        if let member = object.member("timestamp", in: body) {
          timestamp = Answer.milliseconds(body, member.value)
        }
      }
    }
    self.reason = reason
    timestampMilliseconds = timestamp
    if let uniqueID {
      self.uniqueID = Answer.printable(
        uniqueID.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })
    } else {
      self.uniqueID = nil
    }
  }

  private static func text(_ body: Span<UInt8>, _ value: Range<Int>) -> String? {
    guard body[value.lowerBound] == JSONByte.quote else { return nil }
    let inside = (value.lowerBound + 1)..<(value.upperBound - 1)
    let text = String(decoding: JSONToken.decoded(body, inside), as: UTF8.self).unicodeScalars
    return text.isEmpty ? nil : String(text.prefix(mostReasonScalars))
  }

  /// At most 128 characters, control characters left out; nil for nothing.
  ///
  /// Scalars are counted, not graphemes: one grapheme may be endless.
  private static func printable(_ text: String) -> String? {
    var result = String.UnicodeScalarView()
    var count = 0
    for scalar in text.unicodeScalars where scalar.properties.generalCategory != .control {
      result.append(scalar)
      count += 1
      if count == 128 { break }
    }
    return count == 0 ? nil : String(result)
  }

  /// A whole number that is not negative, also as a string or with a fraction of zeros' place; nil for
  /// anything else.
  private static func milliseconds(_ body: Span<UInt8>, _ value: Range<Int>) -> Int64? {
    var range = value
    if body[range.lowerBound] == JSONByte.quote {
      range = (range.lowerBound + 1)..<(range.upperBound - 1)
    }
    var result: Int64 = 0
    guard !range.isEmpty else { return nil }
    for index in range {
      let byte = body[index]
      // The fraction of a millisecond says nothing.
      if byte == UInt8(ascii: "."), index > range.lowerBound { return result }
      guard JSONByte.isDigit(byte) else { return nil }
      let (product, over) = result.multipliedReportingOverflow(by: 10)
      let (sum, overSum) = product.addingReportingOverflow(Int64(byte - 0x30))
      guard !over, !overSum else { return nil }
      result = sum
    }
    return result
  }
}
