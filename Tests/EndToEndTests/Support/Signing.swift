import Foundation
import Testing

/// A worker that signs with the key in `file`, and a phone to send to.
struct Signing {
  let peer: TestPeer
  let file: String
  let worker: Child
  private let s: Scenario

  /// - Parameters:
  ///   - file: the path of what is there already; otherwise `key.p8` is made, with the first key.
  ///   - keyID: what `--production-key-id` says, if anything.
  init(
    _ s: Scenario, _ script: PeerScript = PeerScript(), file: String? = nil,
    keyID: String? = Credentials.keyID, environment: [String: String] = [:]
  ) async throws {
    self.s = s
    peer = try await s.peer(.python, script)
    try s.backend.register("phone-1", token: token(1))
    self.file = file ?? s.path("key.p8")
    if file == nil {
      try FileManager.default.copyItem(atPath: s.credentials.providerKey, toPath: self.file)
    }
    worker = try s.start(
      [
        "run", "--database", s.database, "--ca-file", s.credentials.authority, "--team-id",
        Credentials.teamID,
        "--production-url", peer.url, "--sandbox-url", "https://127.0.0.1:1", "--log-level", "debug",
        "--production-key-file", self.file,
      ] + (keyID.map { ["--production-key-id", $0] } ?? []), environment: environment)
  }

  private static let refusal = "new signing key cannot be used"

  /// What the worker has said about keys that it does not take.
  var refusals: [Substring] { worker.lines(Signing.refusal) }

  func refuses(times: Int) async throws { try await worker.says(Signing.refusal, times: times) }

  func takesNewKey() async throws { try await worker.says("new signing key in use") }

  func send() async throws { try await s.backend.send() }

  /// Requires that `request` was signed with the key whose public half is in `file`, in the word of another library;
  /// returns its key id.
  @discardableResult
  func verify(_ request: TestPeer.Event, by file: String) throws -> String {
    struct Token: Decodable { let header: [String: String] }
    let bearer = try #require(request.header("authorization")?.dropFirst("bearer ".count))
    let result = try runToEnd(
      [Paths.python, "\(Paths.peers)/verify_token.py", file], folder: s.folder, input: String(bearer))
    #expect(result.exit == .code(0), "\(result.output)\(result.errors)")
    return try JSONDecoder().decode(Token.self, from: Data(result.output.utf8)).header["kid"] ?? "none"
  }

  /// The same for the last request that arrived.
  @discardableResult
  func verifyLast(by file: String) throws -> String {
    try verify(try #require(try peer.requests().last), by: file)
  }
}
