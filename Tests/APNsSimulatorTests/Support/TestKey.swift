import Foundation
import OpenSSL

/// A signing key, and provider tokens of any shape.
struct TestKey {
  let key: SigningKey

  init() throws { key = try SigningKey.make() }

  init(file: String) throws {
    key = try SigningKey(pem: Array(try Data(contentsOf: URL(fileURLWithPath: file))))
  }

  func jwt(
    alg: String = "ES256", kid: String = "LOCALKEY01", iss: String = "SIMULATOR1", issuedAt: Int64,
    issuedAtIsText: Bool = false, der: Bool = false
  ) throws -> String {
    let issued = issuedAtIsText ? "\"\(issuedAt)\"" : "\(issuedAt)"
    return try jwt(
      header: #"{"alg":"\#(alg)","kid":"\#(kid)"}"#, claims: #"{"iss":"\#(iss)","iat":\#(issued)}"#, der: der)
  }

  func jwt(header: String, claims: String, der: Bool = false) throws -> String {
    let signed = Self.base64(Array(header.utf8)) + "." + Self.base64(Array(claims.utf8))
    var signature = try key.sign(Array(signed.utf8))
    if der { signature = Self.der(signature) }
    return signed + "." + Self.base64(signature)
  }

  static func base64(_ bytes: [UInt8]) -> String {
    Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
      .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }

  /// The DER form, written the plain way: both integers with a leading zero that is needed only sometimes would
  /// be wrong, so it is put only where the top bit is set.
  private static func der(_ raw: [UInt8]) -> [UInt8] {
    func integer(_ digits: ArraySlice<UInt8>) -> [UInt8] {
      var digits = Array(digits.drop { $0 == 0 })
      if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: 0) }
      return [2, UInt8(digits.count)] + digits
    }
    let content = integer(raw[..<32]) + integer(raw[32...])
    return [0x30, UInt8(content.count)] + content
  }
}
