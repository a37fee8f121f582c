import CNghttp2

extension Session {
  /// The pseudo-header fields and what a request may add.
  static let maximumFields = 4 + RequestFields.limit

  /// Takes a free slot and lets `fill` write its request, which is empty before. Nothing reaches nghttp2.
  /// `fill` must not call the session: the request is lent to it in place.
  ///
  /// - Returns: the slot, nil when no stream is free.
  package func stage(tag: UInt64, _ fill: (inout Request) -> Void) -> Int? {
    guard freeStreams > 0 else { return nil }
    let index = unsafe state.pointee.takeSlot(tag)
    unsafe fill(&state.pointee.slots[index].request)
    return index
  }

  /// Frees the staged slots: their transaction failed.
  package func discardStaged() { unsafe state.pointee.discardStaged() }

  /// Hands the staged requests to nghttp2 in the order of staging.
  package func submitStaged(now: ContinuousClock.Instant) {
    let age = beganAt.duration(to: now)
    for position in unsafe 0..<state.pointee.staged.count {
      let index = unsafe state.pointee.staged[position]
      let id = isOver ? -1 : submit(index)
      if id > 0 {
        nextStreamID = id + 2
        unsafe state.pointee.opened(index, id, age)
      } else {
        unsafe state.pointee.endStaged(index)
      }
    }
    unsafe state.pointee.staged.removeAll(keepingCapacity: true)
  }

  private func submit(_ index: Int) -> Int32 {
    // One reading of the slot instead of one a field: each copies the list of fields. nghttp2 copies the values
    // before it returns.
    let request = unsafe state.pointee.slots[index].request
    return unsafe request.path.withUnsafeBufferPointer { path in
      unsafe request.fields.bytes.withUnsafeBufferPointer { values in
        unsafe authority.withUnsafeBufferPointer { authority in
          let count = unsafe fill(request.fields, path, values, authority)
          let user = unsafe SessionCallbacks.userData(index)
          var provider = unsafe nghttp2_data_provider(
            source: nghttp2_data_source(fd: Int32(index)), read_callback: readBody)
          return unsafe !request.body.isEmpty
            ? nghttp2_submit_request(handle, nil, nameValues.baseAddress, count, &provider, user)
            : nghttp2_submit_request(handle, nil, nameValues.baseAddress, count, nil, user)
        }
      }
    }
  }

  /// Writes the name-value pairs of a request; gives their number.
  private func fill(
    _ fields: borrowing RequestFields, _ path: UnsafeBufferPointer<UInt8>,
    _ values: UnsafeBufferPointer<UInt8>,
    _ authority: UnsafeBufferPointer<UInt8>
  ) -> Int {
    let post: StaticString = "POST"
    let https: StaticString = "https"
    unsafe nameValues[0] = pair(":method", UnsafeBufferPointer(start: post.utf8Start, count: 4), noCopy)
    unsafe nameValues[1] = pair(":scheme", UnsafeBufferPointer(start: https.utf8Start, count: 5), noCopy)
    unsafe nameValues[2] = pair(":authority", authority, noCopyName)
    // Without NO_INDEX: nghttp2 sends a path as the literal without indexing (RFC 7541, 6.2.2) by itself.
    unsafe nameValues[3] = pair(":path", path, noCopyName)
    var start = 0
    for position in 0..<fields.count {
      let field = fields.list.span[position]
      let value = unsafe UnsafeBufferPointer(rebasing: values[start..<Int(field.end)])
      unsafe nameValues[4 + position] = pair(field.name, value, noCopyName | indexingFlag(field))
      start = Int(field.end)
    }
    return 4 + fields.count
  }

  private func indexingFlag(_ field: RequestFields.Field) -> UInt8 {
    let noIndex = UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
    switch field.indexing {
    case .incremental: return 0
    case .never: return noIndex
    case .without:
      let name = unsafe UInt(bitPattern: field.name.utf8Start)
      if indexedNames.contains(name) { return noIndex }
      indexedNames.append(name)
      return 0
    }
  }
}

let noCopyName = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
let noCopy = noCopyName | UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)

/// Names are part of the program, so nghttp2 need not copy them.
func pair(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>, _ flags: UInt8) -> nghttp2_nv {
  unsafe nghttp2_nv(
    name: UnsafeMutablePointer(mutating: name.utf8Start),
    value: UnsafeMutablePointer(mutating: value.baseAddress ?? name.utf8Start),
    namelen: name.utf8CodeUnitCount, valuelen: value.count, flags: flags)
}
