import CNghttp2

extension Session {
  /// The pseudo-header fields and what a request may add.
  static let maximumFields = 32

  /// Takes a free slot and lets `fill` write its request, which is empty before. Nothing reaches nghttp2.
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
    let staged = unsafe state.pointee.staged
    guard !staged.isEmpty else { return }
    for index in staged {
      let id = isOver ? -1 : submit(index)
      if id > 0 {
        nextStreamID = id + 2
        unsafe state.pointee.opened(index, id, now)
      } else {
        unsafe state.pointee.endStaged(index)
      }
    }
    unsafe state.pointee.staged.removeAll(keepingCapacity: true)
  }

  private func submit(_ index: Int) -> Int32 {
    // A copy of the request shares its storage; nghttp2 copies the values before it returns.
    let request = unsafe state.pointee.slots[index].request
    guard request.fields.count <= Self.maximumFields - 4 else { return -1 }
    return unsafe request.path.withUnsafeBufferPointer { path in
      unsafe request.fields.bytes.withUnsafeBufferPointer { values in
        unsafe authority.withUnsafeBufferPointer { authority in
          unsafe submit(index, request, path, values, authority)
        }
      }
    }
  }

  private func submit(
    _ index: Int, _ request: Request, _ path: UnsafeBufferPointer<UInt8>,
    _ values: UnsafeBufferPointer<UInt8>,
    _ authority: UnsafeBufferPointer<UInt8>
  ) -> Int32 {
    let post: StaticString = "POST"
    let https: StaticString = "https"
    unsafe nameValues[0] = pair(":method", UnsafeBufferPointer(start: post.utf8Start, count: 4), noCopy)
    unsafe nameValues[1] = pair(":scheme", UnsafeBufferPointer(start: https.utf8Start, count: 5), noCopy)
    unsafe nameValues[2] = pair(":authority", authority, noCopyName)
    // Without NO_INDEX: nghttp2 sends a path as the literal without indexing (RFC 7541, 6.2.2) by itself.
    unsafe nameValues[3] = pair(":path", path, noCopyName)
    var count = 4
    for field in request.fields.list {
      let value = unsafe UnsafeBufferPointer(rebasing: values[field.start..<field.end])
      unsafe nameValues[count] = pair(field.name, value, noCopyName | indexingFlag(field))
      count += 1
    }
    var provider = unsafe nghttp2_data_provider(
      source: nghttp2_data_source(fd: Int32(index)), read_callback: readBody)
    let user = unsafe SessionCallbacks.userData(index)
    if request.body.isEmpty {
      return unsafe nghttp2_submit_request(handle, nil, nameValues.baseAddress, count, nil, user)
    }
    return unsafe nghttp2_submit_request(handle, nil, nameValues.baseAddress, count, &provider, user)
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

private let noCopyName = UInt8(NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue)
private let noCopy = noCopyName | UInt8(NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue)

/// Names are part of the program, so nghttp2 need not copy them.
private func pair(_ name: StaticString, _ value: UnsafeBufferPointer<UInt8>, _ flags: UInt8) -> nghttp2_nv {
  unsafe nghttp2_nv(
    name: UnsafeMutablePointer(mutating: name.utf8Start),
    value: UnsafeMutablePointer(mutating: value.baseAddress ?? name.utf8Start),
    namelen: name.utf8CodeUnitCount, valuelen: value.count, flags: flags)
}
