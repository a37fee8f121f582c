import APNs

/// How far one comes towards a host, step by step; no request is sent and no provider token is made.
package struct HostCheck: Sendable {
  package typealias Step = HostStep

  package let host: Configuration.Host
  /// The address that was reached.
  package let address: String?
  /// The steps that were done, and how long each took.
  package let done: [(step: Step, took: Duration)]
  /// The step that failed, and why in words.
  package let failure: (step: Step, words: String)?

  private init(_ host: Configuration.Host, _ connection: PushConnection, began: ContinuousClock.Instant) {
    self.host = host
    address = connection.peerAddress
    var before = began
    var done: [(step: Step, took: Duration)] = []
    for step in Step.allCases {
      guard let at = connection.doneAt(step) else { continue }
      done.append((step, at - before))
      before = at
    }
    self.done = done
    failure = connection.failedStep
  }

  /// Dials all of `hosts` at once, as the worker does, and closes each connection as soon as it could be used.
  ///
  /// - Parameter caFile: a PEM file with a further trust root.
  package static func run(
    _ hosts: [Configuration.Host], caFile: String?, clock: Clock = .system
  ) throws(Failure) -> [HostCheck] {
    let poller = try Poller()
    let network: Network
    do throws(NetworkFault) {
      network = try Network(
        caFile: caFile, epoll: poller.descriptor, resolverTag: 0, answerTimeout: .seconds(30))
    } catch {
      throw Failure(.configuration, error.words)
    }
    let began = clock.now()
    let connections = hosts.map { host in
      network.connect(host: host.name, port: host.port, tag: 1, now: began)
    }
    var checks = [HostCheck?](repeating: nil, count: hosts.count)
    while true {
      let now = clock.now()
      var deadlines: [ContinuousClock.Instant] = []
      for (index, connection) in connections.enumerated() where checks[index] == nil {
        connection.advance(now: now)
        if connection.phase == .dialing {
          if let deadline = connection.deadline { deadlines.append(deadline) }
        } else {
          checks[index] = HostCheck(hosts[index], connection, began: began)
          connection.close(now: now)
        }
      }
      guard let next = deadlines.min() else { break }
      poller.wait(next - now) { tag in
        if tag == 0 { network.collectNames() }
      }
    }
    return checks.compactMap(\.self)
  }
}

extension Configuration.Key {
  /// Why the file's content is no key for provider tokens, in words; nil when it is one.
  package var objection: String? {
    do {
      // The team plays no part in what the file holds.
      _ = try ProviderToken(pem: content, keyID: id, teamID: id)
      return nil
    } catch {
      return error.words
    }
  }
}
