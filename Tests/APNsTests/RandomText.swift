/// Random texts of every script that breaks in odd places.
enum RandomText {
  private static let pieces = [
    "a", "Z", " ", "\n", "\"", "\\", "\u{1}", "é", "e\u{301}", "\u{302}", "€", "😀", "👨‍👩‍👧‍👦", "👩🏽‍🚀", "🇩🇪", "🇫",
    "\u{200D}",
    "क्षि", "क्", "ष", "स्त्री", "각", "\u{1100}", "\u{1161}", "\r\n", "\u{FE0F}", "\u{0600}", "\u{094D}", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
    "words in a row",
  ]

  static func text(_ count: ClosedRange<Int>, using generator: inout SeededGenerator) -> String {
    var result = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: count, using: &generator) {
      result.append(contentsOf: (pieces.randomElement(using: &generator) ?? "a").unicodeScalars)
    }
    return String(result)
  }
}
