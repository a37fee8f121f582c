import Testing

@testable import Outbox

@Suite("Targets")
struct TargetTests {
  let world: World

  init() throws { world = try World() }

  @Test("devices whose ids are BLOBs, written past the view, get theirs as well", arguments: [1, 2, 50])
  func blobs(room: Int) throws {
    try world.registerMany(40)
    try world.sql(
      "update nudge_device set device_id = cast(device_id as blob) where device_id > 'device-00005'")
    try world.sql(
      "update nudge_token set device_id = cast(device_id as blob) where device_id > 'device-00005'")
    let nudge = try world.nudge()
    #expect(Set(try world.drain(["production": room]).map(\.device)).count == 40)
    #expect(try world.state(nudge) == "attempted")
  }

  @Test("of nudges in one claim each goes to its own devices", arguments: [1, 16, 17, 40])
  func addresses(count: Int) throws {
    for person in ["anna", "bert"] {
      for device in 1...count {
        try world.register("\(person)-\(100 + device)", recipient: person, environment: "production")
      }
      try world.register("\(person)-watch", recipient: person, environment: "production", surface: "watch")
    }
    let (anna, bert) = ("'anna'", "'bert'")
    let addressed: [(nudge: Int64, devices: Int, prefix: String)] = [
      (try world.nudge(["recipient": anna]), count, "anna-1"),
      (try world.nudge(["recipient": anna]), count, "anna-1"),
      (try world.nudge(["recipient": bert]), count, "bert-1"),
      (try world.nudge(["recipient": bert, "surface": "'watch'"]), 1, "bert-watch"),
      (try world.nudge(["recipient": bert, "surface": "'*'"]), count + 1, "bert-"),
      (try world.nudge(["recipient": bert, "device_id": "'bert-101'"]), 1, "bert-101"),
      (try world.nudge(["recipient": bert, "device_id": "'bert-watch'"]), 1, "bert-watch"),
      (try world.nudge(["recipient": anna]), count, "anna-1"),
    ]
    let staged = try world.turn(["production": 400])
    for (nudge, devices, prefix) in addressed {
      let own = staged.filter { $0.nudge == nudge }.map(\.device)
      #expect(Set(own).count == devices && own.count == devices)
      #expect(own.allSatisfy { $0.hasPrefix(prefix) })
    }
  }
}
