/// Why a row's columns make no payload, in words for the `detail` column; never quotes a text.
struct PayloadFault: Error {
  let words: String

  init(_ words: String) { self.words = words }
}
