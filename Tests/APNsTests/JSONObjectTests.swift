import Foundation
import Testing

@testable import APNs

@Suite struct JSONObjectTests {
  private func fault(_ text: [UInt8], maximumDepth: Int = 512) -> JSONFault? {
    var object = JSONObject()
    do throws(JSONFault) {
      try object.read(text.span, maximumDepth: maximumDepth)
      return nil
    } catch {
      return error
    }
  }

  private func fault(_ text: String) -> JSONFault? { fault(bytes(text)) }

  @Test(
    "objects of every grammar form are read",
    arguments: [
      "{}", " {} ", "\t\r\n{ }\n", "{\"\":0}", "{\"a\":-0}", "{\"a\":0.5e-10,\"b\":1E+9}",
      "{\"a\":[[],{},[{}],\"\",null,true,false,-1]}", "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\"}",
      "{\"\\ud83d\\ude00\":\"\\uD83D\\uDE00\"}", "{\"a\" : 1 , \"b\" : [ 1 , 2 ] }",
      "{\"é€😀\":\"\u{7F}\u{80}\u{7FF}\u{800}\u{FFFF}\u{10000}\u{10FFFF}\u{2028}\"}",
      "{\"long enough to take the eight byte steps\":\"and the value as well, 12345678\"}",
      "{\"a\":\"\\u0000\"}", "{\"a\":1e308,\"b\":1e-999}", "{\"a\":1790000000,\"b\":812345678.25}",
    ])
  func accepts(text: String) {
    #expect(fault(text) == nil)
  }

  @Test(
    "what is not one JSON object is refused, with the place",
    arguments: [
      ("", JSONFault.Problem.empty, 0), (" \n", .blank, 0), ("\u{FEFF}{}", .byteOrderMark, 0),
      ("[]", .notAnObject("an array"), 0), ("\"x\"", .notAnObject("a string"), 0),
      (" 12 ", .notAnObject("a number"), 1), ("null", .notAnObject("null"), 0),
      ("true", .notAnObject("true or false"), 0), ("{", .endsEarly, 1), ("{\"a\"", .endsEarly, 4),
      ("{\"a", .endsEarly, 3), ("{\"a\":", .endsEarly, 5), ("{\"a\":1", .endsEarly, 6),
      ("{\"a\":1,", .endsEarly, 7), ("{\"a\":\"\\", .endsEarly, 7), ("{\"a\":[1", .endsEarly, 7),
      ("{\"a\":1,}", .unexpected, 7), ("{,}", .unexpected, 1), ("{a:1}", .unexpected, 1),
      ("{'a':1}", .unexpected, 1), ("{\"a\" 1}", .unexpected, 5), ("{\"a\":[1,]}", .unexpected, 8),
      ("{\"a\":[1 2]}", .unexpected, 8), ("{\"a\":[1}}", .unexpected, 7), ("{\"a\":1]", .unexpected, 6),
      ("{\"a\":tru}", .unexpected, 5), ("{\"a\":nul", .unexpected, 5), ("{\"a\":NaN}", .unexpected, 5),
      ("{\"a\":+1}", .unexpected, 5), ("{\"a\":.5}", .unexpected, 5), ("hello", .unexpected, 0),
      ("{\"a\":01}", .malformedNumber, 5), ("{\"a\":-}", .malformedNumber, 5),
      ("{\"a\":1.}", .malformedNumber, 5), ("{\"a\":1e}", .malformedNumber, 5),
      ("{\"a\":1e+}", .malformedNumber, 5), ("{\"a\":-.1}", .malformedNumber, 5),
      ("{\"a\":1e999}", .numberTooLarge, 5), ("{\"a\":-1E+400}", .numberTooLarge, 5),
      ("{}{}", .trailing, 2), ("{} x", .trailing, 3), ("{\"a\":1}}", .trailing, 7), ("{}\0", .nul, 2),
      ("{\"a\":\"\n\"}", .controlCharacter, 6), ("{\"a\":\"\u{1F}\"}", .controlCharacter, 6),
      ("{\"a\":\"\\x41\"}", .unknownEscape, 7), ("{\"a\":\"\\u12g4\"}", .unknownEscape, 6),
      ("{\"a\":\"\\ud83d\"}", .loneSurrogate, 6), ("{\"a\":\"\\ude00\"}", .loneSurrogate, 6),
      ("{\"a\":\"\\ud83d\\ud83d\"}", .loneSurrogate, 6), ("{\"a\":\"\\ud83dx\"}", .loneSurrogate, 6),
      ("{\"a\":\"\0\"}", .nul, 6), ("\0{}", .nul, 0), ("{\u{A0}}", .unexpected, 1),
    ])
  func refuses(text: String, problem: JSONFault.Problem, offset: Int) {
    #expect(fault(text) == JSONFault(problem: problem, offset: offset))
  }

