/// A frame of RFC 9113, 4.1, for peers that are written byte by byte.
struct Frame: Equatable {
  enum Kind: UInt8 {
    case data, headers, priority, reset, settings, pushPromise, ping, goaway, windowUpdate, continuation
  }

  static let endStream: UInt8 = 1
  static let ack: UInt8 = 1
  static let endHeaders: UInt8 = 4

  var kind: Kind
  var flags: UInt8 = 0
  var stream: Int = 0
  var payload: [UInt8] = []

  var bytes: [UInt8] {
    let count = payload.count
    return [UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), kind.rawValue, flags]
      + big32(stream) + payload
  }

  var hasEndStream: Bool { flags & Frame.endStream != 0 }

  /// The first 32 bits of the payload: an error code of RST_STREAM, an increment of WINDOW_UPDATE.
  var word: Int { payload.prefix(4).reduce(0) { $0 << 8 | Int($1) } }

  static func settings(_ values: [(Int, Int)]) -> Frame {
    Frame(kind: .settings, payload: values.flatMap { [0, UInt8($0.0)] + big32($0.1) })
  }

  static func maximumStreams(_ count: Int) -> Frame { settings([(3, count)]) }

  static func status(_ status: Int, _ stream: Int, end: Bool = false, fields: [UInt8] = []) -> Frame {
    headers(stream, end: end, literal(nameIndex: 8, "\(status)") + fields)
  }

  static func headers(_ stream: Int, end: Bool, _ block: [UInt8]) -> Frame {
    Frame(kind: .headers, flags: endHeaders | (end ? endStream : 0), stream: stream, payload: block)
  }

  static func data(_ stream: Int, _ bytes: [UInt8], end: Bool = false) -> Frame {
    Frame(kind: .data, flags: end ? endStream : 0, stream: stream, payload: bytes)
  }

  static func reset(_ stream: Int, _ code: Int) -> Frame {
    Frame(kind: .reset, stream: stream, payload: big32(code))
  }

  static func goaway(_ last: Int, _ code: Int = 0, _ debug: String = "") -> Frame {
    Frame(kind: .goaway, payload: big32(last) + big32(code) + Array(debug.utf8))
  }

  static func windowUpdate(_ stream: Int, _ increment: Int) -> Frame {
    Frame(kind: .windowUpdate, stream: stream, payload: big32(increment))
  }

  /// A literal field without indexing, its name from the static table (RFC 7541, 6.2.2).
  static func literal(nameIndex: Int, _ value: String) -> [UInt8] {
    let name = nameIndex < 15 ? [UInt8(nameIndex)] : [15, UInt8(nameIndex - 15)]
    return name + [UInt8(value.utf8.count)] + Array(value.utf8)
  }

  /// A literal field without indexing with a name of its own; the value may have up to 16,000 bytes.
  static func field(_ name: String, _ value: String) -> [UInt8] {
    let count = value.utf8.count
    let length: [UInt8] =
      count < 127 ? [UInt8(count)] : [127, UInt8((count - 127) & 127 | 128), UInt8((count - 127) >> 7)]
    return [0, UInt8(name.utf8.count)] + Array(name.utf8) + length + Array(value.utf8)
  }
}

func big32(_ value: Int) -> [UInt8] {
  [UInt8(value >> 24 & 255), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
}

/// Takes the whole frames off the front of the bytes.
func takeFrames(_ bytes: inout [UInt8]) -> [Frame] {
  var frames: [Frame] = []
  while bytes.count >= 9 {
    let count = Int(bytes[0]) << 16 | Int(bytes[1]) << 8 | Int(bytes[2])
    guard bytes.count >= 9 + count, let kind = Frame.Kind(rawValue: bytes[3]) else { break }
    let stream = bytes[5..<9].reduce(0) { $0 << 8 | Int($1) } & 0x7fff_ffff
    frames.append(Frame(kind: kind, flags: bytes[4], stream: stream, payload: Array(bytes[9..<9 + count])))
    bytes.removeFirst(9 + count)
  }
  return frames
}
