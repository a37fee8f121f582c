import Glibc

/// Small files, read and written whole.
enum Files {
  static let limit = 16 << 20

  static func makeDirectory(_ path: String) throws(SimulatorFault) -> String {
    var status = stat()
    if stat(path, &status) != 0 {
      guard mkdir(path, 0o700) == 0 else { throw fault(path) }
    } else if status.st_mode & S_IFMT != S_IFDIR {
      throw SimulatorFault(.usage, "\(path): is not a directory")
    }
    // Absolute, so that the settings hold in any directory.
    guard let whole = realpath(path, nil) else { throw fault(path) }
    defer { free(whole) }
    return String(cString: whole)
  }

  static func makeTemporaryDirectory() throws(SimulatorFault) -> String {
    let root = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array("\(root)/apns-simulator-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw fault(root) }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  static func names(in path: String) throws(SimulatorFault) -> [String] {
    guard let directory = opendir(path) else { throw fault(path) }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) {
          String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        })
    }
    return names
  }

  /// The file's content; nil when there is none.
  static func read(_ path: String) throws(SimulatorFault) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw fault(path)
    }
    defer { close(descriptor) }
    var content: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      guard count >= 0 else { throw fault(path) }
      if count == 0 { return content }
      content.append(contentsOf: buffer.prefix(count))
      guard content.count <= limit else {
        throw SimulatorFault(.configuration, "\(path): larger than 16 MiB")
      }
    }
  }

  static func readOrEmpty(_ path: String) -> [UInt8] { ((try? read(path)) ?? nil) ?? [] }

  /// Writes beside the file and renames, so that nobody reads half of it.
  static func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(SimulatorFault) {
    let temporary = "\(path).\(getpid())"
    unlink(temporary)
    let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw fault(path) }
    let written = writeAll(bytes, to: descriptor)
    close(descriptor)
    guard written, rename(temporary, path) == 0 else {
      let fault = fault(path)
      unlink(temporary)
      throw fault
    }
  }

  /// Writes all of it, unless an error comes first.
  @discardableResult
  static func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var start = 0
    while start < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress?.advanced(by: start), $0.count - start)
      }
      if count > 0 { start += count } else if errno != EINTR { return false }
    }
    return true
  }

  static func fault(_ path: String) -> SimulatorFault {
    SimulatorFault(.inputOutput, "\(path): \(String(cString: strerror(errno)))")
  }
}
