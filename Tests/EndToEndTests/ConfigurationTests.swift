import Foundation
import Testing

@Suite("Configuration")
struct ConfigurationTests {
  @Test("half a configuration names what is missing and ends with 78")
  func halfConfiguration() async throws {
    try await scenario { s in
      let key = ["--key-file", s.credentials.providerKey]
      let team = ["--team-id", Credentials.teamID]
      let cases: [([String], String)] = [
        (team, "key-file"), (key, "team-id"), (["--sandbox-key-file", s.credentials.providerKey], "team-id"),
      ]
      for (settings, word) in cases {
        let result = try await s.nudged(["run", "--drain", "--database", s.database] + settings)
        #expect(result.exit == .code(78), "\(settings): \(result.exit) \(result.errors)")
        #expect(result.errors.contains(word), "\(settings): \(result.errors)")
      }
      // A key whose file name does not tell its id.
      let nameless = s.path("key.pem")
      try FileManager.default.copyItem(atPath: s.credentials.providerKey, toPath: nameless)
      let result = try await s.nudged(
        ["run", "--drain", "--database", s.database, "--key-file", nameless] + team)
      #expect(result.exit == .code(78), "\(result.errors)")
      #expect(result.errors.contains("key-id"), "\(result.errors)")
      let database = try await s.nudged(["run", "--drain"] + key + team)
      #expect(database.exit == .code(78) || database.exit == .code(64), "\(database.exit)")
      #expect(database.errors.contains("database"), "\(database.errors)")
    }
  }

  @Test(
    "a misspelt variable is an error that names it",
    arguments: ["NUDGED_TEEM_ID", "NUDGED_CAFILE", "NUDGED_"])
  func misspelt(_ name: String) async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let child = try s.start(["run", "--drain"] + s.settings(production: peer), environment: [name: "x"])
      #expect(try await child.wait() == .code(78), "\(child.errors)")
      #expect(child.errors.contains(name), "\(child.errors)")
    }
  }

  @Test("a key file that is none is refused at start, naming the file and not the key")
  func badKey() async throws {
    try await scenario { s in
      let script = """
        cd '\(s.folder)'
        openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out AuthKey_RSA0000000.p8
        openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out AuthKey_P384000000.p8
        openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -pass pass:x -out AuthKey_LOCKED0000.p8
        cp '\(s.credentials.providerPublicKey)' AuthKey_PUBLIC0000.p8
        head -c 100 '\(s.credentials.providerKey)' > AuthKey_HALF000000.p8
        : > AuthKey_EMPTY00000.p8
        mkdir AuthKey_FOLDER0000.p8
        """
      _ = try runToEnd(["/bin/sh", "-c", script], folder: s.folder)
      let ids = [
        "RSA0000000", "P384000000", "LOCKED0000", "PUBLIC0000", "HALF000000", "EMPTY00000", "FOLDER0000",
        "ABSENT0000",
      ]
      for id in ids {
        let path = s.path("AuthKey_\(id).p8")
        let result = try await s.nudged([
          "run", "--drain", "--database", s.database, "--key-file", path, "--team-id", Credentials.teamID,
        ])
        #expect(result.exit == .code(78), "\(id): \(result.exit) \(result.errors)")
        #expect(result.errors.contains(path), "\(id): \(result.errors)")
        let content = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        for line in content.split(separator: "\n") where !line.hasPrefix("-") {
          #expect(!result.errors.contains(line), "\(id) shows its key")
        }
      }
    }
  }

  @Test("keys in every form that OpenSSL reads are taken")
  func keyForms() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      let script = """
        cd '\(s.folder)'
        openssl ec -in '\(s.credentials.providerKey)' -out sec1.pem
        openssl pkcs8 -topk8 -nocrypt -in '\(s.credentials.providerKey)' -outform DER -out pkcs8.der
        openssl ec -in '\(s.credentials.providerKey)' -outform DER -out sec1.der
        """
      _ = try runToEnd(["/bin/sh", "-c", script], folder: s.folder)
      for name in ["sec1.pem", "pkcs8.der", "sec1.der"] {
        let id = try s.backend.nudge()
        var settings = s.settings(production: peer)
        settings = settings.map { $0 == s.credentials.providerKey ? s.path(name) : $0 }
        let result = try await s.nudged(["run", "--drain"] + settings)
        #expect(result.exit == .code(0), "\(name): \(result.errors)")
        #expect(try s.backend.outcomes(id) == ["accepted"], "\(name)")
      }
    }
  }

  @Test("settings come from variables too, and flags win")
  func variables() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      try s.backend.register("phone-1", token: token(1))
      try s.backend.nudge()
      let environment = [
        "NUDGED_DATABASE": s.database, "NUDGED_KEY_FILE": s.credentials.providerKey,
        "NUDGED_TEAM_ID": Credentials.teamID, "NUDGED_CA_FILE": s.credentials.authority,
        "NUDGED_PRODUCTION_URL": "https://127.0.0.1:1", "NUDGED_SANDBOX_URL": "https://127.0.0.1:1",
        "NUDGED_ANSWER_TIMEOUT": "5s", "NUDGED_STORE_FOR": "1h", "TZ": "Asia/Kolkata",
      ]
      let result = try await s.nudged(
        ["run", "--drain", "--production-url", peer.url], environment: environment)
      #expect(result.exit == .code(0), "\(result.errors)")
      #expect(try peer.requests().count == 1)
    }
  }

  @Test("a value that cannot be read is an error that names its setting")
  func badValues() async throws {
    try await scenario { s in
      let peer = try await s.peer()
      let cases = [
        ("--answer-timeout", "5 bananas"), ("--answer-timeout", "-1s"), ("--poll-interval", "1"),
        ("--connections", "0"), ("--log-level", "shouting"), ("--production-url", "http://127.0.0.1:1"),
        ("--expire-after", ""), ("--retain", "99999999999999999999d"),
      ]
      for (flag, value) in cases {
        let result = try await s.nudged(["run", "--drain"] + s.settings(production: peer) + [flag, value])
        #expect(result.exit == .code(64) || result.exit == .code(78), "\(flag) \(value): \(result.exit)")
        #expect(result.errors.contains(flag.dropFirst(2)), "\(flag) \(value): \(result.errors)")
      }
    }
  }
}
