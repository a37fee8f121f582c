import Glibc
import Relay

/// Reading the files that settings name; what is in them is judged elsewhere.
enum KeyFile {
  /// Keys are some 250 bytes; whatever is much larger is another file.
  static let limit = 64 * 1024

  /// The key of `source` with the content of its file.
  static func read(_ source: KeySettings.Source) throws(Failure) -> Configuration.Key {
    Configuration.Key(
      file: source.file, id: source.id, content: try content(of: source.file, origin: source.origin))
  }

  /// The whole of a small regular file; a failure names the setting, the file and the fault.
  static func content(of path: String, origin: String) throws(Failure) -> [UInt8] {
    let descriptor = try open(path, origin: origin)
    defer { close(descriptor) }
    var content = [UInt8](repeating: 0, count: limit + 1)
    var count = 0
    while count < content.count {
      let result = content.withUnsafeMutableBytes { bytes in
        Glibc.read(descriptor, bytes.baseAddress?.advanced(by: count), bytes.count - count)
      }
      if result == 0 { break }
      if result > 0 {
        count += result
      } else if errno != EINTR {
        throw fault(path, origin, Process.words(errno))
      }
    }
    guard count > 0 else { throw fault(path, origin, "is empty") }
    guard count <= limit else {
      throw fault(path, origin, "is larger than 64 KiB: that is no signing key")
    }
    // Only what was read: a key is kept for as long as the worker runs.
    return Array(content[..<count])
  }

  /// Where a path leads when every link is followed; nil when it leads nowhere.
  static func target(of path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// Throws like `content(of:origin:)` when a file cannot be read, whatever its size.
  static func requireReadable(_ path: String, origin: String) throws(Failure) {
    close(try open(path, origin: origin))
  }

  private static func open(_ path: String, origin: String) throws(Failure) -> Int32 {
    // Not blocking: a pipe without a writer would hold the start up for ever.
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      let code = errno
      throw fault(path, origin, Process.words(code) + (code == EACCES ? permissions(of: path) : ""))
    }
    var status = stat()
    let kind = fstat(descriptor, &status) == 0 ? status.st_mode & S_IFMT : 0
    guard kind == S_IFREG else {
      close(descriptor)
      throw fault(path, origin, kind == S_IFDIR ? "is a directory" : "is not a regular file")
    }
    return descriptor
  }

  private static func fault(_ path: String, _ origin: String, _ words: String) -> Failure {
    Failure(.configuration, "\(origin) \(path): \(words)")
  }

  private static func permissions(of path: String) -> String {
    var status = stat()
    guard stat(path, &status) == 0 else { return "" }
    return " (owner \(status.st_uid), mode 0\(String(status.st_mode & 0o777, radix: 8)), "
      + "read as user \(geteuid()))"
  }
}
