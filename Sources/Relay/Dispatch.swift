import APNs
import Outbox

/// The network's answer to the claim: what a row is worth as a push, which host it goes to, and the request
/// that is made ready once its attempt is in the transaction.
package final class Dispatch: Dispatcher {
  private let storeFor: Int64
  private var composer = PayloadComposer()
  private var identifiers: Identifiers
  private var push = Push()

  /// The hosts that have a key, production first.
  let hosts: [Host]
  /// What is on its way.
  var inFlight = InFlightTable()
  /// Every topic that was ever sent to, in the order of its first push; a handful.
  private(set) var topics: [[UInt8]] = []
  /// Devices that were sent too much (429 TooManyRequests), until when.
  var pausedDevices: [[UInt8]: ContinuousClock.Instant] = [:]
  /// Topics that a host refused, until when.
  var pausedTopics: [HostTopic: ContinuousClock.Instant] = [:]
  private let log: Log

  // The turn at hand.
  private var now: ContinuousClock.Instant
  private var wall: Int64 = 0
  /// Which hosts are paused, and the provider token of those that were asked for one.
  private var isPaused: [Bool] = []
  private var keys: [ProviderToken.Current?] = []
  private var pushType = PushType.table[0]
  private var nextID = PushID(randomHigh: 0, randomLow: 0)
  private var chosen: (host: Int, link: Link, topic: Int, environment: String?)?
  private var staged: [UInt64] = []

  /// A topic on a host.
  struct HostTopic: Hashable {
    let host: Int
    let topic: Int
  }

  init(hosts: [Host], storeFor: Duration, clock: Clock, log: Log) throws(NetworkFault) {
    self.hosts = hosts
    self.storeFor = storeFor.milliseconds
    self.log = log
    identifiers = try Identifiers()
    now = clock.now()
  }

  /// Begins a turn.
  func begin(now: ContinuousClock.Instant, wall: Int64) {
    self.now = now
    self.wall = wall
    chosen = nil
    isPaused = hosts.map { $0.isPaused(now: now) }
    keys = hosts.map { _ in nil }
    if !pausedDevices.isEmpty { pausedDevices = pausedDevices.filter { $0.value > now } }
    if !pausedTopics.isEmpty { pausedTopics = pausedTopics.filter { $0.value > now } }
  }

  // MARK: What the row says

  package func examine(_ nudge: borrowing Nudge) -> Examination {
    guard !nudge.isNull(.kind) else { return .invalid("kind is NULL") }
    guard let kind = Kind(nudge.bytes(.kind)) else { return .invalid("kind is not one that nudged knows") }
    pushType = kind.pushType
    switch nudge.storageClass(.priority) {
    case .null: push.priority = Int64(pushType.defaultPriority)
    case .integer:
      do throws(HeaderFault) {
        push.priority = Int64(try pushType.priority(nudge.integer(.priority)))
      } catch {
        return .invalid(error.words)
      }
    default: return .invalid("priority is not an integer")
    }
    push.payload.removeAll(keepingCapacity: true)
    let result = composer.compose(
      kind,
      PayloadColumns(
        title: nudge.optionalBytes(.title), subtitle: nudge.optionalBytes(.subtitle),
        body: nudge.optionalBytes(.body),
        conversationID: nudge.optionalBytes(.conversationID), aps: nudge.optionalBytes(.aps),
        data: nudge.optionalBytes(.data)),
      activity: nudge.activityColumns(pushType), into: &push.payload)
    if case .invalid(let words) = result { return .invalid(words) }
    push.pushType = pushType.header
    push.expiration = pushType.expirationSeconds(
      expiresAt: nudge.isNull(.expiresAt) ? nil : nudge.integer(.expiresAt),
      createdAt: max(nudge.integer(.createdAt), nudge.integer(.notBeforeAt)), storeFor: storeFor)
    push.collapseID.removeAll(keepingCapacity: true)
    if !nudge.isNull(.collapseID) {
      identifiers.appendCollapseID(nudge.bytes(.collapseID), to: &push.collapseID)
    }
    return .deliverable(tokenKind: pushType.tokenKind, scope: pushType.content.scopeColumn)
  }

  // MARK: Which host

  package func fault(of target: borrowing Target) -> String? {
    if let fault = DeviceToken.fault(target.token()) { return fault.words }
    if target.topic().count == 0 { return "the device has no topic: register it with the app's bundle id" }
    return Topic.fault(target.topic())?.words
  }

  package func route(_ target: borrowing Target, wrongHosts: [String]) -> Route {
    let tokenEnvironment = target.environment
    guard
      let host = order(tokenEnvironment).first(where: {
        !wrongHosts.contains(hosts[$0].environment.rawValue)
      })
    else { return .exhausted }
    let environment = hosts[host].environment.rawValue
    push.topic.removeAll(keepingCapacity: true)
    Topic.append(target.topic(), for: pushType, to: &push.topic)
    let topic = index(ofTopic: push.topic)
    if !pausedTopics.isEmpty, let until = pausedTopics[HostTopic(host: host, topic: topic)] {
      return .waitUntil(wall + (until - now).milliseconds + 1)
    }
    if !pausedDevices.isEmpty, let until = pausedDevices[Array(copying: target.deviceID())] {
      return .waitUntil(wall + (until - now).milliseconds + 1)
    }
    guard !isPaused[host], let link = hosts[host].link(forBytes: push.payload.count, now: now),
      prepareKey(host, link)
    else { return .wait(environment: environment) }
    chosen = (host, link, topic, tokenEnvironment)
    return .send(environment: environment)
  }

  /// The hosts in the order in which a token of this environment asks them: its own first; without one,
  /// production, unless production has said that our key is not for it.
  private func order(_ environment: String?) -> [Int] {
    guard hosts.count > 1 else { return [0] }
    let sandboxFirst =
      environment.map { $0 == hosts[1].environment.rawValue } ?? hosts[0].refusesKeyEnvironment
    return sandboxFirst ? [1, 0] : [0, 1]
  }

  private func index(ofTopic topic: [UInt8]) -> Int {
    if let index = topics.firstIndex(of: topic) { return index }
    topics.append(topic)
    return topics.count - 1
  }

  /// Puts the host's provider token into the push; a connection that used another one is retired instead.
  private func prepareKey(_ host: Int, _ link: Link) -> Bool {
    let signer = hosts[host].signer
    do {
      let current = try keys[host] ?? signer.token.current(wallMilliseconds: wall, now: now)
      keys[host] = current
      push.authorization = current.headerValue
      link.keyGeneration = current.generation
      return true
    } catch {
      log.error("provider token cannot be signed", ["file": signer.file, "reason": "\(error)"])
      return false
    }
  }

  // MARK: The request

  package func hash(_ token: Span<UInt8>, into hash: inout [UInt8]) {
    identifiers.appendHash(of: token, to: &hash)
  }

  package var attemptPushType: [UInt8] { push.pushType }
  package var attemptTopic: [UInt8] { push.topic }

  package func makeIdentifier(into identifier: inout [UInt8]) {
    nextID = identifiers.pushID()
    nextID.append(to: &identifier)
  }

  package func stage(
    attempt id: Int64, apnsID: [UInt8], nudge: borrowing Nudge, target: borrowing Target, timestamp: Int64?
  ) {
    guard let (host, link, topic, environment) = chosen else { return }
    // A copy: shared, the array could not be used again.
    push.apnsID.removeAll(keepingCapacity: true)
    push.apnsID += apnsID
    if let timestamp { composer.stamp(timestamp, in: &push.payload) }
    let tag = inFlight.insert(
      InFlight(
        attempt: id, nudge: nudge.id, apnsID: nextID, startedAt: wall, started: now,
        link: link, host: host, topic: topic, keyGeneration: link.keyGeneration ?? 0,
        tokenID: target.tokenID, registeredAt: target.registeredAt, environment: environment,
        isProven: target.isProven && environment == hosts[host].environment.rawValue))
    // The route has seen a free stream, so there is one.
    let isStaged = link.connection.stage(push, to: target.token(), tag: tag)
    precondition(isStaged, "a route was given without a free stream")
    staged.append(tag)
    link.inFlight += 1
    link.stagedBytes += push.payload.count
    link.isStaging = true
    link.lastUsed = now
  }

  /// The transaction is durable: the requests leave.
  func send() {
    staged.removeAll(keepingCapacity: true)
    for link in hosts.lazy.flatMap(\.links) where link.isStaging {
      link.isStaging = false
      link.stagedBytes = 0
      link.connection.sendStaged(now: now)
    }
  }

  /// The transaction failed: nothing was sent, and nothing will be.
  func discard() {
    for tag in staged {
      if let entry = inFlight.remove(tag) { entry.link.inFlight -= 1 }
    }
    staged.removeAll(keepingCapacity: true)
    for link in hosts.lazy.flatMap(\.links) where link.isStaging {
      link.isStaging = false
      link.stagedBytes = 0
      link.connection.discardStaged()
    }
  }
}

extension Nudge {
  /// What only Live Activities have; nothing for other kinds, whatever the columns hold.
  @_lifetime(borrow self)
  fileprivate func activityColumns(_ type: PushType) -> ActivityColumns {
    guard type.content.scopeColumn != nil else { return ActivityColumns() }
    return ActivityColumns(
      attributesType: optionalBytes(.attributesType), attributes: optionalBytes(.attributes),
      contentState: optionalBytes(.contentState),
      staleAt: isNull(.staleAt) ? nil : integer(.staleAt),
      dismissAt: isNull(.dismissAt) ? nil : integer(.dismissAt))
  }
}

extension PushType.Content {
  /// The column that holds the scope of the token; nil for the kinds whose tokens have none.
  fileprivate var scopeColumn: Nudge.Column? {
    switch self {
    case .liveActivity(.start): .attributesType
    case .liveActivity(.update), .liveActivity(.end): .activityID
    default: nil
    }
  }
}
