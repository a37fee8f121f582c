/// Columns aligned with spaces, for people.
struct TextTable {
  /// How the last cell of a row is to be read.
  enum Tone: String {
    case good = "32"
    case bad = "31"
    case doubtful = "33"
    case quiet = "2"

    /// The text in the tone's colour (ECMA-48, SGR).
    func colour(_ text: String) -> String { "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" }
  }

  private var rows: [(cells: [String], tone: Tone?)]

  init(header: [String]) { rows = [(header, nil)] }

  /// Adds a row; an empty cell shows as a dash. With a tone its last cell is coloured.
  mutating func append(_ row: [String], _ tone: Tone? = nil) {
    rows.append((row.map { $0.isEmpty ? "-" : TextTable.printable($0) }, tone))
  }

  var text: String {
    var widths: [Int] = []
    let lengths = rows.map { $0.cells.map(TextTable.columns) }
    for row in lengths {
      for (column, length) in row.enumerated() {
        if column == widths.count { widths.append(0) }
        widths[column] = max(widths[column], length)
      }
    }
    return zip(rows, lengths).map { row, lengths in
      var line = ""
      for (column, cell) in row.cells.enumerated() {
        let isLast = column + 1 == row.cells.count
        if isLast, let tone = row.tone {
          line += tone.colour(cell)
        } else {
          line += cell
        }
        if !isLast { line += String(repeating: " ", count: widths[column] - lengths[column] + 2) }
      }
      return line + "\n"
    }.joined()
  }

  private static func columns(_ text: String) -> Int {
    text.unicodeScalars.reduce(0) { $0 + Terminal.columns($1) }
  }

  /// The text without characters that would move the cursor or colour the terminal.
  static func printable(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      if isPrintable(scalar) {
        result.unicodeScalars.append(scalar)
      } else {
        result += "\\u{\(String(scalar.value, radix: 16))}"
      }
    }
    return result
  }

  /// Whether a scalar stays where it is put: no control character, and none that joins or turns others.
  static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }
}
