import OpenSSL
import Testing

@Suite("TLSContext")
struct TLSContextTests {
  @Test("names the file of extra roots that it cannot read, and why")
  func missingRoots() throws {
    let folder = try Folder()
    try folder.write(Array("no certificate".utf8), to: "text.pem")
    for (name, word) in [("none.pem", "No such file"), ("text.pem", ""), (".", "directory")] {
      let path = folder.file(name)
      let fault = try #require(throws: TLSFault.self) { try TLSContext(clientTrusting: path) }
      #expect(fault.description.contains(path))
      #expect(word.isEmpty || fault.description.contains(word), "\(fault)")
    }
  }

  @Test("takes a certificate as an extra root")
  func extraRoots() throws {
    let folder = try Folder()
    try folder.openssl("req -x509 -newkey rsa:2048 -nodes -keyout k.pem -subj /CN=x -out c.pem")
    _ = try TLSContext(clientTrusting: folder.file("c.pem"))
  }
}