  @Test(
    "bytes that are no UTF-8 are refused inside strings and outside",
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xE0, 0x80, 0x80], [0xE2, 0x82],
      [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80],
      [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xFE], [0xE2, 0x28, 0xA1], [0xF0, 0x9F, 0x98],
    ] as [[UInt8]])
  func refusesNotUTF8(sequence: [UInt8]) {
    let inside = bytes("{\"a\":\"") + sequence + bytes("\"}")
    #expect(fault(inside) == JSONFault(problem: .notUTF8, offset: 6))
    let outside = bytes("{}") + sequence
    #expect(fault(outside) == JSONFault(problem: .notUTF8, offset: 2))
  }

  @Test("each scalar of Unicode is well-formed, each surrogate is not")
  func allScalars() {
    for value: UInt32 in 0...0x10FFFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let encoded = Array(String(scalar).utf8)
      if encoded.span.scalarLength(at: 0) != encoded.count { Issue.record("U+\(value)") }
    }
    for value: UInt32 in 0xD800...0xDFFF {
      let encoded: [UInt8] = [
        UInt8(0xE0 | value >> 12), UInt8(0x80 | value >> 6 & 0x3F), UInt8(0x80 | value & 0x3F),
      ]
      if encoded.span.scalarLength(at: 0) != nil { Issue.record("U+\(value)") }
    }
  }

  @Test("a run of plain bytes ends at the first byte that is not, wherever it stands")
  func plainRuns() {
    for length in 0...24 {
      for position in 0..<length {
        for byte in UInt8.min...UInt8.max {
          var text = [UInt8](repeating: UInt8(ascii: "x"), count: length)
          text[position] = byte
          let isPlain = byte >= 0x20 && byte < 0x80 && byte != 0x22 && byte != 0x5C
          let expected = isPlain ? length : position
          if text.span.plainRunEnd(from: 0) != expected { Issue.record("\(byte) at \(position)") }
        }
      }
    }
  }

  @Test("nesting is read up to the limit, refused above it, and 5,000 deep needs no stack")
  func depth() {
    func nested(_ depth: Int) -> [UInt8] {
      bytes(String(repeating: "{\"a\":", count: depth - 1) + "{}" + String(repeating: "}", count: depth - 1))
    }
    #expect(fault(nested(512)) == nil)
    #expect(fault(nested(511), maximumDepth: 511) == nil)
    #expect(fault(nested(512), maximumDepth: 511)?.problem == .tooDeep(511))
    #expect(fault(nested(513)) == JSONFault(problem: .tooDeep(512), offset: 512 * 5))
    #expect(fault(nested(5_000))?.problem == .tooDeep(512))
    #expect(fault([UInt8](repeating: UInt8(ascii: "["), count: 5_000))?.problem == .tooDeep(512))
    let mixed = String(repeating: "[{\"a\":", count: 255) + "0" + String(repeating: "}]", count: 255)
    #expect(fault("{\"x\":\(mixed)}") == nil)
    #expect(fault("{\"x\":\(mixed.replacingOccurrences(of: "0}", with: "0]"))}")?.problem == .unexpected)
  }

  @Test("top-level members are found by what their names say, with the ranges of their values")
  func members() throws {
    let text = bytes("{ \"\\u0061lert\" : {\"sound\":1} , \"b\\/\\n\\ud83d\\ude00\":[1, 2] ,\"c\":\"x\"}")
    var object = JSONObject()
    try object.read(text.span)
    #expect(object.members.count == 3)
    func value(_ name: StaticString) -> String? {
      object.member(name, in: text.span).map { String(decoding: text[$0.value], as: UTF8.self) }
    }
    #expect(value("alert") == "{\"sound\":1}")
    #expect(value("b/\n😀") == "[1, 2]")
    #expect(value("c") == "\"x\"")
    #expect(value("sound") == nil)
    #expect(value("\\u0061lert") == nil)
    #expect(object.contents == 1..<(text.count - 1))
  }

  @Test("a name given twice is found, however it is spelled; at different depths it is none")
  func repeated() throws {
    var object = JSONObject()
    for (text, expected) in [
      ("{\"a\":1,\"b\":2,\"a\":3}", true), ("{\"alert\":1,\"\\u0061lert\":2}", true),
      ("{\"\\u0061\":1,\"\\u0061\":2}", true), ("{\"a\":1,\"b\":{\"a\":2},\"c\":[{\"a\":1}]}", false),
      ("{\"\":1,\"\":2}", true), ("{\"a\":1,\"A\":2}", false), ("{\"a\\\"\":1,\"a\":2}", false),
    ] {
      let text = bytes(text)
      try object.read(text.span)
      #expect((object.repeated(in: text.span) != nil) == expected)
    }
  }

  @Test("a hundred thousand members are checked in little time, and no fault is missed behind them")
  func manyMembers() throws {
    let list = (0..<100_000).map { "\"\($0)\":{\"x\":[0]}" }.joined(separator: ",")
    var object = JSONObject()
    let good = bytes("{\(list)}")
    try object.read(good.span)
    #expect(object.members.count == 1300)
    #expect(object.repeated(in: good.span) == nil)
    #expect(fault("{\(list),}")?.problem == .unexpected)
  }

  @Test("whatever is accepted after random damage, Foundation accepts too")
  func damage() throws {
    var generator = SeededGenerator(seed: 7)
    let alphabet = bytes("{}[]\",:\\/u0189eE+-.truefalsn \n\t") + [0, 0x1F, 0x80, 0xC3, 0xA9, 0xED, 0xFF]
    var accepted = 0
    for _ in 0..<20_000 {
      var text = RandomJSON.object(depth: 3, using: &generator)
      for _ in 0..<Int.random(in: 0...2, using: &generator) where !text.isEmpty {
        let position = Int.random(in: 0..<text.count, using: &generator)
        let byte = alphabet.randomElement(using: &generator) ?? 0
        switch Int.random(in: 0..<3, using: &generator) {
        case 0: text[position] = byte
        case 1: text.insert(byte, at: position)
        default: text.remove(at: position)
        }
      }
      guard fault(text) == nil else { continue }
      accepted += 1
      let read = try? JSONSerialization.jsonObject(with: Data(text))
      #expect(read is NSDictionary, "\(text)")
    }
    #expect(accepted > 5_000)
  }

  @Test("every prefix of an object is refused")
  func prefixes() {
    var generator = SeededGenerator(seed: 8)
    for _ in 0..<200 {
      let text = RandomJSON.object(depth: 3, using: &generator)
      let closing = text.lastIndex(of: UInt8(ascii: "}")) ?? 0
      for end in 0...closing where fault(Array(text[..<end])) == nil {
        Issue.record("\(end) bytes of \(text)")
      }
    }
  }
}
