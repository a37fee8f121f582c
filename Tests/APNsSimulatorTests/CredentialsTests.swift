import Testing

@testable import APNsSimulator

@Suite("Credentials")
struct CredentialsTests {
  private func judge(_ court: inout Court, _ authorization: String?) -> String? {
    court.judge(court.good().with("authorization", authorization))?.reason
  }

  @Test("a good token is accepted, in each form that APNs accepts")
  func good() throws {
    for (isText, isDER) in [(false, false), (true, false), (false, true)] {
      var court = try Court()
      // Several, since the length of the DER form depends on the signature.
      let token = try court.key.jwt(issuedAt: court.wallSeconds, issuedAtIsText: isText, der: isDER)
      #expect(judge(&court, "bearer \(token)") == nil)
      #expect(court.connection.isProven)
    }
    var court = try Court()
    #expect(judge(&court, "Bearer \(try court.key.jwt(issuedAt: court.wallSeconds))") == nil)
  }

  @Test("what is no token of this key and team is invalid")
  func invalid() throws {
    let wall: Int64 = 1_800_000_000
    let court = try Court()
    let stranger = try TestKey()
    let good = try court.key.jwt(issuedAt: wall)
    let parts = good.split(separator: ".").map(String.init)
    let forged = TestKey.base64(Array(#"{"iss":"SIMULATOR1","iat":1800000001}"#.utf8))
    let bad = [
      try stranger.jwt(issuedAt: wall), try court.key.jwt(alg: "HS256", issuedAt: wall),
      try court.key.jwt(alg: "none", issuedAt: wall), try court.key.jwt(kid: "OTHERKEY01", issuedAt: wall),
      try court.key.jwt(iss: "OTHERTEAM1", issuedAt: wall),
      // The classic: team and key swapped.
      try court.key.jwt(kid: "SIMULATOR1", iss: "LOCALKEY01", issuedAt: wall),
      try court.key.jwt(header: #"{"alg":"ES256","kid":"LOCALKEY01"}"#, claims: #"{"iss":"SIMULATOR1"}"#),
      try court.key.jwt(header: #"{"kid":"LOCALKEY01"}"#, claims: #"{"iss":"SIMULATOR1","iat":1800000000}"#),
      try court.key.jwt(header: "[]", claims: "{}"), "\(parts[0]).\(forged).\(parts[2])",
      "\(parts[0]).\(parts[1])",
      "\(parts[0]).\(parts[1]).", good + ".x", good + "A", "a.b.c", "", "..",
    ]
    for token in bad {
      var fresh = court
      #expect(judge(&fresh, "bearer \(token)") == "InvalidProviderToken", "\(token)")
      #expect(!fresh.connection.isProven)
    }
    var fresh = court
    #expect(judge(&fresh, "basic \(good)") == "InvalidProviderToken")
    #expect(judge(&fresh, good) == "InvalidProviderToken")
    #expect(judge(&fresh, nil) == "MissingProviderToken")
  }

  @Test("a token is good for an hour, also on a connection that knows it")
  func expired() throws {
    for (age, reason) in [
      (3_600, nil), (3_601, "ExpiredProviderToken"), (-3_600, nil), (-3_601, "InvalidProviderToken"),
    ]
      as [(Int64, String?)]
    {
      var court = try Court()
      let token = try court.key.jwt(issuedAt: court.wallSeconds - age)
      #expect(judge(&court, "bearer \(token)") == reason, "\(age)")
    }
    var court = try Court()
    let token = "bearer " + (try court.key.jwt(issuedAt: court.wallSeconds))
    #expect(judge(&court, token) == nil)
    court.wallSeconds += 3_601
    #expect(judge(&court, token) == "ExpiredProviderToken")
  }

  @Test("a second new token within 20 minutes makes the connection unusable until they are over")
  func updates() throws {
    var court = try Court()
    let first = "bearer " + (try court.key.jwt(issuedAt: court.wallSeconds))
    let second = "bearer " + (try court.key.jwt(issuedAt: court.wallSeconds + 1))
    #expect(judge(&court, first) == nil)
    #expect(judge(&court, first) == nil)
    court.now += .seconds(1_199)
    #expect(judge(&court, second) == "TooManyProviderTokenUpdates")
    #expect(judge(&court, first) == "TooManyProviderTokenUpdates")
    var other = court
    other.connection = ConnectionCredentials()
    #expect(judge(&other, second) == nil)
    court.now += .seconds(1)
    #expect(judge(&court, second) == nil)
  }

  @Test("a bad token changes nothing for the good one")
  func badBetween() throws {
    var court = try Court()
    let good = "bearer " + (try court.key.jwt(issuedAt: court.wallSeconds))
    #expect(judge(&court, good) == nil)
    #expect(judge(&court, "bearer x") == "InvalidProviderToken")
    #expect(judge(&court, good) == nil)
  }
}
