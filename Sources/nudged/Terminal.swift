import CLinux
import Glibc

/// What standard output can show.
enum Terminal {
  /// Whether it is a terminal whose user has not asked for plain text (https://no-color.org).
  static var takesColour: Bool {
    guard isatty(STDOUT_FILENO) == 1 else { return false }
    let variables = Process.environment()
    return (variables["NO_COLOR"] ?? "").isEmpty && variables["TERM"] != "dumb"
  }

  /// How many columns a printable scalar takes: 2 for wide characters and emoji, 0 for marks (wcwidth(3)).
  static func columns(_ scalar: Unicode.Scalar) -> Int {
    _ = characters
    // -1: unassigned for the C library, which a terminal shows as a box.
    let width = nudged_columns(scalar.value)
    return width < 0 ? 1 : Int(width)
  }

  /// wcwidth knows Unicode in a UTF-8 locale only, and a program starts in none.
  private static let characters: Void = { _ = setlocale(LC_CTYPE, "C.UTF-8") }()
}
