/// One of Apple's two push environments; a device token belongs to exactly one of them.
package enum Environment: String, Sendable, CaseIterable {
  case production, sandbox
}
