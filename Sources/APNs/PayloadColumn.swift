/// The columns that go into a payload, by the names the backend knows.
enum PayloadColumn: String {
  case title
  case subtitle
  case body
  case conversationID = "conversation_id"
  case aps
  case data
  case attributesType = "attributes_type"
  case attributes
  case contentState = "content_state"
  case staleAt = "stale_at"
  case dismissAt = "dismiss_at"
}
