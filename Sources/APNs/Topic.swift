/// The topic: the app's bundle id, and behind it the suffix of the push type.
package enum Topic {
  /// Why a `topic` column is no bundle id; nil if it is one.
  ///
  /// 1 to 255 bytes of printable ASCII without spaces: whatever else a header value may hold, no bundle
  /// id has it.
  package static func fault(_ topic: Span<UInt8>) -> HeaderFault? {
    guard topic.count >= 1, topic.count <= 255 else {
      return HeaderFault(words: "topic is \(topic.count) bytes, wanted 1 to 255")
    }
    for index in 0..<topic.count where topic[index] <= 0x20 || topic[index] >= 0x7F {
      return HeaderFault(words: "topic has a character at byte \(index) that no bundle id has")
    }
    return nil
  }

  /// Appends the value of `apns-topic`: the bundle id and the suffix, which is not written twice when
  /// the column has it already.
  package static func append(_ topic: Span<UInt8>, for type: PushType, to output: inout [UInt8]) {
    output.append(topic, 0..<topic.count)
    let suffix = type.topicSuffix
    guard !suffix.isEmpty else { return }
    if topic.count > suffix.count,
      topic.extracting((topic.count - suffix.count)..<topic.count).holds(suffix)
    {
      return
    }
    output.append(contentsOf: suffix)
  }
}
