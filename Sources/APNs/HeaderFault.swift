/// Why a value cannot go into a request header, in words for the row's `detail`; never quotes the value.
package struct HeaderFault: Error, Equatable, Sendable {
  /// The words, with the name of the column at their start.
  package let words: String
}
