import APNs
import SQLite

/// The app and its backend, as far as a push-started Live Activity needs them: registers an update token for each
/// card in the backend's database.
struct Adopter {
  /// A card that is to get its token.
  private struct Order {
    let card: Int
    let activityID: String
    let host: Environment
    /// By this one the device is found.
    let startToken: [UInt8]
    /// The one that the card gets.
    let token: [UInt8]
    var giveUp: ContinuousClock.Instant?
  }

  /// What came of an order.
  struct Outcome {
    let card: Int
    let token: [UInt8]
    /// The device that has the token now, or why none has it.
    let device: Result<String, Failure>
  }

  struct Failure: Error { let words: String }

  /// A lock that another connection holds is tried again, so often and so long.
  private static let interval = Duration.milliseconds(20)
  private static let patience = Duration.seconds(5)

  private let database: String
  private let delay: Duration
  private var agenda = Agenda<Order>()

  init(database: String, delay: Duration) {
    self.database = database
    self.delay = delay
  }

  /// When ``performDue(now:)`` has something to do.
  var due: ContinuousClock.Instant? { agenda.due }

  /// A card has appeared; why it cannot be adopted, or nil when it will be, after the delay.
  mutating func take(_ card: Card, startToken: [UInt8], now: ContinuousClock.Instant) -> String? {
    guard card.asksForToken else {
      return "the start has no \"input-push-token\": 1, so iOS makes no update token (inference)"
    }
    guard let activityID = card.activityID else {
      return "attributes has no text \(Card.activityIDNames.joined(separator: ", ")) with the activity's id"
    }
    agenda.add(
      Order(
        card: card.number, activityID: activityID, host: card.host, startToken: startToken,
        token: Self.newToken()),
      due: now + delay)
    return nil
  }

  /// Carries out what is due; what finds the database locked is tried again from the loop, which goes on meanwhile.
  mutating func performDue(now: ContinuousClock.Instant) -> [Outcome] {
    var outcomes: [Outcome] = []
    for var order in agenda.takeDue(now: now) {
      let device: Result<String, Failure>
      do throws(SQLiteError) {
        device =
          try register(order).map { .success($0) }
          ?? .failure(
            Failure(words: "\(database): no device has this start token"))
      } catch {
        let giveUp = order.giveUp ?? now + Self.patience
        if error.kind == .busy, now < giveUp {
          order.giveUp = giveUp
          agenda.add(order, due: now + Self.interval)
          continue
        }
        device = .failure(Failure(words: "\(database): \(error.message)"))
      }
      outcomes.append(Outcome(card: order.card, token: order.token, device: device))
    }
    return outcomes
  }

  /// Writes the token as a backend does, and gives the device; nil when none has the start token.
  ///
  /// The file is opened each time: it may come later than the simulator, or be replaced.
  private func register(_ order: Order) throws(SQLiteError) -> String? {
    let database = try Database(path: database)
    return try database.transaction { (_) throws(SQLiteError) in
      let owner = try database.prepare(
        """
        select device_id, recipient from nudge_token join nudge_device using (device_id)
        where token = ? and kind = 'activity_start'
        """)
      owner.bind(1, order.startToken)
      guard try owner.step(), let device = owner.string(0) else { return nil }
      let registration = try database.prepare(
        """
        insert into nudge_registration (device_id, recipient, kind, scope, token, environment)
        values (?, ?, 'activity_update', ?, ?, ?)
        """)
      registration.bind(1, device)
      registration.bind(2, owner.string(1))
      registration.bind(3, order.activityID)
      registration.bind(4, order.token)
      registration.bind(5, order.host.rawValue)
      owner.reset()
      try registration.run()
      return device
    }
  }

  /// Longer than a device's, as a Live Activity's token is.
  private static func newToken() -> [UInt8] {
    let digits = Array("0123456789abcdef".utf8)
    return (0..<160).map { _ in digits[Int.random(in: 0..<16)] }
  }
}
