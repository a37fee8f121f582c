/// Where a body that is too long is cut: at the last boundary between characters that leaves room for an
/// ellipsis.
///
/// A character is Swift's, an extended grapheme cluster (Unicode Annex #29): families, flags, combining
/// marks and Indic conjuncts stay whole.
enum BodyCut {
  /// `…`, U+2026.
  static let ellipsis: [UInt8] = [0xE2, 0x80, 0xA6]

  /// The cut, as bytes of the text and as bytes of its escaped form; nil if not one character fits.
  ///
  /// - Parameters:
  ///   - text: well-formed UTF-8 whose escaped form is longer than `budget`; its end may itself be a cut
  ///     between scalars, provided that it lies behind `budget` bytes.
  ///   - budget: the bytes there are for the escaped form with the ellipsis.
  static func place(in text: Span<UInt8>, budget: Int) -> (source: Int, escaped: Int)? {
    var scalarCut = 0
    var room = budget - ellipsis.count
    while scalarCut < text.count {
      if text[scalarCut] < 0x80 {
        let run = min(text.plainRunEnd(from: scalarCut) - scalarCut, max(room, 0))
        scalarCut += run
        room -= run
      }
      guard scalarCut < text.count, let length = text.scalarLength(at: scalarCut) else { return nil }
      let escaped = length == 1 ? PayloadText.escapedLength(text[scalarCut]) : length
      guard room >= escaped else { break }
      scalarCut += length
      room -= escaped
    }
    guard scalarCut > 0, scalarCut < text.count, let next = text.scalarLength(at: scalarCut) else {
      return nil
    }
    // Whether there is a boundary before a scalar depends on what precedes it and on that scalar alone
    // (every rule of Annex #29 has one code point to the right of its mark), so one scalar behind the
    // cut is enough to know.
    let head = text.extracting(0..<(scalarCut + next)).withUnsafeBufferPointer {
      String(decoding: $0, as: UTF8.self)
    }
    let lastCharacter = head.index(before: head.endIndex)
    let source = head.utf8.distance(from: head.startIndex, to: lastCharacter)
    guard source > 0 else { return nil }
    var escaped = budget - ellipsis.count - room
    for index in source..<scalarCut { escaped -= PayloadText.escapedLength(text[index]) }
    return (source, escaped)
  }
}
