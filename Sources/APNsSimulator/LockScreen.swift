import Glibc

/// The lock screen in the terminal: drawn again in place when standard output is one, else a line for each push.
package final class LockScreen {
  private let descriptor: Int32
  private let isTerminal: Bool
  /// Printed above the lock screen, so that it can be copied.
  private let heading: String
  private var model = LockScreenModel()
  private var pending: [UInt8] = []
  private var drawnLines = 0
  private var size = (columns: 0, rows: 0)
  private var drawnAt: ContinuousClock.Instant?
  private var isDirty = false

  /// As often as the eye can follow.
  private static let interval = Duration.milliseconds(50)
  private static let longestLine = 200

  /// - Parameter heading: whole lines, printed first and left alone.
  package init(descriptor: Int32, heading: String) {
    self.descriptor = descriptor
    self.heading = heading
    isTerminal = isatty(descriptor) == 1
    pending = Array(heading.utf8)
    isDirty = isTerminal
    flush()
  }

  func show(_ push: Push, _ plan: Plan, _ reception: Phone.Reception?) {
    let shown = Shown(push, plan, reception)
    if isTerminal {
      model.add(shown)
      isDirty = true
    } else {
      say(LockScreenModel.line(shown, width: Self.longestLine), plan.wallMilliseconds)
    }
  }

  /// Shows what has become of a card without a push.
  func show(_ card: Card, _ words: String, wallMilliseconds: Int64) {
    if isTerminal {
      model.put(card)
      isDirty = true
    } else {
      say(LockScreenModel.line(card, words, width: Self.longestLine), wallMilliseconds)
    }
  }

  private func say(_ line: String, _ wallMilliseconds: Int64) {
    let time = RequestLog.time(wallMilliseconds).dropFirst(11).prefix(8)
    pending += Array((time + " " + line + "\n").utf8)
  }

  /// When `update` has something to do.
  var due: ContinuousClock.Instant? {
    guard isDirty else { return nil }
    return drawnAt.map { $0 + Self.interval } ?? ContinuousClock.now
  }

  /// Draws what has changed, if it is time.
  func update(now: ContinuousClock.Instant) {
    if isDirty, drawnAt.map({ now >= $0 + Self.interval }) ?? true { draw(now) }
    flush()
  }

  /// The last picture stays; the cursor stands below it.
  func end() {
    if isDirty { draw(ContinuousClock.now) }
    flush()
  }

  /// Something else writes a line next: it stands above the picture, which is drawn again below.
  func pause() {
    guard isTerminal else { return }
    pending += Array(erase().utf8)
    drawnLines = 0
    isDirty = true
    drawnAt = nil
    flush()
  }

  private func draw(_ now: ContinuousClock.Instant) {
    let size = terminalSize()
    var text = "\u{1B}[?7l"
    if size != self.size, self.size.columns != 0 {
      // The terminal may have broken the old lines anew, so nobody knows where they are.
      text += "\u{1B}[H\u{1B}[2J" + heading
    } else {
      text += erase()
    }
    self.size = size
    let lines = model.lines(columns: size.columns, rows: max(3, size.rows - 2))
    text += lines.map { $0 + "\n" }.joined() + "\u{1B}[?7h"
    drawnLines = lines.count
    pending += Array(text.utf8)
    drawnAt = now
    isDirty = false
  }

  private func erase() -> String { drawnLines == 0 ? "" : "\r\u{1B}[\(drawnLines)A\u{1B}[J" }

  private func flush() {
    guard !pending.isEmpty else { return }
    Files.writeAll(pending, to: descriptor)
    pending.removeAll(keepingCapacity: true)
  }

  private func terminalSize() -> (columns: Int, rows: Int) {
    var window = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
      return (80, 24)
    }
    return (Int(window.ws_col), Int(window.ws_row))
  }
}
