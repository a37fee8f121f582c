import Foundation
import Testing

@Suite("Clients that we did not write")
struct ForeignClientsTests {
  private func headers(_ jwt: String) -> [String] {
    [
      "-H", "authorization: bearer \(jwt)", "-H", "apns-topic: com.example.app", "-H",
      "apns-push-type: alert",
    ]
  }

  @Test(
    "curl trusts the certificate by each name of this machine",
    arguments: ["localhost", "127.0.0.1", "[::1]"])
  func curl(_ name: String) throws {
    let simulator = try SimulatorProcess()
    let url = simulator.url("sandbox").replacingOccurrences(of: "localhost", with: name)
    let ran = try run(
      try Programs.named("curl"),
      ["-sS", "-i", "--http2", "--cacert", simulator.authority] + headers(try simulator.jwt())
        + ["-d", #"{"aps":{"alert":"x"}}"#, "\(url)/3/device/abcd"], in: simulator.folder)
    #expect(ran.output.hasPrefix("HTTP/2 200"), "\(ran.output) \(ran.errors)")
    #expect(ran.output.contains("apns-unique-id: "))
  }

  @Test("--print-token gives curl what it needs, also while the simulator runs")
  func printedToken() throws {
    let simulator = try SimulatorProcess(["--team-id", "ABCDEFGHIK"])
    let program = try Programs.simulator()
    let token = try run(
      program, ["--print-token", "--directory", simulator.directory, "--team-id", "ABCDEFGHIK"],
      in: simulator.folder)
    #expect(token.code == 0 && token.output.hasPrefix("bearer ") && token.output.hasSuffix("\n"))
    let authorization = "authorization: " + token.output.trimmingCharacters(in: .newlines)
    let ran = try run(
      try Programs.named("curl"),
      [
        "-sS", "-i", "--http2", "--cacert", simulator.authority, "-H", authorization, "-H",
        "apns-topic: com.example.chat", "-d", #"{"aps":{"alert":"hello"}}"#,
        "\(simulator.url("sandbox"))/3/device/aa01",
      ], in: simulator.folder)
    #expect(ran.output.hasPrefix("HTTP/2 200"), "\(ran.output) \(ran.errors)")
    #expect(FileManager.default.fileExists(atPath: simulator.directory + "/settings.env"))
    let without = try run(program, ["--print-token"], in: simulator.folder)
    #expect(without.code == 64 && without.errors.contains("--print-token needs the --directory"))
  }

  @Test("who does not trust the authority gets no connection, and the simulator goes on")
  func untrusted() throws {
    let simulator = try SimulatorProcess()
    let ran = try run(
      try Programs.named("curl"), ["-sS", "--http2", "\(simulator.url("sandbox"))/3/device/abcd"],
      in: simulator.folder)
    #expect(ran.code == 60)
    #expect(try simulator.node([TestPush(jwt: try simulator.jwt())]).results[0].status == 200)
  }

  @Test("a client without h2 is refused in the handshake")
  func alpn() throws {
    let simulator = try SimulatorProcess()
    let curl = try run(
      try Programs.named("curl"),
      ["-sS", "--http1.1", "--cacert", simulator.authority, simulator.url("sandbox")],
      in: simulator.folder)
    #expect(curl.code == 35 && curl.errors.contains("no application protocol"))
    let port = simulator.url("sandbox").split(separator: ":").last.map(String.init) ?? ""
    let none = try run(
      try Programs.named("openssl"),
      ["s_client", "-connect", "127.0.0.1:\(port)", "-CAfile", simulator.authority],
      in: simulator.folder)
    #expect(none.output.contains("No ALPN negotiated") && none.output.contains("Verify return code: 0 (ok)"))
    #expect(eventually { simulator.errors.contains("the client does not offer h2 by ALPN") })
    let two = try run(
      try Programs.named("openssl"),
      ["s_client", "-connect", "127.0.0.1:\(port)", "-alpn", "http/1.1,h2", "-no_tls1_3"],
      in: simulator.folder)
    #expect(two.output.contains("ALPN protocol: h2") && two.output.contains("TLSv1.2"))
    let old = try run(
      try Programs.named("openssl"), ["s_client", "-connect", "127.0.0.1:\(port)", "-alpn", "h2", "-tls1_1"],
      in: simulator.folder)
    #expect(old.output.contains("Cipher is (NONE)"))
    #expect(simulator.isRunning)
  }

  @Test("nghttp reads settings, answer and errors")
  func nghttp() throws {
    let simulator = try SimulatorProcess()
    let body = try simulator.folder.write(#"{"aps":{"alert":"x"}}"#, to: "body")
    let good = try run(
      try Programs.named("nghttp"),
      ["-v", "-d", body] + headers(try simulator.jwt()) + [
        "\(simulator.url("production"))/3/device/abcd"
      ],
      in: simulator.folder)
    #expect(good.output.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1]"))
    #expect(good.output.contains("SETTINGS_MAX_CONCURRENT_STREAMS(0x03):1000]"))
    #expect(good.output.contains(":status: 200"))
    let bad = try run(
      try Programs.named("nghttp"),
      ["--no-verify-peer", "-d", body, "\(simulator.url("production"))/3/device/abcd"],
      in: simulator.folder)
    #expect(bad.output == #"{"reason":"MissingProviderToken"}"#)
  }

  @Test("h2load gets an answer to each of 5,000 pushes on four connections")
  func h2load() throws {
    let simulator = try SimulatorProcess(["--first-streams", "100"])
    let body = try simulator.folder.write(#"{"aps":{"alert":"x"}}"#, to: "body")
    let ran = try run(
      try Programs.named("h2load"),
      ["-n", "5000", "-c", "4", "-m", "100", "-d", body] + headers(try simulator.jwt())
        + ["\(simulator.url("production"))/3/device/abcd"], in: simulator.folder)
    #expect(ran.output.contains("5000 succeeded, 0 failed, 0 errored"), "\(ran.output)")
    #expect(ran.output.contains("status codes: 5000 2xx"))
    #expect(simulator.log.count == 5_000)
  }

  @Test("large bodies are read to their end and refused")
  func large() throws {
    let simulator = try SimulatorProcess()
    let body = String(repeating: "x", count: 300_000)
    let answer = try simulator.node([
      TestPush(jwt: try simulator.jwt(), body: body), TestPush(jwt: try simulator.jwt(), [:]),
    ])
    #expect(answer.results[0].status == 413 && answer.results[0].reason == "PayloadTooLarge")
    #expect(simulator.log.first?["body_bytes"] as? Int == 300_000)
  }

  @Test("bytes that are no TLS end one connection only")
  func noise() throws {
    let simulator = try SimulatorProcess()
    let port = simulator.url("sandbox").split(separator: ":").last.map(String.init) ?? ""
    _ = try run("/bin/bash", ["-c", "echo GET / > /dev/tcp/127.0.0.1/\(port)"], in: simulator.folder)
    #expect(eventually { simulator.errors.contains("connection 1 to sandbox:") })
    #expect(try simulator.node("sandbox", [TestPush(jwt: try simulator.jwt())]).results[0].status == 200)
  }
}
