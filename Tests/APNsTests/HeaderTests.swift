import Foundation
import OpenSSL
import Testing

@testable import APNs

@Suite struct CollapseIDTests {
  private func value(_ id: [UInt8]) throws -> String {
    var hasher = try SHA256Hasher()
    var output: [UInt8] = []
    CollapseID.append(id.span, to: &output, hasher: &hasher)
    return String(decoding: output, as: UTF8.self)
  }

  @Test("1 to 64 printable bytes go as they are")
  func asIs() throws {
    for id in ["a", "turn 12/e", String(repeating: "~", count: 64)] {
      #expect(try value(bytes(id)) == id)
    }
    #expect(try value([]) == "")
  }

  @Test(
    "anything else is replaced by the digits of its SHA-256",
    arguments: [
      (String(repeating: "a", count: 65), "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0"),
      ("a\r\nb", "18745f36a05e29072709042d6062ce54f1b08ff36c27ba80c39f81fb010c8ce2"),
    ])
  func replaced(id: String, digest: String) throws {
    #expect(try value(bytes(id)) == digest)
  }

  @Test("ids that a header would change or break are replaced, each by another value")
  func distinct() throws {
    let ids = ["a", " a", "a ", "a\n", "a\u{7F}", "é", "a\0", String(repeating: "é", count: 33)]
    let values = try ids.map { try value(bytes($0)) }
    #expect(Set(values).count == ids.count)
    #expect(values.dropFirst().allSatisfy { $0.count == 64 })
  }
}

@Suite struct TopicTests {
  private func fault(_ topic: [UInt8]) -> HeaderFault? { Topic.fault(topic.span) }

  @Test("a bundle id is 1 to 255 printable bytes without spaces")
  func faults() {
    #expect(fault(bytes("com.example.App-1")) == nil)
    #expect(fault([UInt8](repeating: 0x61, count: 255)) == nil)
    #expect(fault([])?.words == "topic is 0 bytes, wanted 1 to 255")
    #expect(fault([UInt8](repeating: 0x61, count: 256)) != nil)
    for bad in ["a b", "a\n", "a\r", "\ta", "é", "a\0", "a\u{7F}"] {
      #expect(fault(bytes(bad)) != nil)
    }
  }

  @Test("the suffix is written once, also if the column has it already")
  func suffix() {
    func topic(_ base: String, _ kind: Kind) -> String {
      var output: [UInt8] = []
      Topic.append(bytes(base).span, for: kind.pushType, to: &output)
      return String(decoding: output, as: UTF8.self)
    }
    #expect(topic("com.a", .alert) == "com.a")
    #expect(topic("com.a", .voip) == "com.a.voip")
    #expect(topic("com.a.voip", .voip) == "com.a.voip")
    #expect(topic("com.a", .activityEnd) == "com.a.push-type.liveactivity")
    #expect(topic("com.a.push-type.liveactivity", .activityEnd) == "com.a.push-type.liveactivity")
    #expect(topic(".voip", .voip) == ".voip.voip")
  }
}

@Suite struct DeviceTokenTests {
  private func fault(_ token: String) -> HeaderFault? { DeviceToken.fault(bytes(token).span) }

  @Test("a token is lower-case hexadecimal, even, 2 to 400 digits")
  func forms() {
    for good in ["00", "0a", String(repeating: "af", count: 32), String(repeating: "09", count: 200)] {
      #expect(fault(good) == nil)
    }
    for bad in [
      "", "0", "000", "AF", "0g", "00\n", "(null)", "<1e21 22ba>", "../..", "00/0", "0\0", "é",
      String(repeating: "0", count: 402),
    ] {
      let fault = fault(bad)
      #expect(fault != nil, "\(bad)")
      #expect(bad.count < 4 || fault?.words.contains(bad) != true)
    }
  }
}

@Suite struct PushIDTests {
  @Test("an id is a UUID of version 4 in lower case, whatever bits it is made of")
  func form() throws {
    #expect(PushID(randomHigh: 0, randomLow: 0).text == "00000000-0000-4000-8000-000000000000")
    #expect(
      PushID(randomHigh: .max, randomLow: .max).text == "ffffffff-ffff-4fff-bfff-ffffffffffff")
    #expect(
      PushID(randomHigh: 0x0123_4567_89AB_CDEF, randomLow: 0x0123_4567_89AB_CDEF).text
        == "01234567-89ab-4def-8123-456789abcdef")
    var generator = SeededGenerator(seed: 3)
    var seen: Set<String> = []
    for _ in 0..<1_000 {
      let text = PushID(randomHigh: generator.next(), randomLow: generator.next()).text
      #expect(UUID(uuidString: text)?.uuidString.lowercased() == text)
      #expect(seen.insert(text).inserted)
    }
  }
}
