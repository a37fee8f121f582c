import Foundation
import Testing

@testable import APNs

@Suite struct PayloadTextTests {
  private func escaped(_ text: [UInt8]) throws(PayloadFault) -> String {
    var output: [UInt8] = []
    try PayloadText.append(text.span, of: .title, to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  @Test("each scalar comes back from Foundation as it went in, and the length is as foretold")
  func everyScalar() throws {
    var chunk = ""
    for value: UInt32 in 1...0x10FFFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      chunk.unicodeScalars.append(scalar)
      guard value % 0x4000 == 0x3FFF else { continue }
      let source = Array(chunk.utf8)
      let json = try escaped(source)
      #expect(json.utf8.count == source.reduce(0) { $0 + PayloadText.escapedLength($1) })
      let read = try JSONSerialization.jsonObject(with: Data("[\"\(json)\"]".utf8)) as? [String]
      #expect(read?.first.map { Array($0.utf8) } == source)
      chunk = ""
    }
  }

  @Test("control characters, quotation marks and solidi are escaped, nothing else")
  func escapes() throws {
    #expect(try escaped(bytes("a\"b\\c/d")) == "a\\\"b\\\\c/d")
    #expect(try escaped(bytes("\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}")) == "\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}")
    #expect(try escaped(bytes("👨‍👩‍👧‍👦 क्षि \u{2028}")) == "👨‍👩‍👧‍👦 क्षि \u{2028}")
  }

  @Test(
    "a NUL or a byte that is no UTF-8 is named with its column and place",
    arguments: ["title", "subtitle", "body", "conversation_id"])
  func unsendable(column: String) {
    func words(_ value: [UInt8]) -> String? {
      var columns = Columns(title: "x")
      switch column {
      case "title": columns.title = value
      case "subtitle": columns.subtitle = value
      case "body": columns.body = value
      default: columns.conversationID = value
      }
      return columns.words
    }
    #expect(words(bytes("ab\0cd")) == "\(column) has a NUL at byte 2")
    #expect(words([0x61, 0xED, 0xA0, 0x80]) == "\(column) is not UTF-8 at byte 1")
    #expect(words(bytes("12345678é") + [0xC3]) == "\(column) is not UTF-8 at byte 10")
  }

  @Test("a huge body is checked to its end before it is cut")
  func hugeBody() {
    var columns = Columns(title: "x")
    columns.body = [UInt8](repeating: 0x61, count: 100_000) + [0]
    #expect(columns.words == "body has a NUL at byte 100000")
    columns.body = [UInt8](repeating: 0x61, count: 100_000) + [0xFF]
    #expect(columns.words == "body is not UTF-8 at byte 100000")
    for start in 0..<8 {
      columns.body = [UInt8](repeating: 0x61, count: start) + [UInt8](repeating: 0x80, count: 10_000)
      #expect(columns.words == "body is not UTF-8 at byte \(start)")
      columns.body = [UInt8](repeating: 0x61, count: 4_090 + start) + [UInt8](repeating: 0x80, count: 100)
      #expect(columns.words == "body is not UTF-8 at byte \(4_090 + start)")
    }
  }
}
