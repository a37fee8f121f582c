import OpenSSL
import Testing

@Suite("VerifyingKey")
struct VerifyingKeyTests {
  private let message = Array("what was signed".utf8)

  @Test("what the key signed is verified, raw and as OpenSSL's own DER")
  func good() throws {
    let folder = try Folder()
    let key = try SigningKey.make()
    try folder.write(try key.pem(), to: "key.pem")
    try folder.write(message, to: "message")
    // The length of both forms' integers depends on the signature.
    for _ in 0..<40 {
      #expect(VerifyingKey(of: key).verifies(try key.sign(message), over: message))
      #expect(try folder.openssl("dgst -sha256 -sign key.pem -out signature message") == 0)
      #expect(VerifyingKey(of: key).verifies(try folder.read("signature"), over: message))
    }
  }

  @Test("anything else is not")
  func bad() throws {
    let key = try SigningKey.make()
    let signature = try key.sign(message)
    let verifying = VerifyingKey(of: key)
    #expect(!VerifyingKey(of: try SigningKey.make()).verifies(signature, over: message))
    #expect(!verifying.verifies(signature, over: message + [0]))
    for index in signature.indices {
      var changed = signature
      changed[index] ^= 1
      #expect(!verifying.verifies(changed, over: message))
    }
    for other: [UInt8] in [
      [], [0x30], [0x30, 0x00], Array(signature.dropLast()), signature + [0], .init(repeating: 0, count: 64),
      .init(repeating: 255, count: 64),
    ] {
      #expect(!verifying.verifies(other, over: message))
    }
  }

  @Test("a key that was made is read again, by us and by openssl")
  func made() throws {
    let folder = try Folder()
    let key = try SigningKey.make()
    let pem = try key.pem()
    #expect(String(decoding: pem, as: UTF8.self).hasPrefix("-----BEGIN PRIVATE KEY-----\n"))
    let again = try SigningKey(pem: pem)
    #expect(VerifyingKey(of: key).verifies(try again.sign(message), over: message))
    try folder.write(pem, to: "key.p8")
    #expect(try folder.openssl("pkey -in key.p8 -noout -check") == 0)
  }
}
