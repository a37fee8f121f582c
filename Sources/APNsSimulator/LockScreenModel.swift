/// What is on the lock screen, and how it looks as lines of text: pure, so that it can be tested.
struct LockScreenModel {
  /// Older ones have scrolled away.
  private static let mostCards = 50

  /// The newest last.
  private(set) var notices: [Shown] = []
  /// Live Activities stand above the notifications, the newest last.
  private(set) var cards: [Card] = []
  private(set) var badges: [(app: String, badge: String)] = []
  private(set) var notifications = 0
  private(set) var silent = 0
  private(set) var refused = 0
  private(set) var dropped = 0
  private var lastSilent: Shown?
  private var lastRefused: Shown?
  private var lastDropped: String?

  mutating func add(_ shown: Shown) {
    switch shown.style {
    case .refused:
      refused += 1
      lastRefused = shown
      return
    case .dropped(let event, let objection):
      dropped += 1
      lastDropped = "\(event): \(objection)"
      return
    case .silent:
      silent += 1
      lastSilent = shown
    case .activity(_, let card): put(card)
    case .notification:
      notifications += 1
      if !shown.key.isEmpty { notices.removeAll { $0.key == shown.key } }
      notices.append(shown)
      if notices.count > Self.mostCards { notices.removeFirst() }
    }
    guard let badge = shown.badge else { return }
    badges.removeAll { $0.app == shown.app }
    if badge != "0" { badges.append((shown.app, badge)) }
  }

  /// Shows a card as it is now.
  mutating func put(_ card: Card) {
    let place = cards.firstIndex { $0.number == card.number }
    if let place { cards.remove(at: place) }
    guard card.state != .gone else { return }
    cards.insert(card, at: place ?? cards.count)
    if cards.count > Self.mostCards { cards.removeFirst() }
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
    if let lastDropped {
      head.append(Self.faint("dropped (inference), \(dropped): " + lastDropped, width))
    }
    var lines = Array(head.prefix(rows))
    let blocks =
      cards.reversed().map { Self.block($0, width) } + notices.reversed().map { Self.block($0, width) }
    for block in blocks {
      guard lines.count + block.count <= rows else { break }
      lines += block
    }
    return lines
  }

  private var summary: String {
    let counts = [(notifications, "shown"), (cards.count, "live")].filter { $0.0 > 0 }
    return "lock screen: "
      + (counts.isEmpty ? "nothing yet" : counts.map { "\($0) \($1)" }.joined(separator: ", "))
  }

  private static func block(_ notice: Shown, _ width: Int) -> [String] {
    block(notice.app, title: notice.alert.title, [notice.alert.subtitle], body: notice.alert.body, [], width)
  }

  private static func block(_ card: Card, _ width: Int) -> [String] {
    let head = ["Live Activity \(card.number)", card.app, card.status].filter { !$0.isEmpty }
    return block(
      head.joined(separator: " · "), title: card.title, [], body: card.text,
      [card.alert.isEmpty ? "" : "alert: " + card.alert, card.note], width)
  }

  /// A card: no frame on its right, so that a character of unexpected width can break nothing.
  private static func block(
    _ head: String, title: String, _ above: [String], body: String, _ below: [String], _ width: Int
  ) -> [String] {
    let inner = max(8, width - 2)
    func plain(_ texts: [String]) -> [String] {
      texts.filter { !$0.isEmpty }.map { TerminalText.clean($0, limit: inner) }
    }
    var lines = [faint(head, inner)]
    if !title.isEmpty { lines.append("\u{1B}[1m" + TerminalText.clean(title, limit: inner) + "\u{1B}[0m") }
    lines += plain(above) + TerminalText.wrapped(body, width: inner, lines: 4) + plain(below)
    return [""] + lines.map { "┃ " + $0 }
  }

  private static func faint(_ text: String, _ width: Int) -> String {
    "\u{1B}[2m" + TerminalText.clean(text, limit: width) + "\u{1B}[0m"
  }

  /// A push on one line, without any control sequence.
  static func line(_ shown: Shown, width: Int) -> String {
    let badge = shown.badge.map { " (badge \($0))" } ?? ""
    let text = shown.alert.line
    let words: String
    switch shown.style {
    case .notification: words = "\(shown.app): \(text)\(badge)"
    case .activity(let event, let card):
      let fate = card.status.isEmpty ? "" : ", \(card.status)"
      return line(card, "\(event.rawValue)\(fate): \(card.line)", width: width)
    case .silent: words = "\(shown.app): silent\(badge)"
    case .refused(let answer): words = "\(shown.app): refused: \(answer)" + (text.isEmpty ? "" : ", \(text)")
    case .dropped(let event, let objection):
      words = "\(shown.app): Live Activity \(event) dropped (inference): \(objection)"
    }
    return TerminalText.clean(words, limit: width)
  }

  /// What has become of a card, on one line.
  static func line(_ card: Card, _ words: String, width: Int) -> String {
    TerminalText.clean("\(card.app): Live Activity \(card.number) \(words)", limit: width)
  }
}
