/// Text of strangers, made fit for a terminal: nothing in it moves the cursor, changes the direction of what
/// follows, or is wider than it is taken for.
enum TerminalText {
  /// The text without control and format characters and with white space as single blanks, cut to `limit`
  /// columns with an ellipsis.
  static func clean(_ text: String, limit: Int) -> String {
    var result = ""
    var columns = 0
    var isAfterSpace = true
    for character in text {
      guard let shown = shown(character) else { continue }
      let isSpace = shown == " "
      if isSpace, isAfterSpace { continue }
      isAfterSpace = isSpace
      let width = width(shown)
      // One column is kept for the ellipsis until it is known that nothing follows.
      if columns + width > limit { return cut(result, to: max(0, limit - 1)) + "…" }
      result += shown
      columns += width
    }
    while result.last == " " { result.removeLast() }
    return result
  }

  /// The text broken into lines of at most `width` columns, at blanks where there are some; at most `lines`
  /// of them, the last with an ellipsis when there is more.
  static func wrapped(_ text: String, width: Int, lines: Int) -> [String] {
    var rest = clean(text, limit: width * (lines + 1) * 2)
    var result: [String] = []
    while !rest.isEmpty {
      if result.count == lines - 1 || columns(rest) <= width {
        result.append(clean(rest, limit: width))
        break
      }
      var head = cut(rest, to: width)
      if head.isEmpty { head = String(rest.prefix(1)) }
      let follows = rest.dropFirst(head.count).first
      if follows != " ", let blank = head.lastIndex(of: " ") { head = String(head[..<blank]) }
      result.append(head)
      rest = String(rest.dropFirst(head.count).drop { $0 == " " })
    }
    return result
  }

  /// How many columns the text takes; it has to be clean.
  static func columns(_ text: String) -> Int { text.reduce(0) { $0 + width(String($1)) } }

  private static func cut(_ text: String, to limit: Int) -> String {
    var columns = 0
    return String(
      text.prefix { character in
        columns += width(String(character))
        return columns <= limit
      })
  }

  /// What stands for a character; nil for one that is not shown at all.
  private static func shown(_ character: Character) -> String? {
    if character.isWhitespace { return " " }
    var scalars = String.UnicodeScalarView()
    for scalar in character.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: continue
      // Joiners hold emoji together; all other format characters (directions, tags) go.
      case .format where scalar.value != 0x200D: continue
      default: scalars.append(scalar)
      }
      // A pile of combining marks would run into the lines above and below.
      if scalars.count == 10 { break }
    }
    return scalars.isEmpty ? nil : String(scalars)
  }

  /// 2 for wide characters and emoji, 0 for a mark alone, else 1.
  private static func width(_ text: String) -> Int {
    guard let first = text.unicodeScalars.first else { return 0 }
    if text.unicodeScalars.contains(where: { $0.value == 0xFE0F }) || first.properties.isEmojiPresentation {
      return 2
    }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return wide.contains { $0.contains(first.value) } ? 2 : 1
    }
  }

  /// The blocks of East Asian width W and F (Unicode Annex #11), in broad strokes.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF,
    0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF01...0xFF60, 0xFFE0...0xFFE6,
    0x16FE0...0x18AFF, 0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF, 0x1F300...0x1F64F, 0x1F680...0x1F6FF,
    0x1F900...0x1FAFF, 0x20000...0x3FFFD,
  ]
}
