import COpenSSL
import Glibc

/// The one place that reads OpenSSL's error queue; it is read at once, since the queue belongs to the thread
/// and not to the call that failed (openssl-core ERR_get_error(3)).
enum ErrorQueue {
  struct Entry {
    var library: Int32
    var reason: Int32
    var words: String
  }

  /// Takes the oldest entry, which is nearest to the cause, and empties the queue.
  static func take() -> Entry? {
    let code = ERR_get_error()
    guard code != 0 else { return nil }
    let reason = ERR_GET_REASON(code)
    let words: String
    if let text = unsafe ERR_reason_error_string(code) {
      words = unsafe String(cString: text)
    } else {
      words = "OpenSSL error \(code)"
    }
    ERR_clear_error()
    return Entry(library: ERR_GET_LIB(code), reason: reason, words: words)
  }

  /// The words of the oldest entry, or `fallback` when the queue is empty.
  static func words(or fallback: String) -> String { take()?.words ?? fallback }
}

/// The words for a code of the operating system.
func systemWords(_ code: Int32) -> String {
  var buffer = [CChar](repeating: 0, count: 128)
  // The module has the POSIX form, which returns 0 when it has filled the buffer.
  guard unsafe strerror_r(code, &buffer, buffer.count) == 0 else { return "error \(code)" }
  return unsafe buffer.withUnsafeBufferPointer { text in
    unsafe text.baseAddress.map { unsafe String(cString: $0) } ?? ""
  }
}
