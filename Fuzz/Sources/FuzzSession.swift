import HTTP2

/// The HTTP/2 session against any bytes and any order of events: every request ends exactly once, there is never
/// less room than none, and what is said to be not handed over was never given to TLS.
func fuzzSession(_ input: Input) {
  var input = input
  var now = ContinuousClock.now
  let session: Session
  do {
    session = try Session(
      authority: "example.test", capture: "apns-unique-id", options: ConnectionOptions(), now: now)
  } catch {
    fatalError("no session: \(error)")
  }
  var submitted: Set<UInt64> = []
  var ended: Set<UInt64> = []
  var next: UInt64 = 0

  func takeEnds() {
    session.takeEnded { stream in
      require(submitted.contains(stream.tag), "an end of a request that was never submitted")
      require(ended.insert(stream.tag).inserted, "a request ended twice")
      require(stream.end != .notHandedOver || !stream.wasHandedOver, "handed over, and not")
      require(stream.status.map { (200...999).contains($0) } ?? true, "no final status")
      require((stream.body?.count ?? 0) <= 65_536, "a body beyond its bound")
      require((stream.captured?.count ?? 0) <= 128, "a captured field beyond its bound")
    }
  }

  while !input.isEmpty {
    switch input.byte() {
    case 0..<128: receive(input.bytes(input.word()))
    case 128..<160:
      var tags: [UInt64] = []
      for _ in 0..<min(session.freeStreams, 1 + Int(input.byte() & 3)) {
        next += 1
        let size = input.word() & 0x3fff
        let slot = session.stage(tag: next) { request in
          request.path.append(contentsOf: Array("/3/device/00".utf8))
          request.body.append(contentsOf: [UInt8](repeating: 120, count: size))
          request.fields.append("apns-topic", Array("com.example.app".utf8), .incremental)
        }
        require(slot != nil, "no slot in spite of a free stream")
        tags.append(next)
      }
      submitted.formUnion(tags)
      session.submitStaged(now: now)
    case 160..<208:
      let limit = 1 + input.word()
      let bytes = session.bytesToWrite()
      if !bytes.isEmpty {
        session.willWrite()
        session.wrote(min(limit, bytes.count))
      }
    case 208..<232:
      now += .milliseconds(input.word())
      session.judge(now: now)
    case 232..<240: session.probe(now: now)
    case 240..<244: session.retire()
    default: takeEnds()
    }
    require(session.freeStreams >= 0 && session.sendWindow >= 0, "less room than none")
    require(session.openStreams >= 0, "fewer streams than none")
    require(session.deadline.map { $0 > now - .seconds(120) } ?? true, "a deadline far in the past")
  }
  session.fail(nil)
  takeEnds()
  require(ended == submitted, "a request without an end")
  require(session.openStreams == 0, "a stream without a connection")

  func receive(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { session.receive($0, now: now) }
  }
}
