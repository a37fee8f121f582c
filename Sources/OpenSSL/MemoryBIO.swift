import COpenSSL

/// What OpenSSL writes into memory.
enum MemoryBIO {
  /// The bytes that `write` writes; nil when it returns anything but 1, or memory ran out.
  static func bytes(_ write: (OpaquePointer) -> Int32) -> [UInt8]? {
    guard let bio = unsafe BIO_new(BIO_s_mem()) else { return nil }
    defer { _ = unsafe BIO_free(bio) }
    guard unsafe write(bio) == 1 else { return nil }
    var result: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while true {
      let count = unsafe BIO_read(bio, &buffer, Int32(buffer.count))
      guard count > 0 else { return result }
      result.append(contentsOf: buffer.prefix(Int(count)))
    }
  }
}
