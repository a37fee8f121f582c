import HTTP2
import OpenSSL

/// What all connections share: the trust roots, the name resolver, and the epoll set that wakes the loop.
package final class Network {
  private let context: TLSContext
  private let resolver: Resolver
  private let epoll: Int32
  private let options: ConnectionOptions

  /// - Parameters:
  ///   - caFile: a PEM file with trust roots besides the system's.
  ///   - epoll: the caller's epoll descriptor; all sockets are entered there with their own tag.
  ///   - resolverTag: what the caller's epoll reports when a name was resolved; `collectNames` is due then.
  ///   - answerTimeout: how long an answer may take once its request was written.
  package init(
    caFile: String?, epoll: Int32, resolverTag: UInt64, answerTimeout: Duration
  ) throws(NetworkFault) {
    do {
      context = try TLSContext(clientTrusting: caFile)
    } catch {
      throw NetworkFault(words: "\(error)")
    }
    do {
      resolver = try Resolver(epoll: epoll, tag: resolverTag)
    } catch {
      throw NetworkFault(words: "\(error)")
    }
    self.epoll = epoll
    var options = ConnectionOptions()
    options.answerTimeout = answerTimeout
    self.options = options
  }

  /// Begins to dial a host; `tag` is what the caller's epoll reports for the connection.
  package func connect(
    host: String, port: UInt16, tag: UInt64, now: ContinuousClock.Instant
  ) -> PushConnection {
    PushConnection(
      Connection(
        endpoint: Endpoint(host: host, port: port), context: context, resolver: resolver, epoll: epoll,
        tag: tag, options: options, capture: "apns-unique-id", now: now))
  }

  /// Takes over what the resolver found; the dialling connections are to be advanced then.
  package func collectNames() { resolver.collect() }
}

/// Why no connection can be made at all, in words.
package struct NetworkFault: Error, CustomStringConvertible, Sendable {
  package let words: String
  package var description: String { words }
}
