import Foundation
import OpenSSL
import Testing

@Suite("SigningKey")
struct SigningKeyTests {
  let folder: Folder

  init() throws {
    folder = try Folder()
    try folder.openssl("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem")
    try folder.openssl("pkey -in key.pem -pubout -out public.pem")
  }

  @Test("signs 1,000 messages as 64 bytes that openssl verifies, leading zeros included")
  func signatures() throws {
    let key = try SigningKey(pem: folder.read("key.pem"))
    var sample: [(message: [UInt8], signature: [UInt8])] = []
    for number in 0..<1_000 {
      let message = Array("message \(number)".utf8)
      let signature = try key.sign(message)
      #expect(signature.count == 64)
      // All with a leading zero, and a few others.
      if signature[0] == 0 || signature[32] == 0 || number % 125 == 0 { sample.append((message, signature)) }
    }
    for (message, signature) in sample {
      try folder.write(message, to: "message")
      try folder.write(derSignature(signature), to: "signature")
      #expect(try folder.openssl("dgst -sha256 -verify public.pem -signature signature message") == 0)
    }
    try folder.write(Array("another".utf8), to: "message")
    #expect(try folder.openssl("dgst -sha256 -verify public.pem -signature signature message") != 0)
  }

  @Test(
    "takes every form of an unencrypted P-256 key",
    arguments: [
      "pkey -in key.pem -out other",
      "ec -in key.pem -out other",
      "pkcs8 -topk8 -nocrypt -in key.pem -outform DER -out other",
      "ec -in key.pem -outform DER -out other",
      "ec -in key.pem -param_enc explicit -out other",
      "pkcs8 -topk8 -nocrypt -in key.pem -param_enc explicit -out other",
      "ec -in key.pem -no_public -out other",
      "ec -in key.pem -conv_form compressed -out other",
      "ecparam -name prime256v1 -genkey -out other",
    ])
  func forms(_ command: String) throws {
    if command.hasPrefix("pkcs8"), command.contains("explicit") {
      try folder.openssl(
        "genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit -out other")
    } else {
      #expect(try folder.openssl(command) == 0)
    }
    let key = try SigningKey(pem: folder.read("other"))
    let signature = try key.sign([1, 2, 3])
    try folder.write([1, 2, 3], to: "message")
    try folder.write(derSignature(signature), to: "signature")
    try folder.write(folder.read("other"), to: "key-used")
    for form in ["PEM", "DER"]
    where try folder.openssl("pkey -in other -inform \(form) -pubout -out used.pem") == 0 {
      #expect(try folder.openssl("dgst -sha256 -verify used.pem -signature signature message") == 0)
      return
    }
    Issue.record("openssl cannot read the key it made")
  }

  @Test("takes CRLF, text around the block, and no newline at the end")
  func texts() throws {
    let pem = String(decoding: try folder.read("key.pem"), as: UTF8.self)
    let crlf = pem.split(separator: "\n").joined(separator: "\r\n")
    for text in [crlf, "a key\nfor push\n\n" + pem + "end\n", String(pem.dropLast())] {
      let key = try SigningKey(pem: Array(text.utf8))
      #expect(try key.sign([]).count == 64)
    }
  }

  @Test(
    "refuses everything else and says what it is",
    arguments: [
      ("pkcs8 -topk8 -in key.pem -passout pass:secret -out other", "encrypted"),
      ("pkcs8 -topk8 -in key.pem -passout pass:secret -outform DER -out other", "encrypted"),
      ("ec -in key.pem -aes128 -passout pass:secret -out other", "encrypted"),
      ("pkey -in key.pem -pubout -out other", "public key"),
      ("pkey -in key.pem -pubout -outform DER -out other", "public key"),
      ("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out other", "RSA"),
      ("genpkey -algorithm ED25519 -out other", "ED25519"),
      ("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-384 -out other", "secp384r1"),
      ("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1 -outform DER -out other", "secp256k1"),
      ("req -x509 -key key.pem -subj /CN=x -out other", "CERTIFICATE"),
      ("ecparam -name prime256v1 -out other", "EC PARAMETERS"),
    ])
  func refusals(_ command: String, _ word: String) throws {
    #expect(try folder.openssl(command) == 0)
    let bytes = try folder.read("other")
    let fault = try #require(throws: SigningKeyFault.self) { try SigningKey(pem: bytes) }
    #expect(fault.description.contains(word), "\(fault)")
  }

  @Test("refuses what is empty, garbage, cut short or altered, without repeating any of it")
  func garbage() throws {
    let pem = try folder.read("key.pem")
    let text = String(decoding: pem, as: UTF8.self)
    let body = try #require(text.split(separator: "\n").dropFirst().first)
    let inputs: [[UInt8]] = [
      [], [0], Array("hello".utf8), [UInt8](repeating: 0x30, count: 5_000), Array(pem.prefix(80)),
      Array(
        text.replacingOccurrences(of: String(body.prefix(30)), with: String(repeating: "A", count: 30)).utf8),
      Array("-----BEGIN \(body)-----\nx\n-----END \(body)-----\n".utf8),
      Array(body.utf8), [UInt8](repeating: 0, count: 2 << 20),
    ]
    for input in inputs {
      let fault = try #require(throws: SigningKeyFault.self) { try SigningKey(pem: input) }
      #expect(!fault.description.contains(body.prefix(12)))
      #expect(fault.description.count > 10)
    }
  }
}

/// The SEQUENCE of two INTEGERs that the `openssl` command wants (RFC 3279, 2.2.3).
private func derSignature(_ signature: [UInt8]) -> [UInt8] {
  func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
    var value = Array(bytes.drop { $0 == 0 })
    if value.isEmpty || value[0] >= 0x80 { value.insert(0, at: 0) }
    return [2, UInt8(value.count)] + value
  }
  let content = integer(signature[..<32]) + integer(signature[32...])
  return [0x30, UInt8(content.count)] + content
}
