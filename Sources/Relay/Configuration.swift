import APNs

/// Everything that `nudged run` was told, checked and complete; durations and sizes carry their types.
package struct Configuration: Sendable {
  /// One of Apple's hosts as it is to be used.
  package struct Host: Sendable {
    /// Which of the two environments it serves.
    package var environment: Environment
    /// Name or address to dial, e.g. `api.push.apple.com`.
    package var name: String
    /// TCP port, 443 unless the URL says otherwise.
    package var port: UInt16
    /// The key to sign with; a host without one is never dialled.
    package var key: Key?

    package init(environment: Environment, name: String, port: UInt16, key: Key?) {
      self.environment = environment
      self.name = name
      self.port = port
      self.key = key
    }
  }

  /// A signing key from the developer account; two hosts with the same file share one provider token.
  package struct Key: Sendable, Hashable {
    /// The path it was read from: its identity, and what messages name.
    package var file: String
    /// Apple's ten-character key id.
    package var id: String
    /// The content of the file.
    package var content: [UInt8]

    package init(file: String, id: String, content: [UInt8]) {
      self.file = file
      self.id = id
      self.content = content
    }
  }

  /// The path of the SQLite file.
  package var database: String
  /// Apple's ten-character team id: the issuer of every provider token.
  package var teamID: String
  /// One or both hosts, production first.
  package var hosts: [Host]
  /// A PEM file with a further trust root, e.g. that of a local test server.
  package var caFile: String?
  /// How long after its creation a row without an expiry of its own may still be sent.
  package var expireAfter: Duration = .seconds(3600)
  /// How long Apple may keep a nudge for a phone that is switched off.
  package var storeFor: Duration = .seconds(24 * 3600)
  /// How long settled rows are kept.
  package var retain: Duration = .seconds(30 * 24 * 3600)
  /// How often the database is looked at although nothing pointed to a change.
  package var pollInterval: Duration = .seconds(1)
  /// How long an answer may take once the request was written.
  package var answerTimeout: Duration = .seconds(30)
  /// How long a stopping worker waits for answers.
  package var stopTimeout: Duration = .seconds(5)
  /// How many connections a host may have at once.
  package var connections: Int = 4
  /// Whether the worker ends once nothing is due.
  package var drain: Bool = false

  package init(database: String, teamID: String, hosts: [Host]) {
    self.database = database
    self.teamID = teamID
    self.hosts = hosts
  }
}
