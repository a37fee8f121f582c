/// What an `aps.alert` says, as a phone would show it.
struct AlertText: Equatable, Sendable {
  var title = ""
  var subtitle = ""
  var body = ""

  /// A string, or an object with texts, or with the keys of texts that the app has in the phone's language.
  init(_ alert: JSONValue?) {
    guard let alert else { return }
    if let text = alert.text {
      body = text
      return
    }
    title = Self.words(alert, "title")
    subtitle = Self.words(alert, "subtitle")
    body = Self.words(alert, "body")
  }

  /// All of it on one line.
  var line: String { [title, subtitle, body].filter { !$0.isEmpty }.joined(separator: " | ") }

  /// There is something to read in it.
  var isReal: Bool { !(title + body).allSatisfy(\.isWhitespace) }

  private static func words(_ alert: JSONValue, _ name: String) -> String {
    let key = name == "body" ? "loc-key" : name + "-loc-key"
    if let text = alert[name]?.text { return text }
    // In a Live Activity's alert `title` and `body` may be objects with a `loc-key`.
    return (alert[key] ?? alert[name]?["loc-key"])?.text ?? ""
  }
}
