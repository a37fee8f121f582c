/// Why a database file cannot be used, in words for the person who has to act on it.
///
/// The outbox knows no exit codes; a command maps `kind` to one.
package struct DatabaseFault: Error, Equatable, CustomStringConvertible {
  /// What is wrong, as far as it decides what to do next.
  package enum Kind: Sendable {
    /// There is no such file.
    case missing
    /// It is no database, is damaged, or its `nudge_` tables are not those that this program knows.
    case malformed
    /// Opening, reading or writing failed: permissions, a directory, a full disk.
    case inputOutput
    /// Another connection held a lock for longer than the busy timeout.
    case busy
    /// The schema refused what was to be written, and says why.
    case refused
  }

  package let kind: Kind
  /// What happened, to which file, and what to do next.
  package let message: String
  /// Whether it may be put right from outside while somebody waits: permissions, a lock, a full disk.
  package let mayPass: Bool

  package init(_ kind: Kind, _ message: String, mayPass: Bool = false) {
    self.kind = kind
    self.message = message
    self.mayPass = mayPass
  }

  package var description: String { message }
}
