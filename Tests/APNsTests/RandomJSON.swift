/// Random JSON texts with odd spacing, escapes and numbers.
enum RandomJSON {
  static func object(
    depth: Int, prefix: String = "k", using generator: inout SeededGenerator
  ) -> [UInt8] {
    var text = space(&generator) + "{"
    let count = Int.random(in: 0...4, using: &generator)
    for index in 0..<count {
      if index > 0 { text += "," }
      // The number keeps names apart.
      text += "\(space(&generator))\"\(prefix)\(index)\(characters(&generator))\"\(space(&generator)):"
      text += value(depth: depth - 1, &generator)
    }
    return bytes(text + space(&generator) + "}" + space(&generator))
  }

  static func value(depth: Int, _ generator: inout SeededGenerator) -> String {
    let choice = Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &generator)
    let inner: String
    switch choice {
    case 0: inner = ["null", "true", "false"].randomElement(using: &generator) ?? "null"
    case 1: inner = String(Int.random(in: -1_000_000...1_000_000, using: &generator))
    case 2: inner = ["0.50", "-0", "1e3", "812345678.25", "1E-2"].randomElement(using: &generator) ?? "0"
    case 3...5: inner = "\"\(characters(&generator))\""
    case 6:
      let values = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
        value(depth: depth - 1, &generator)
      }
      inner = "[\(values.joined(separator: ","))]"
    default: inner = String(decoding: object(depth: depth, using: &generator), as: UTF8.self)
    }
    return space(&generator) + inner + space(&generator)
  }

  static func characters(_ generator: inout SeededGenerator) -> String {
    let pieces = [
      "a", "B", " ", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\ud83d\\ude00", "é", "€", "😀",
      "eight plain b",
      "\u{2028}", "क्षि",
    ]
    return (0..<Int.random(in: 0...5, using: &generator))
      .map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
  }

  private static func space(_ generator: inout SeededGenerator) -> String {
    ["", "", "", " ", "\n", "\t ", "\r\n"].randomElement(using: &generator) ?? ""
  }
}
