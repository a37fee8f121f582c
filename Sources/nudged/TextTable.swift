/// Columns aligned with spaces, for people.
struct TextTable {
  private var rows: [[String]]

  init(header: [String]) { rows = [header] }

  /// Adds a row; an empty cell shows as a dash.
  mutating func append(_ row: [String]) {
    rows.append(row.map { $0.isEmpty ? "-" : TextTable.printable($0) })
  }

  var text: String {
    let width = rows.map(\.count).max() ?? 0
    let widths = (0..<width).map { column in
      rows.map { column < $0.count ? $0[column].count : 0 }.max() ?? 0
    }
    return rows.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        line += cell
        guard column + 1 < row.count else { continue }
        line += String(repeating: " ", count: widths[column] - cell.count + 2)
      }
      return line + "\n"
    }.joined()
  }

  /// The text without characters that would move the cursor or colour the terminal.
  static func printable(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator:
        result += "\\u{\(String(scalar.value, radix: 16))}"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
