import COpenSSL

/// Random numbers out of a block of `RAND_bytes`: a system call for each identifier would cost a microsecond.
package struct RandomBytes: ~Copyable {
  private static var blockCount: Int { 512 }

  private var block = [UInt64](repeating: 0, count: blockCount)
  private var next = blockCount

  package init() {}

  /// 16 random bytes, each handed out once.
  package mutating func next16() -> (UInt64, UInt64) {
    if next == block.count { refill() }
    defer {
      // A number that was handed out does not stay in memory.
      block[next] = 0
      block[next + 1] = 0
      next += 2
    }
    return (block[next], block[next + 1])
  }

  private mutating func refill() {
    next = 0
    let filled = unsafe block.withUnsafeMutableBytes { buffer in
      unsafe RAND_bytes(buffer.baseAddress, Int32(clamping: buffer.count)) == 1
    }
    if filled { return }
    ERR_clear_error()
    var system = SystemRandomNumberGenerator()
    for index in block.indices { block[index] = system.next() }
  }
}
