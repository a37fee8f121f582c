/// What a push does to a Live Activity; the raw value is that of `event`.
///
/// Source: Apple, "Starting and updating Live Activities with ActivityKit push notifications".
package enum ActivityEvent: String, Sendable {
  case start
  case update
  case end
}
