import APNs
import Glibc
import OpenSSL

/// The simulator's directory: trust root, server certificate and signing keys, made when they are missing and
/// used again when they are there.
package struct Material {
  /// The key that is made when the directory has none.
  static let keyID = "LOCALKEY01"

  package let directory: String
  package var authorityFile: String { directory + "/ca.pem" }
  package var certificateFile: String { directory + "/server.pem" }
  package var certificateKeyFile: String { directory + "/server.key" }
  package var settingsFile: String { directory + "/settings.env" }
  package var tokensFile: String { directory + "/tokens.json" }

  /// Every key in the directory by its id.
  let keys: [String: VerifyingKey]
  /// The file of the key to use.
  package let keyFile: String

  /// - Parameter directory: made when it is missing; nil for a new temporary one.
  package init(directory: String?) throws(SimulatorFault) {
    if let directory {
      self.directory = try Files.makeDirectory(directory)
    } else {
      self.directory = try Files.makeTemporaryDirectory()
    }
    try Self.makeCertificates(self.directory)
    var files = try Files.names(in: self.directory).filter { KeyIdentity.keyID(fromPath: $0) != nil }.sorted()
    if files.isEmpty {
      let name = "AuthKey_\(Self.keyID).p8"
      try Files.write(try Self.makeKey(), to: self.directory + "/" + name, mode: 0o600)
      files = [name]
    }
    var keys: [String: VerifyingKey] = [:]
    for file in files {
      let path = self.directory + "/" + file
      do throws(SigningKeyFault) {
        if let id = KeyIdentity.keyID(fromPath: file) {
          keys[id] = VerifyingKey(of: try SigningKey(pem: Files.readOrEmpty(path)))
        }
      } catch { throw SimulatorFault(.configuration, "\(path): \(error.description)") }
    }
    self.keys = keys
    keyFile = self.directory + "/" + files[0]
  }

  private static func makeKey() throws(SimulatorFault) -> [UInt8] {
    do throws(SigningKeyFault) { return try SigningKey.make().pem() } catch {
      throw SimulatorFault(.inputOutput, error.description)
    }
  }

  private static func makeCertificates(_ directory: String) throws(SimulatorFault) {
    let files = ["ca.pem", "server.pem", "server.key"].map { directory + "/" + $0 }
    if files.allSatisfy({ access($0, R_OK) == 0 }) { return }
    let made: TestCertificate
    do throws(TLSFault) {
      made = try TestCertificate(names: "DNS:localhost,IP:127.0.0.1,IP:::1")
    } catch { throw SimulatorFault(.inputOutput, error.description) }
    try Files.write(made.root, to: files[0], mode: 0o644)
    try Files.write(made.certificate, to: files[1], mode: 0o644)
    try Files.write(made.key, to: files[2], mode: 0o600)
  }

  /// A provider token for the key in the settings, good for an hour: the value of `authorization`.
  package func authorization(teamID: String, wallMilliseconds: Int64) throws(SimulatorFault) -> String {
    let token: ProviderToken
    do throws(HeaderFault) {
      let keyID = KeyIdentity.keyID(fromPath: keyFile) ?? ""
      token = try ProviderToken(pem: Files.readOrEmpty(keyFile), keyID: keyID, teamID: teamID)
    } catch { throw SimulatorFault(.configuration, "\(keyFile): \(error.words)") }
    do throws(SigningKeyFault) {
      let current = try token.current(wallMilliseconds: wallMilliseconds, now: ContinuousClock.now)
      return String(decoding: current.headerValue, as: UTF8.self)
    } catch { throw SimulatorFault(.inputOutput, error.description) }
  }

  /// The settings that point nudged to the simulator, as a shell reads them.
  func settings(teamID: String, productionPort: UInt16, sandboxPort: UInt16) -> String {
    let settings = [
      ("NUDGED_KEY_FILE", keyFile), ("NUDGED_TEAM_ID", teamID),
      ("NUDGED_PRODUCTION_URL", "https://localhost:\(productionPort)"),
      ("NUDGED_SANDBOX_URL", "https://localhost:\(sandboxPort)"), ("NUDGED_CA_FILE", authorityFile),
    ]
    return settings.map { "\($0)=\(Self.quoted($1))\n" }.joined()
  }

  /// A value as a shell takes it: bare when it is plain, else in single quotes.
  static func quoted(_ value: String) -> String {
    let isPlain = value.utf8.allSatisfy {
      (0x30...0x39).contains($0) || (0x61...0x7a).contains($0 | 0x20) || "/:._-+,@%".utf8.contains($0)
    }
    if isPlain, !value.isEmpty { return value }
    return "'" + value.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
