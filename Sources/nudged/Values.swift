import Relay

/// A point in time as a flag gives it.
enum Moment: Equatable, Sendable {
  /// Milliseconds since 1970 UTC.
  case absolute(Int64)
  /// `+10m`.
  case fromNow(Duration)

  /// Milliseconds since 1970 UTC, when it is `now` (likewise).
  func resolved(now: Int64) -> Int64 {
    switch self {
    case .absolute(let time): time
    case .fromNow(let duration): now + duration.milliseconds
    }
  }
}

extension Duration {
  /// Reads `500ms`, `30s`, `10m`, `8h` or `30d`; nil for anything else and for more than 10,000 years.
  init?(setting text: String) {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    let unit: Int64
    switch text.dropFirst(digits.count) {
    case "ms": unit = 1
    case "s": unit = 1000
    case "m": unit = 60 * 1000
    case "h": unit = 3600 * 1000
    case "d": unit = 24 * 3600 * 1000
    default: return nil
    }
    guard let count = Int64(digits) else { return nil }
    let (milliseconds, isTooLong) = count.multipliedReportingOverflow(by: unit)
    guard !isTooLong, milliseconds <= 10_000 * 366 * 24 * 3600 * 1000 else { return nil }
    self = .milliseconds(milliseconds)
  }

  /// The shortest text that reads as this duration, e.g. `1h` for 3,600 seconds.
  var setting: String {
    let units: [(Int64, String)] = [
      (24 * 3600 * 1000, "d"), (3600 * 1000, "h"), (60 * 1000, "m"), (1000, "s"),
    ]
    for (size, unit) in units where milliseconds != 0 && milliseconds % size == 0 {
      return "\(milliseconds / size)\(unit)"
    }
    return milliseconds == 0 ? "0s" : "\(milliseconds)ms"
  }
}

extension Given.Value {
  /// The value as a duration within `range`.
  func duration(in range: ClosedRange<Duration>) throws(Failure) -> Duration {
    guard let duration = Duration(setting: text) else {
      throw fault(
        Int64(text) == nil
          ? "\(text) is no duration: write 500ms, 30s, 10m, 8h or 30d"
          : "\(text) needs a unit: write 500ms, 30s, 10m, 8h or 30d")
    }
    guard range.contains(duration) else {
      throw fault(
        "\(text) is out of range: \(range.lowerBound.setting) to \(range.upperBound.setting)")
    }
    return duration
  }

  /// The value as a whole number within `range`.
  func integer(in range: ClosedRange<Int>) throws(Failure) -> Int {
    guard let number = Int(text) else { throw fault("\(text) is no whole number") }
    guard range.contains(number) else {
      throw fault("\(text) is out of range: \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  /// The value as a point in time.
  func moment() throws(Failure) -> Moment {
    if text.hasPrefix("+"), let duration = Duration(setting: String(text.dropFirst())) {
      return .fromNow(duration)
    }
    guard !text.hasPrefix("+"), let time = Int64(text) else {
      throw fault("\(text) is no time: write milliseconds since 1970 UTC, or +10m for ten minutes from now")
    }
    return .absolute(time)
  }

  /// The value as a level of the log.
  func logLevel() throws(Failure) -> Log.Level {
    guard let level = Log.Level.allCases.first(where: { $0.word == text }) else {
      let words = Log.Level.allCases.map(\.word).joined(separator: ", ")
      throw fault("\(text) is no level: write one of \(words)")
    }
    return level
  }
}
