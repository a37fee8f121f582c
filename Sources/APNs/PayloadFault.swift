/// Why a row's columns make no payload, in words for the `detail` column; never quotes a text.
struct PayloadFault: Error {
  let words: String

  init(_ words: String) { self.words = words }
}

/// The columns that go into a payload, by the names the backend knows.
enum PayloadColumn: String {
  case title
  case subtitle
  case body
  case conversationID = "conversation_id"
  case aps
  case data
}
