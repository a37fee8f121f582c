import COpenSSL

/// A trust root and a server certificate under it, for a server on this machine.
///
/// The root's private key is forgotten once it has signed: nobody can make another certificate that a client
/// with this root would trust.
package struct TestCertificate: Sendable {
  /// The trust root, PEM.
  package let root: [UInt8]
  /// The server's certificate, PEM.
  package let certificate: [UInt8]
  /// The server's private key, PEM.
  package let key: [UInt8]

  /// Makes both, valid from yesterday for ten years.
  ///
  /// - Parameter names: subject alternative names in OpenSSL's notation, for example
  ///   `DNS:localhost,IP:127.0.0.1` (x509v3_config(5)).
  package init(names: String) throws(TLSFault) {
    do {
      let rootKey = try SigningKey.make()
      let serverKey = try SigningKey.make()
      let root = try Draft(subject: "apns-simulator root", key: rootKey)
      try root.sign(
        by: root, rootKey,
        [
          (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
          (NID_key_usage, "critical,keyCertSign,cRLSign"),
          (NID_subject_key_identifier, "hash"),
        ])
      let server = try Draft(subject: "apns-simulator", key: serverKey)
      try server.sign(
        by: root, rootKey,
        [
          (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
          (NID_ext_key_usage, "serverAuth"), (NID_subject_key_identifier, "hash"),
          (NID_authority_key_identifier, "keyid"), (NID_subject_alt_name, names),
        ])
      self.root = try root.pem()
      certificate = try server.pem()
      key = try serverKey.pem()
    } catch let fault as SigningKeyFault {
      throw TLSFault(.setup, fault.description)
    } catch let fault as TLSFault {
      throw fault
    } catch {
      throw TLSFault(.setup, "\(error)")
    }
  }

  /// A certificate in the making; the corresponding C type is `X509`.
  @safe
  private final class Draft {
    let handle: OpaquePointer

    init(subject: String, key: SigningKey) throws(TLSFault) {
      ERR_clear_error()
      guard let handle = unsafe X509_new() else { throw Draft.fault() }
      unsafe self.handle = handle
      // 63 random bits: positive, and less than the 20 octets of RFC 5280, 4.1.2.2.
      let serial = UInt64.random(in: 1...UInt64(Int64.max))
      let name = unsafe X509_get_subject_name(handle)
      let added = unsafe X509_NAME_add_entry_by_txt(
        name, "CN", MBSTRING_UTF8, Array(subject.utf8), Int32(subject.utf8.count), -1, 0)
      guard added == 1, unsafe X509_set_version(handle, 2) == 1,
        unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(handle), serial) == 1,
        unsafe X509_gmtime_adj(X509_getm_notBefore(handle), -86_400) != nil,
        unsafe X509_gmtime_adj(X509_getm_notAfter(handle), 3_650 * 86_400) != nil,
        unsafe X509_set_pubkey(handle, key.handle) == 1
      else { throw Draft.fault() }
    }

    deinit { unsafe X509_free(handle) }

    func sign(by issuer: Draft, _ key: SigningKey, _ extensions: [(Int32, String)]) throws(TLSFault) {
      guard unsafe X509_set_issuer_name(handle, X509_get_subject_name(issuer.handle)) == 1 else {
        throw Draft.fault()
      }
      var context = unsafe X509V3_CTX()
      unsafe X509V3_set_ctx(&context, issuer.handle, handle, nil, nil, 0)
      for (id, value) in extensions {
        guard let entry = unsafe X509V3_EXT_conf_nid(nil, &context, id, value) else { throw Draft.fault() }
        defer { unsafe X509_EXTENSION_free(entry) }
        guard unsafe X509_add_ext(handle, entry, -1) == 1 else { throw Draft.fault() }
      }
      guard unsafe X509_sign(handle, key.handle, EVP_sha256()) > 0 else { throw Draft.fault() }
    }

    func pem() throws(TLSFault) -> [UInt8] {
      guard let bytes = unsafe MemoryBIO.bytes({ unsafe PEM_write_bio_X509($0, handle) }) else {
        throw Draft.fault()
      }
      return bytes
    }

    private static func fault() -> TLSFault {
      TLSFault(.setup, "cannot make a certificate: \(ErrorQueue.words(or: "unknown fault"))")
    }
  }
}
