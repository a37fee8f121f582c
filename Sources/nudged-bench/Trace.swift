/// What `strace -f -y` wrote: how often each system call was made, and what went into sockets.
struct Trace {
  private(set) var calls: [Substring: Int] = [:]
  private(set) var socketWrites = 0
  private(set) var socketBytes = 0

  var total: Int { calls.values.reduce(0, +) }
  var syncs: Int { (calls["fsync"] ?? 0) + (calls["fdatasync"] ?? 0) }

  init(_ text: String) {
    for line in text.split(separator: "\n") {
      // `123   write(9<socket:[4711]>, ""..., 16406) = 16406`; what is resumed was counted when it began.
      let call = line.drop { $0.isNumber || $0 == " " }
      guard let parenthesis = call.firstIndex(of: "("), call.first?.isLetter ?? false else { continue }
      calls[call[..<parenthesis], default: 0] += 1
      let descriptor = call[call.index(after: parenthesis)...].prefix { $0 != "," }
      guard call[..<parenthesis] == "write", descriptor.contains("socket:"),
        let written = call.split(separator: " ").last.flatMap({ Int($0) }), written > 0
      else { continue }
      socketWrites += 1
      socketBytes += written
    }
  }
}
