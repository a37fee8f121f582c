/// An answer to a request: its status, header fields and body.
package struct ServerResponse {
  /// 200 to 999.
  package var status = 200
  package var fields = RequestFields()
  /// The whole body; without one the header ends the stream.
  package var body: [UInt8] = []

  package init() {}

  package mutating func removeAll() {
    status = 200
    fields.removeAll()
    body.removeAll(keepingCapacity: true)
  }
}
