import Foundation
import Glibc

/// Keys and certificates, made by the `openssl` command once per test run.
struct Credentials: Sendable {
  static let keyID = "ABC123DEFG"
  static let secondKeyID = "ZYX987WVUT"
  static let teamID = "TEAM123456"

  let folder: String

  /// The trust root that nudged is told about.
  var authority: String { "\(folder)/ca.pem" }
  /// For 127.0.0.1, signed by the trust root.
  var certificate: String { "\(folder)/good.pem" }
  var wrongName: String { "\(folder)/wrong-name.pem" }
  var expired: String { "\(folder)/expired.pem" }
  /// For 127.0.0.1, signed by nobody that nudged knows.
  var untrusted: String { "\(folder)/untrusted.pem" }
  var serverKey: String { "\(folder)/server.key" }
  /// As Apple hands it out: PKCS #8, named after its id.
  var providerKey: String { "\(folder)/AuthKey_\(Self.keyID).p8" }
  var secondProviderKey: String { "\(folder)/AuthKey_\(Self.secondKeyID).p8" }
  var providerPublicKey: String { "\(folder)/public.pem" }
  var secondProviderPublicKey: String { "\(folder)/public-2.pem" }

  static let shared: Result<Credentials, Failure> = Result { try make() }.mapError { Failure("\($0)") }

  private static func make() throws -> Credentials {
    let folder = try temporaryFolder("credentials")
    let script = """
      set -e
      exec 2>openssl.log
      openssl ecparam -name prime256v1 -genkey -noout -out ca.key
      openssl ecparam -name prime256v1 -genkey -noout -out server.key
      openssl req -x509 -new -key ca.key -subj '/CN=test root' -days 3 -out ca.pem
      openssl req -new -key server.key -subj '/CN=peer' -out peer.csr
      printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\\n' > good.ext
      printf 'subjectAltName=DNS:elsewhere.example,IP:127.0.0.9\\n' > wrong.ext
      sign() { openssl x509 -req -in peer.csr -CA ca.pem -CAkey ca.key -CAcreateserial "$@"; }
      sign -days 2 -extfile good.ext -out good.pem
      sign -days 2 -extfile wrong.ext -out wrong-name.pem
      : > index.txt
      openssl ca -batch -config /dev/stdin -cert ca.pem -keyfile ca.key -in peer.csr -out expired.pem -notext \\
        -startdate 20200101000000Z -enddate 20200201000000Z -extfile good.ext <<'CONFIG'
      [ca]
      default_ca = test
      [test]
      database = index.txt
      new_certs_dir = .
      default_md = sha256
      policy = any
      rand_serial = yes
      [any]
      commonName = supplied
      CONFIG
      openssl req -x509 -new -key server.key -subj '/CN=stranger' -addext subjectAltName=IP:127.0.0.1 -days 2 \\
        -out untrusted.pem
      provider() {
        openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1"
        openssl pkey -in "$1" -pubout -out "$2"
      }
      provider AuthKey_\(keyID).p8 public.pem
      provider AuthKey_\(secondKeyID).p8 public-2.pem
      """
    let result = try runToEnd(["/bin/sh", "-c", "cd '\(folder)'\n" + script], folder: folder)
    guard result.exit == .code(0) else {
      let log = try? String(contentsOfFile: "\(folder)/openssl.log", encoding: .utf8)
      throw Failure("openssl failed: \(log ?? "") \(result.errors)")
    }
    atexit {
      if case .success(let made) = Credentials.shared {
        try? FileManager.default.removeItem(atPath: made.folder)
      }
    }
    return Credentials(folder: folder)
  }
}

/// A new folder under the system's temporary one; those of an earlier run are not reused.
func temporaryFolder(_ name: String) throws -> String {
  let root = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
  let folder = "\(root)/nudged-e2e-\(getpid())-\(name)-\(UUID().uuidString.prefix(8))"
  try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  return folder
}

/// Runs a short helper program and waits for it.
func runToEnd(
  _ command: [String], folder: String, input: String? = nil
) throws -> (exit: Exit, output: String, errors: String) {
  let child = try Child("helper-\(UUID().uuidString.prefix(8))", command, folder: folder)
  if let input { try child.write(line: input) }
  child.endInput()
  let exit = child.waitBlocking()
  return (exit, child.output, child.errors)
}
