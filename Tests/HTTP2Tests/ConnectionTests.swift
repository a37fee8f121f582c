import Glibc
import HTTP2
import Testing

@Suite("Connection: certificates and protocols")
struct ConnectionTests {
  static func nghttpd(_ certificate: String) throws -> Server {
    try Server("nghttpd -a 127.0.0.1 -d . PORT key.pem \(certificate).pem")
  }

  @Test("connects by name and by address to a peer with a good certificate, and gets an answer")
  func good() throws {
    let server = try Self.nghttpd("good")
    let loop = try Loop()
    for host in ["localhost", "127.0.0.1"] {
      let connection = try loop.connect(host, server.port, trusting: server.authority)
      #expect(connection.phase == .dialing)
      try #require(loop.isOpen(connection), "\(connection.fault?.description ?? "")")
      #expect(connection.phase == .open)
      #expect(connection.isFresh(now: ContinuousClock.now))
      #expect(connection.peerAddress == "127.0.0.1:\(server.port)")
      // nghttpd has no index page: the answer is 404, with a body.
      let ended = loop.send([1, 2, 3], on: connection)
      #expect(ended.map(\.status) == [404, 404, 404])
      #expect(ended.allSatisfy { $0.end == .complete && $0.body?.isEmpty == false })
      connection.probe(now: ContinuousClock.now)
      #expect(!connection.isFresh(now: ContinuousClock.now))
      #expect(loop.run(connection) { connection.isFresh(now: ContinuousClock.now) })
      connection.retire()
      #expect(connection.phase == .closed)
      #expect(connection.fault == nil)
    }
  }

  @Test(
    "refuses a wrong name, an expired certificate and one of an unknown authority, and says which",
    arguments: [
      ("other", "localhost", true, "hostname mismatch"),
      ("other", "127.0.0.1", true, "IP address mismatch"),
      ("expired", "localhost", true, "expired"),
      ("good", "localhost", false, "local issuer"),
    ])
  func refused(_ certificate: String, _ host: String, _ isTrusted: Bool, _ words: String) throws {
    let server = try Self.nghttpd(certificate)
    let loop = try Loop()
    let connection = try loop.connect(host, server.port, trusting: isTrusted ? server.authority : nil)
    #expect(!loop.isOpen(connection))
    #expect(connection.phase == .closed)
    #expect(connection.fault?.stage == .tls)
    #expect(connection.fault?.words.contains(words) == true, "\(connection.fault?.words ?? "")")
    #expect(connection.deadline == nil)
  }

  @Test(
    "sends no byte to a peer without h2",
    arguments: ["-alpn http/1.1", ""])
  func withoutH2(_ option: String) throws {
    let server = try Server("openssl s_server -accept 127.0.0.1:PORT -key key.pem -cert good.pem \(option)")
    let loop = try Loop()
    let connection = try loop.connect("localhost", server.port, trusting: server.authority)
    #expect(!loop.isOpen(connection))
    #expect(connection.fault?.stage == .alpn, "\(connection.fault?.description ?? "")")
  }

  @Test("says when nobody listens, and when a name does not exist")
  func nobody() throws {
    let loop = try Loop()
    let refused = try loop.connect("127.0.0.1", freePort(), trusting: nil)
    #expect(!loop.isOpen(refused))
    #expect(refused.fault?.stage == .connect)
    #expect(refused.fault?.words.contains("Connection refused") == true)
    let unknown = try loop.connect("no-such-host.invalid", 443, trusting: nil)
    #expect(unknown.phase == .dialing)
    #expect(!loop.isOpen(unknown))
    #expect(unknown.fault?.stage == .resolve)
  }

  @Test("gives up a peer that accepts and says nothing")
  func silent() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(listener) }
    let port = try freePort()
    try #require(withLoopback(port) { bind(listener, $0, $1) } == 0)
    listen(listener, 4)
    let loop = try Loop()
    var options = ConnectionOptions()
    options.dialTimeout = .milliseconds(200)
    let connection = try loop.connect("127.0.0.1", port, trusting: nil, options: options)
    #expect(!loop.isOpen(connection))
    #expect(connection.fault?.stage == .tls)
    #expect(connection.fault?.words.contains("not finished") == true)
  }
}
