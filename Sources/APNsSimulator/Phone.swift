import APNs

/// The phones behind the tokens, as far as Live Activities go: it ties pushes to cards and drops what a phone drops.
struct Phone {
  /// What the phone made of a push.
  struct Reception: Equatable, Sendable {
    /// The push's `aps.event`; nil when it is none of Apple's.
    let event: ActivityEvent?
    /// The card that it was for, as it is afterwards.
    var card: Card?
    /// Why it was dropped.
    var objection: String?
  }

  /// What became of a card without a push.
  struct Happening {
    let card: Card
    let words: String
    /// A token that is good for the card from now on.
    var token: [UInt8]?
    /// It is not as the person at the simulator wanted it.
    var isFault = false
  }

  /// Older ones are forgotten.
  private static let mostCards = 1_000

  private var cards: [Int: Card] = [:]
  /// The token that updates the card.
  private var numbers: [[UInt8]: Int] = [:]
  private var last = 0
  /// When a card changes next by itself, in milliseconds since 1970.
  private(set) var nextChange: Int64?
  private var adopter: Adopter?
  private var happenings: [Happening] = []

  /// - Parameter adopter: nil: nobody registers update tokens.
  init(adopter: Adopter? = nil) { self.adopter = adopter }

  /// When ``pass(to:now:)`` has something to do besides ``nextChange``.
  var due: ContinuousClock.Instant? { adopter?.due }

  /// Takes what has happened since the last call.
  mutating func takeHappenings() -> [Happening] {
    guard !happenings.isEmpty else { return [] }
    defer { happenings.removeAll() }
    return happenings
  }

  /// Takes a push that APNs has accepted; nil when it is not for a Live Activity.
  mutating func receive(_ push: Push, _ plan: Plan, now: ContinuousClock.Instant) -> Reception? {
    guard let type = push.type, push.holds("liveactivity", type) else { return nil }
    let examination = Examination(push, host: plan.host, entry: nil, rules: .init(), wallMilliseconds: 0)
    let token = TokenTable.key(examination.token)
    if plan.status == 410 { swipe { $0 == token } }
    guard plan.reachesPhone else { return nil }
    pass(to: plan.wallMilliseconds)
    let aps: JSONValue
    do throws(TextFault) {
      guard let found = try JSONValue.read(push.body)["aps"], found.members != nil else {
        return Reception(event: nil, objection: "aps is no object")
      }
      aps = found
    } catch { return Reception(event: nil, objection: "the body, \(error.words(in: push.body))") }
    guard let event = aps["event"]?.text.flatMap({ ActivityEvent(rawValue: $0) }) else {
      return Reception(event: nil, objection: "event is not start, update or end")
    }
    // A start always makes a card of its own.
    let old = event == .start ? nil : numbers[token].flatMap { cards[$0] }
    let delivery = ActivityRule.Delivery(aps: aps, card: old, wallMilliseconds: plan.wallMilliseconds)
    if let objection = ActivityRule.objection(to: delivery, event) {
      return Reception(event: event, card: old, objection: objection)
    }
    var card = old ?? newCard(examination, aps, plan)
    card.apply(event, aps, of: push.body, wallMilliseconds: plan.wallMilliseconds)
    if old == nil, event != .start { numbers[token] = card.number }
    if event == .start, let words = adopter?.take(card, startToken: token, now: now) {
      card.note = "not adopted: " + words
      happenings.append(Happening(card: card, words: card.note, isFault: true))
    }
    put(card)
    return Reception(event: event, card: card)
  }

  /// The cards of these tokens were swiped away: that is what kills a token while its activity runs.
  mutating func swipe(_ isDead: ([UInt8]) -> Bool) {
    for (token, number) in numbers where isDead(token) {
      guard var card = cards[number], card.state != .gone else { continue }
      card.swipe()
      put(card)
      happenings.append(Happening(card: card, words: "swiped away"))
    }
  }

  /// Lets time pass: cards turn stale and go, and get their tokens.
  mutating func pass(to wallMilliseconds: Int64, now: ContinuousClock.Instant) {
    pass(to: wallMilliseconds)
    for outcome in adopter?.performDue(now: now) ?? [] {
      guard var card = cards[outcome.card] else { continue }
      switch outcome.device {
      case .success(let device):
        numbers[outcome.token] = card.number
        card.note = "adopted by \(device), token \(String(decoding: outcome.token.prefix(8), as: UTF8.self))…"
        happenings.append(Happening(card: card, words: card.note, token: outcome.token))
      case .failure(let failure):
        card.note = "not adopted: \(failure.words)"
        happenings.append(Happening(card: card, words: card.note, isFault: true))
      }
      put(card)
    }
  }

  private mutating func pass(to wallMilliseconds: Int64) {
    guard let nextChange, nextChange <= wallMilliseconds else { return }
    for number in cards.keys.sorted() {
      guard var card = cards[number], card.pass(to: wallMilliseconds) else { continue }
      cards[number] = card
      happenings.append(Happening(card: card, words: card.status))
    }
    self.nextChange = cards.values.compactMap(\.nextChange).min()
  }

  private mutating func newCard(_ examination: Examination, _ aps: JSONValue, _ plan: Plan) -> Card {
    last += 1
    if let old = cards.removeValue(forKey: last - Self.mostCards) {
      numbers = numbers.filter { $0.value != old.number }
    }
    return Card(
      last, app: String(decoding: examination.bundleID, as: UTF8.self), host: plan.host, aps: aps,
      wallMilliseconds: plan.wallMilliseconds)
  }

  private mutating func put(_ card: Card) {
    cards[card.number] = card
    guard let change = card.nextChange else { return }
    nextChange = nextChange.map { min($0, change) } ?? change
  }
}
