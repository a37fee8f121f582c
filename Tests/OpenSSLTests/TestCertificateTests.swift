import OpenSSL
import Testing

@Suite("TestCertificate")
struct TestCertificateTests {
  @Test("openssl verifies the certificate under its root, for its names and for no other")
  func verifies() throws {
    let folder = try Folder()
    let made = try TestCertificate(names: "DNS:localhost,IP:127.0.0.1,IP:::1")
    try folder.write(made.root, to: "root.pem")
    try folder.write(made.certificate, to: "server.pem")
    try folder.write(made.key, to: "server.key")
    let verify = "verify -x509_strict -purpose sslserver -CAfile root.pem"
    #expect(try folder.openssl("\(verify) -verify_hostname localhost server.pem") == 0)
    #expect(try folder.openssl("\(verify) -verify_ip 127.0.0.1 server.pem") == 0)
    #expect(try folder.openssl("\(verify) -verify_ip ::1 server.pem") == 0)
    #expect(try folder.openssl("\(verify) -verify_hostname example.com server.pem") != 0)
    #expect(try folder.openssl("verify -CAfile server.pem server.pem") != 0)
    _ = try TLSContext(certificateFile: folder.file("server.pem"), keyFile: folder.file("server.key"))
  }

  @Test("names that are none are a fault, and so are files that hold nothing")
  func faults() throws {
    #expect(throws: TLSFault.self) { try TestCertificate(names: "IP:nowhere") }
    let folder = try Folder()
    let made = try TestCertificate(names: "DNS:localhost")
    let other = try TestCertificate(names: "DNS:localhost")
    try folder.write(made.certificate, to: "server.pem")
    try folder.write(other.key, to: "other.key")
    try folder.write([], to: "empty")
    for (certificate, key, words) in [
      ("none", "other.key", "cannot use the certificate in"),
      ("empty", "other.key", "cannot use the certificate in"),
      ("server.pem", "none", "cannot use the key in"), ("server.pem", "empty", "cannot use the key in"),
      ("server.pem", "other.key", "key values mismatch"),
    ] {
      let fault = #expect(throws: TLSFault.self) {
        try TLSContext(certificateFile: folder.file(certificate), keyFile: folder.file(key))
      }
      #expect(fault?.description.contains(words) == true, "\(fault?.description ?? "")")
    }
  }
}
