/// What is on the lock screen, and how it looks as lines of text: pure, so that it can be tested.
struct LockScreenModel {
  /// Older ones have scrolled away.
  private static let mostCards = 50

  /// The newest last.
  private(set) var cards: [Shown] = []
  private(set) var badges: [(app: String, badge: String)] = []
  private(set) var notifications = 0
  private(set) var silent = 0
  private(set) var refused = 0
  private var lastSilent: Shown?
  private var lastRefused: Shown?

  mutating func add(_ added: Shown) {
    var shown = added
    if case .activity = shown.style,
      cards.contains(where: { $0.key == shown.key && $0.timestamp > shown.timestamp })
    {
      shown.style = .refused("an older state of the Live Activity")
    }
    switch shown.style {
    case .refused:
      refused += 1
      lastRefused = shown
      return
    case .silent:
      silent += 1
      lastSilent = shown
    case .notification, .activity:
      notifications += 1
      if !shown.key.isEmpty { cards.removeAll { $0.key == shown.key } }
      cards.append(shown)
      if cards.count > Self.mostCards { cards.removeFirst() }
    }
    guard let badge = shown.badge else { return }
    badges.removeAll { $0.app == shown.app }
    if badge != "0" { badges.append((shown.app, badge)) }
  }

  /// The picture: at most `rows` lines of at most `columns` columns.
  func lines(columns: Int, rows: Int) -> [String] {
    let width = max(10, min(columns, 76) - 1)
    var head = ["\u{1B}[1m" + TerminalText.clean(summary, limit: width) + "\u{1B}[0m"]
    if !badges.isEmpty {
      let text = badges.suffix(4).map { "\($0.app) (\($0.badge))" }.joined(separator: "  ")
      head.append(Self.faint("badges: " + text, width))
    }
    if let lastSilent {
      head.append(Self.faint("silent, \(silent): " + Self.line(lastSilent, width: 500), width))
    }
    if let lastRefused {
      head.append(Self.faint("refused, \(refused): " + Self.line(lastRefused, width: 500), width))
    }
    var lines = Array(head.prefix(rows))
    for card in cards.reversed() {
      let block = Self.block(card, width)
      guard lines.count + block.count <= rows else { break }
      lines += block
    }
    return lines
  }

  private var summary: String {
    notifications == 0 ? "lock screen: nothing yet" : "lock screen: \(notifications) shown"
  }

  /// A card: no frame on its right, so that a character of unexpected width can break nothing.
  private static func block(_ card: Shown, _ width: Int) -> [String] {
    let inner = max(8, width - 2)
    var name = card.app
    if case .activity(let event) = card.style { name = "Live Activity \(event) · \(name)" }
    var lines = ["", "\u{1B}[2m" + TerminalText.clean(name, limit: inner) + "\u{1B}[0m"]
    if !card.title.isEmpty {
      lines.append("\u{1B}[1m" + TerminalText.clean(card.title, limit: inner) + "\u{1B}[0m")
    }
    if !card.subtitle.isEmpty { lines.append(TerminalText.clean(card.subtitle, limit: inner)) }
    lines += TerminalText.wrapped(card.body, width: inner, lines: 4)
    return lines.enumerated().map { $0 == 0 ? "" : "┃ " + $1 }
  }

  private static func faint(_ text: String, _ width: Int) -> String {
    "\u{1B}[2m" + TerminalText.clean(text, limit: width) + "\u{1B}[0m"
  }

  /// A push on one line, without any control sequence.
  static func line(_ shown: Shown, width: Int) -> String {
    let badge = shown.badge.map { " (badge \($0))" } ?? ""
    let text = [shown.title, shown.subtitle, shown.body].filter { !$0.isEmpty }.joined(separator: " | ")
    let words: String
    switch shown.style {
    case .notification: words = "\(shown.app): \(text)\(badge)"
    case .activity(let event): words = "\(shown.app): Live Activity \(event): \(text)"
    case .silent: words = "\(shown.app): silent\(badge)"
    case .refused(let answer): words = "\(shown.app): refused: \(answer)" + (text.isEmpty ? "" : ", \(text)")
    }
    return TerminalText.clean(words, limit: width)
  }
}
