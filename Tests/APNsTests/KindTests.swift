import Testing

@testable import APNs

@Suite struct KindTests {
  @Test("each kind is spelled as in the table of the outbox, and nothing else is a kind")
  func words() {
    let words = [
      "alert", "background", "voip", "location", "complication", "fileprovider", "pushtotalk",
      "widgets", "controls", "activity_start", "activity_update", "activity_end",
    ]
    #expect(Kind.allCases.map(\.name) == words)
    for (kind, word) in zip(Kind.allCases, words) {
      #expect(Kind(word) == kind)
      #expect(Kind(bytes(word).span) == kind)
    }
    for word in ["", "Alert", "alert ", "alert\0", "activity", "liveactivity", "ALERT"] {
      #expect(Kind(word) == nil)
      #expect(Kind(bytes(word).span) == nil)
    }
  }
}

@Suite struct PushTypeTests {
  @Test("rows stand in the order of the kinds")
  func order() {
    #expect(PushType.table.map(\.kind) == Kind.allCases)
  }

  @Test(
    "push type, topic suffix, token kind, limit and legal priorities are Apple's, the default first",
    arguments: [
      (Kind.alert, "alert", "", "alert", 4096, [10, 5, 1]),
      (.background, "background", "", "alert", 4096, [5]),
      (.voip, "voip", ".voip", "voip", 5120, [10, 5, 1]),
      (.location, "location", ".location-query", "location", 4096, [10, 5]),
      (.complication, "complication", ".complication", "complication", 4096, [10, 5, 1]),
      (.fileprovider, "fileprovider", ".pushkit.fileprovider", "fileprovider", 4096, [10, 5, 1]),
      (.pushtotalk, "pushtotalk", ".voip-ptt", "pushtotalk", 4096, [10, 5, 1]),
      (.widgets, "widgets", ".push-type.widgets", "widgets", 4096, [10, 5, 1]),
      (.controls, "controls", ".push-type.controls", "controls", 4096, [10, 5, 1]),
      (.activityStart, "liveactivity", ".push-type.liveactivity", "activity_start", 4096, [10, 5]),
      (.activityUpdate, "liveactivity", ".push-type.liveactivity", "activity_update", 4096, [5, 10]),
      (.activityEnd, "liveactivity", ".push-type.liveactivity", "activity_update", 4096, [10, 5]),
    ])
  func rows(kind: Kind, header: String, suffix: String, token: String, limit: Int, priorities: [Int]) throws {
    let row = kind.pushType
    #expect(row.header == bytes(header))
    #expect(row.topicSuffix == bytes(suffix))
    #expect(row.tokenKind == token)
    #expect(row.payloadLimit == limit)
    #expect(try row.priority(nil) == priorities[0])
    for asked in -1...12 {
      #expect((try? row.priority(Int64(asked))) == (priorities.contains(asked) ? asked : nil))
    }
  }

  @Test("a priority that is an error for the kind is refused with the one to use")
  func priorities() {
    #expect(
      throws: HeaderFault(words: "priority 10 is an error for background, use 5")
    ) { try Kind.background.pushType.priority(10) }
    #expect(
      throws: HeaderFault(words: "priority 1 is an error for activity_update, use 5 or 10")
    ) { try Kind.activityUpdate.pushType.priority(1) }
    for wrong: Int64 in [.max, .min] {
      #expect(throws: HeaderFault.self) { try Kind.alert.pushType.priority(wrong) }
    }
  }

  @Test("expiration is the row's own, else the store time from its creation, in whole seconds")
  func expiration() {
    let alert = Kind.alert.pushType
    let created: Int64 = 1_790_000_000_999
    #expect(
      alert.expirationSeconds(expiresAt: 1_790_000_001_999, createdAt: created, storeFor: 1)
        == 1_790_000_001)
    #expect(
      alert.expirationSeconds(expiresAt: nil, createdAt: created, storeFor: 86_400_000)
        == 1_790_086_400)
    #expect(alert.expirationSeconds(expiresAt: nil, createdAt: .max, storeFor: 1) > 0)
    #expect(alert.expirationSeconds(expiresAt: -5, createdAt: created, storeFor: 1) == 0)
    let talk = Kind.pushtotalk.pushType
    #expect(talk.expirationSeconds(expiresAt: nil, createdAt: created, storeFor: 86_400_000) == 0)
    #expect(
      talk.expirationSeconds(expiresAt: 1_790_000_001_000, createdAt: created, storeFor: 1)
        == 1_790_000_001)
  }
}
