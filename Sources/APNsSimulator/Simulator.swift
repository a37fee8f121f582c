import APNs
import CLinux
import Glibc
import HTTP2
import OpenSSL

/// A local APNs: two listening ports, one thread, one epoll loop.
package final class Simulator {
  final class Peer {
    let number: Int
    let host: Environment
    let connection: ServerConnection
    var credentials = ConnectionCredentials()
    var requests = 0
    var hasRaisedStreams = false

    init(_ number: Int, _ host: Environment, _ connection: ServerConnection) {
      self.number = number
      self.host = host
      self.connection = connection
    }
  }

  private struct Delayed {
    let peer: Int
    let plan: Plan
  }

  private enum Tag {
    static let signals: UInt64 = 0
    static let watch: UInt64 = 1
    static let production: UInt64 = 2
    static let sandbox: UInt64 = 3
    /// Connections have their number behind these.
    static let firstPeer: UInt64 = 16
  }

  package let material: Material
  private let options: Options
  private let epoll: Int32
  private let context: TLSContext
  private let production: Listener
  private let sandbox: Listener
  private let watch: FolderWatch
  private var tokensFile: WatchedFile
  private var scriptFile: WatchedFile?

  private var judge: Judge
  private var script = ScriptRun(Script())
  private var answerer = Answerer()
  private var log: RequestLog?
  private var screen: LockScreen?
  private var phone: Phone

  private var peers: [Int: Peer] = [:]
  private var lastPeer = 0
  private var unfinished: Set<Int> = []
  private var delayed = Agenda<Delayed>()

  /// Makes or reads everything, and listens.
  package init(_ options: Options) throws(SimulatorFault) {
    self.options = options
    let material = try Material(directory: options.directory)
    self.material = material
    // A file of an earlier run would point to ports where nobody listens.
    unlink(material.settingsFile)
    let epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard epoll >= 0 else { throw Files.fault("epoll") }
    self.epoll = epoll
    do {
      context = try TLSContext(
        certificateFile: material.certificateFile, keyFile: material.certificateKeyFile)
    } catch { throw SimulatorFault(.configuration, "\(error)") }
    do {
      production = try Listener(port: options.productionPort, epoll: epoll, tag: Tag.production)
      sandbox = try Listener(port: options.sandboxPort, epoll: epoll, tag: Tag.sandbox)
    } catch { throw SimulatorFault(.inputOutput, "\(error)") }
    judge = Judge(
      credentials: Credentials(teamID: options.teamID, keys: material.keys),
      rules: Examination.Rules(unknownTokens: options.unknownTokens, topics: options.topics))
    phone = Phone(
      adopter: options.adopt.map { Adopter(database: $0, delay: options.adoptAfter ?? .seconds(2)) })
    tokensFile = WatchedFile(material.tokensFile)
    scriptFile = options.script.map { WatchedFile($0) }
    watch = try FolderWatch(filesAt: [material.tokensFile] + (options.script.map { [$0] } ?? []))
    log = try options.log.map { (path) throws(SimulatorFault) in try RequestLog(path) }
    // A file that is wrong at the start is refused; one that becomes wrong leaves the old one in force.
    try readTokens()
    try readScript(isFirst: true)
    enter(watch.descriptor, Tag.watch)
    let settings = self.settings
    try Files.write(Array(settings.utf8), to: material.settingsFile, mode: 0o600)
  }

  deinit { close(epoll) }

  package var productionPort: UInt16 { production.port }
  package var sandboxPort: UInt16 { sandbox.port }

  /// The settings that point nudged here, one a line.
  package var settings: String {
    material.settings(teamID: options.teamID, productionPort: productionPort, sandboxPort: sandboxPort)
  }

  private func enter(_ descriptor: Int32, _ tag: UInt64) {
    var event = epoll_event(events: EPOLLIN.rawValue, data: epoll_data_t(u64: tag))
    epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event)
  }

  // MARK: The loop

  /// Prints the settings, then serves until `signals`, a signalfd(2), becomes readable.
  ///
  /// - Parameter output: where the settings and the lock screen go.
  package func run(signals: Int32, output: Int32) {
    if options.isQuiet {
      Files.writeAll(Array(settings.utf8), to: output)
    } else {
      screen = LockScreen(descriptor: output, heading: settings)
    }
    enter(signals, Tag.signals)
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    while true {
      let count = wait(&events)
      for index in 0..<count {
        switch events[index].data.u64 {
        case Tag.signals: return finish(signals)
        case Tag.watch: readChanges()
        case Tag.production: accept(production, .production)
        case Tag.sandbox: accept(sandbox, .sandbox)
        case let tag: serve(Int(tag - Tag.firstPeer))
        }
      }
      for number in unfinished { serve(number) }
      performDue()
      passTime()
      screen?.update(now: ContinuousClock.now)
    }
  }

  private func wait(_ events: inout [epoll_event]) -> Int {
    let now = ContinuousClock.now
    let change = phone.nextChange.map { now + .milliseconds(max(0, $0 - Self.wallMilliseconds())) }
    let due = [delayed.due, screen?.due, phone.due, change, unfinished.isEmpty ? nil : now]
      .compactMap { $0 }.min()
    guard let due else { return max(0, Int(nudged_epoll_wait(epoll, &events, Int32(events.count), nil))) }
    let (seconds, attoseconds) = max(.zero, due - now).components
    var time = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    return max(0, Int(nudged_epoll_wait(epoll, &events, Int32(events.count), &time)))
  }

  private func finish(_ signals: Int32) {
    log?.flush()
    screen?.end()
    // They point to ports where nobody listens from now on.
    unlink(material.settingsFile)
    for peer in peers.values {
      peer.connection.session?.goaway(lastStream: Int32.max, code: 0, debug: [])
      peer.connection.flush()
      peer.connection.close()
    }
  }

  private func accept(_ listener: Listener, _ host: Environment) {
    for socket in listener.accept() {
      lastPeer += 1
      let connection = ServerConnection(
        accepting: socket, context: context, settings: [.maximumStreams(options.firstStreams)], epoll: epoll,
        tag: Tag.firstPeer + UInt64(lastPeer))
      peers[lastPeer] = Peer(lastPeer, host, connection)
    }
  }

  private func serve(_ number: Int) {
    guard let peer = peers[number] else { return }
    let isUnfinished = peer.connection.advance()
    if let session = peer.connection.session {
      let arrived = session.takeRequests()
      if !arrived.isEmpty {
        // What was written to a file before a request was sent holds for that request.
        readChanges()
        let wall = Self.wallMilliseconds()
        let now = ContinuousClock.now
        for id in arrived { handle(id, peer, session, wall, now) }
        log?.flush()
      }
    }
    peer.connection.flush()
    if isUnfinished { unfinished.insert(number) } else { unfinished.remove(number) }
    if peer.connection.phase == .closed { remove(peer) }
  }

  private func remove(_ peer: Peer) {
    peers[peer.number] = nil
    unfinished.remove(peer.number)
    if let fault = peer.connection.fault {
      note("connection \(peer.number) to \(peer.host.rawValue): \(fault)")
    }
  }

  // MARK: Requests

  private func handle(
    _ id: RequestID, _ peer: Peer, _ session: ServerSession, _ wall: Int64, _ now: ContinuousClock.Instant
  ) {
    guard let push = session.withRequest(id, { Push($0) }) else { return }
    let refusal = judge.refusal(
      of: push, on: &peer.credentials, host: peer.host, wallMilliseconds: wall, now: now)
    if !peer.hasRaisedStreams, peer.credentials.isProven {
      // Documented: 1 until a request with a good token was posted.
      peer.hasRaisedStreams = true
      session.submit([.maximumStreams(options.streams)])
    }
    peer.requests += 1
    let plan = Plan(
      id: id, pushID: answerer.pushID(of: push, isGood: refusal?.reason != "BadMessageId"), host: peer.host,
      refusal: refusal, action: script.action(for: push, host: peer.host, ofConnection: peer.requests),
      wallMilliseconds: wall)
    let reception = phone.receive(push, plan, now: now)
    if log != nil, let request = session.withRequest(id, { $0 }) {
      log?.append(request, push, plan, reception, connection: peer.number)
    }
    if let action = plan.action {
      if !action.settings.isEmpty { session.submit(action.settings) }
      if action.sendsHints { session.inform(id, status: 103) }
    }
    screen?.show(push, plan, reception)
    if let delay = plan.action?.delay {
      delayed.add(Delayed(peer: peer.number, plan: plan), due: now + delay)
    } else {
      answerer.perform(plan, on: peer.connection)
    }
  }

  private func performDue() {
    guard delayed.due != nil else { return }
    var touched: [Int: Peer] = [:]
    for item in delayed.takeDue(now: ContinuousClock.now) {
      guard let peer = peers[item.peer] else { continue }
      answerer.perform(item.plan, on: peer.connection)
      touched[item.peer] = peer
    }
    for peer in touched.values {
      peer.connection.flush()
      if peer.connection.phase == .closed { remove(peer) }
    }
  }

  // MARK: Live Activities

  /// Lets time pass on the phone, and shows what has happened there besides pushes.
  private func passTime() {
    let wall = Self.wallMilliseconds()
    phone.pass(to: wall, now: ContinuousClock.now)
    for happening in phone.takeHappenings() {
      if let token = happening.token { judge.issue(token, to: happening.card) }
      if happening.isFault { note("Live Activity \(happening.card.number) \(happening.words)") }
      screen?.show(happening.card, happening.words, wallMilliseconds: wall)
    }
  }

  // MARK: Files

  private func readChanges() {
    guard watch.take() else { return }
    do throws(SimulatorFault) { try readTokens() } catch { note("\(error); the tokens known before stay") }
    do throws(SimulatorFault) { try readScript(isFirst: false) } catch {
      note("\(error); the old script stays in force")
    }
  }

  private func readTokens() throws(SimulatorFault) {
    guard let content = try tokensFile.changed() else { return }
    do throws(TextFault) { judge.tokens = try content.map(TokenTable.init) ?? TokenTable() } catch {
      throw SimulatorFault(.configuration, "\(tokensFile.path): \(error.words(in: content ?? []))")
    }
    let tokens = judge.tokens
    phone.swipe { tokens.isDead($0) }
  }

  /// Numbers of requests start again with each script.
  private func readScript(isFirst: Bool) throws(SimulatorFault) {
    guard let content = try scriptFile?.changed(), let path = scriptFile?.path else {
      if isFirst, let path = scriptFile?.path {
        throw SimulatorFault(.configuration, "\(path): no such file")
      }
      return
    }
    guard let content else { throw SimulatorFault(.configuration, "\(path): the file is gone") }
    do throws(TextFault) { script = ScriptRun(try Script(content)) } catch {
      throw SimulatorFault(.configuration, "\(path): \(error.words(in: content))")
    }
  }

  /// A line for the person who runs the simulator.
  private func note(_ words: String) {
    screen?.pause()
    Files.writeAll(Array("apns-simulator: \(words)\n".utf8), to: STDERR_FILENO)
  }

  package static func wallMilliseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
