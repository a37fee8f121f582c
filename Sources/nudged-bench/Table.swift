/// A line of the table: one figure, what it is compared with, and what it should be.
struct Line {
  let what: String
  let value: Double
  let unit: String
  /// Measured in the same run, in the same unit.
  var reference: Reference?
  var target: Target?

  struct Reference {
    let name: String
    let value: Double
  }

  /// A bound on the ratio to the reference where there is one, else on the value.
  enum Target {
    case atMost(Double)
    case atLeast(Double)

    func isReached(by value: Double) -> Bool {
      switch self {
      case .atMost(let bound): value <= bound
      case .atLeast(let bound): value >= bound
      }
    }
  }

  init(
    _ what: String, _ value: Double, _ unit: String, of reference: Reference? = nil, _ target: Target? = nil
  ) {
    self.what = what
    self.value = value
    self.unit = unit
    self.reference = reference
    self.target = target
  }

  /// True where there is nothing to reach.
  var isReached: Bool { target?.isReached(by: ratio ?? value) ?? true }

  private var ratio: Double? { reference.map { value / $0.value } }

  /// The cells of the table, as ``Table/heading`` names them.
  var cells: [String] {
    [
      what, Table.figure(value) + tail,
      reference.map { "\($0.name) \(Table.figure($0.value))" } ?? "",
      ratio.map { Table.decimal($0, 2) } ?? "", targetWords,
      target.map { _ in isReached ? "yes" : "no" } ?? "",
    ]
  }

  private var tail: String { unit.isEmpty ? "" : " \(unit)" }

  private var targetWords: String {
    // A ratio has no unit.
    let tail = reference == nil ? tail : ""
    return switch target {
    case .atMost(let bound): "at most \(Table.plain(bound))" + tail
    case .atLeast(let bound): "at least \(Table.plain(bound))" + tail
    case nil: ""
    }
  }
}

/// Lines under one heading, as Markdown that is aligned for the terminal.
struct Table {
  static let heading = ["what", "figure", "beside", "ratio", "to reach", "reached"]
  /// Columns of numbers, which end on one line.
  private static let numbers: Set<Int> = [1, 2, 3]

  var lines: [Line] = []

  var text: String {
    let cells = [Self.heading] + lines.map(\.cells)
    let widths = Self.heading.indices.map { column in cells.map { $0[column].count }.max() ?? 0 }
    var rows = cells.map { row in
      row.enumerated().map { column, cell in
        let space = String(repeating: " ", count: widths[column] - cell.count)
        return Self.numbers.contains(column) ? space + cell : cell + space
      }
    }
    rows.insert(
      widths.enumerated().map { column, width in
        String(repeating: "-", count: width - 1) + (Self.numbers.contains(column) ? ":" : "-")
      }, at: 1)
    return rows.map { "| " + $0.joined(separator: " | ") + " |" }.joined(separator: "\n")
  }

  /// A number with as many digits as it is worth.
  static func figure(_ value: Double) -> String {
    switch value.magnitude {
    case 0: "0"
    case ..<1: decimal(value, 3)
    case ..<10: decimal(value, 2)
    case ..<100: decimal(value, 1)
    default: grouped(Int(value.rounded()))
    }
  }

  /// A number that somebody chose: 1, 1.1, 1.25.
  static func plain(_ value: Double) -> String {
    var text = decimal(value, 2)
    while text.last == "0" { text.removeLast() }
    if text.last == "." { text.removeLast() }
    return text
  }

  /// `1234567` as `1,234,567`.
  static func grouped(_ value: Int) -> String {
    value < 1000 ? "\(value)" : grouped(value / 1000) + "," + padded(value % 1000, 3)
  }

  static func decimal(_ value: Double, _ places: Int) -> String {
    var scale = 1
    for _ in 0..<places { scale *= 10 }
    let rounded = Int((value * Double(scale)).rounded())
    return "\(rounded / scale)." + padded(rounded % scale, places)
  }

  private static func padded(_ value: Int, _ digits: Int) -> String {
    let text = String(value)
    return String(repeating: "0", count: digits - text.count) + text
  }
}
