import Glibc
import Relay

/// Wall time as people write it: ISO 8601, in UTC unless it says otherwise.
enum WallTime {
  /// `2026-11-30T19:03:46Z`; milliseconds are cut off.
  static func text(_ milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var parts = tm()
    guard gmtime_r(&seconds, &parts) != nil else { return "\(milliseconds)" }
    func two(_ number: Int32) -> String { (number < 10 ? "0" : "") + "\(number)" }
    return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
      + "T\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))Z"
  }

  /// How long something took or is ago, in the largest unit that fits: `3m`.
  static func age(_ milliseconds: Int64) -> String {
    let seconds = max(0, milliseconds) / 1000
    let units: [(Int64, String)] = [(24 * 3600, "d"), (3600, "h"), (60, "m")]
    let unit = units.first { seconds >= $0.0 } ?? (1, "s")
    return "\(seconds / unit.0)\(unit.1)"
  }

  /// Milliseconds since 1970 UTC of `2026-11-30`, `2026-11-30T08:00`, `2026-11-30 08:00:15.250Z` or
  /// `2026-11-30T08:00+01:00`; nil for anything else, also for a day that the calendar does not have.
  static func parse(_ text: String) -> Int64? {
    var rest = Array(text.utf8)[...]
    func skip(_ mark: Character) -> Bool {
      guard rest.first == mark.asciiValue else { return false }
      rest.removeFirst()
      return true
    }
    func number(_ digits: Int, below limit: Int32 = .max) -> Int32? {
      let part = rest.prefix(digits)
      guard part.count == digits, part.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      rest = rest.dropFirst(digits)
      let value = part.reduce(0 as Int32) { $0 * 10 + Int32($1 - 0x30) }
      return value < limit ? value : nil
    }

    guard let year = number(4), skip("-"), let month = number(2), skip("-"), let day = number(2) else {
      return nil
    }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
    var milliseconds: Int64 = 0
    if !rest.isEmpty {
      guard skip("T") || skip(" "), let hour = number(2, below: 24), skip(":"),
        let minute = number(2, below: 60)
      else { return nil }
      (parts.tm_hour, parts.tm_min) = (hour, minute)
      if skip(":") {
        guard let second = number(2, below: 60) else { return nil }
        parts.tm_sec = second
        if skip(".") {
          guard let fraction = number(3) else { return nil }
          milliseconds = Int64(fraction)
        }
      }
      if !skip("Z"), !rest.isEmpty {
        let isEast = skip("+")
        guard isEast || skip("-"), let hours = number(2, below: 24), skip(":"),
          let minutes = number(2, below: 60)
        else { return nil }
        milliseconds += Int64(hours * 60 + minutes) * 60_000 * (isEast ? -1 : 1)
      }
      guard rest.isEmpty else { return nil }
    }
    // timegm takes 31 June for 1 July, and says so in what it leaves behind.
    let seconds = Int64(timegm(&parts))
    guard parts.tm_mon == month - 1, parts.tm_mday == day else { return nil }
    return seconds * 1000 + milliseconds
  }
}

extension Given.Value {
  /// The value as a point in the past: how long ago, a date or time, or milliseconds since 1970 UTC.
  func pastMoment() throws(Failure) -> Moment {
    if let ago = Duration(setting: text) { return .fromNow(.zero - ago) }
    if let time = WallTime.parse(text) { return .absolute(time) }
    guard let time = Int64(text) else {
      throw fault(
        "\(text) is no time: write 24h (ago), 2026-11-30, 2026-11-30T08:00 (UTC) or milliseconds since 1970")
    }
    // Up to 1973 in milliseconds, and up to the year 5138 in seconds.
    guard time >= 100_000_000_000 else {
      throw fault("\(text) are too few milliseconds since 1970: are these seconds? 24 hours ago is 24h")
    }
    return .absolute(time)
  }
}

extension Moment {
  /// Milliseconds since 1970 UTC; a point after `now` is a mistake of whoever gave `flag`.
  func resolvedInPast(now: Int64, flag: String) throws(Failure) -> Int64 {
    let time = resolved(now: now)
    guard time <= now else {
      throw Failure(
        .usage,
        "\(flag): \(WallTime.text(time)) is still to come; it is \(WallTime.text(now)) now (times are in UTC)"
      )
    }
    return time
  }
}
