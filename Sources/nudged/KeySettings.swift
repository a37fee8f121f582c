import Relay

/// Which key signs for which host, as far as settings alone can tell; nothing is read yet.
struct KeySettings: Equatable, Sendable {
  /// A key file and the id that goes with it.
  struct Source: Equatable, Sendable {
    var file: String
    var id: String
    /// The setting that gave the id; nil when it comes from the file's name.
    var idOrigin: String?
    /// The setting that named the file, for messages.
    var origin: String
  }

  var teamID: String
  /// Nil for a host without a key, which is never dialled.
  var production: Source?
  var sandbox: Source?

  /// Apple's ids: ten capital letters and digits.
  static func isID(_ text: String) -> Bool {
    text.utf8.count == 10
      && text.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
      }
  }

  /// The failure of a team id that is none.
  static func noTeamID(_ team: Given.Value) -> Failure {
    team.fault("\(team.text) is no team id: 10 characters A-Z 0-9")
  }

  /// The id in a file name of Apple's own form, `AuthKey_<id>.p8`.
  static func id(fromFileName path: String) -> String? {
    let name = path.split(separator: "/").last ?? ""
    guard name.hasPrefix("AuthKey_"), name.hasSuffix(".p8") else { return nil }
    let id = String(name.dropFirst("AuthKey_".count).dropLast(".p8".count))
    return isID(id) ? id : nil
  }

  /// The id of the key in a file by the name that Apple gave it: of the file that the path leads to, else of the
  /// path itself. Links may be set to another key while the worker runs.
  static func id(ofFile path: String) -> String? {
    KeyFile.target(of: path).flatMap(id(fromFileName:)) ?? id(fromFileName: path)
  }

  /// The file and id given for one place (`key`, `production-key` or `sandbox-key`), nil for neither.
  ///
  /// A piece that is lacking is added to `missing`.
  static func source(
    _ prefix: String, of given: Given, missing: inout [String]
  ) throws(Failure) -> Source? {
    let id = given[prefix + "-id"]
    if let id, !isID(id.text) {
      throw id.fault("\(id.text) is no key id: 10 characters A-Z 0-9")
    }
    guard let file = given[prefix + "-file"] else {
      if let id { missing.append("\(Missing.name(prefix + "-file")), to which \(id.origin) belongs") }
      return nil
    }
    guard let known = id?.text ?? KeySettings.id(ofFile: file.text) else {
      missing.append("\(Missing.name(prefix + "-id")), since \(file.text) is not named AuthKey_<id>.p8")
      return nil
    }
    return Source(file: file.text, id: known, idOrigin: id?.origin, origin: file.origin)
  }

  /// The key in a file that was read before, with the id that it has now.
  func reread(_ key: Configuration.Key) throws(Failure) -> Configuration.Key {
    guard var source = [production, sandbox].compactMap(\.self).first(where: { $0.file == key.file }) else {
      return key
    }
    let found = KeySettings.id(ofFile: source.file)
    if let idOrigin = source.idOrigin, let found, found != source.id {
      throw Failure(
        .configuration,
        "\(source.origin) \(source.file) is now the key \(found) by its name, but \(idOrigin) says \(source.id): "
          + "change it and restart, or leave it out")
    }
    if source.idOrigin == nil {
      guard let found else {
        throw Failure(
          .configuration,
          "\(source.origin) \(source.file) does not lead to a file named AuthKey_<id>.p8 any more, "
            + "and there is no \(Missing.name("key-id"))")
      }
      source.id = found
    }
    return try KeyFile.read(source)
  }

  /// Throws when the two ids look as if each had been given for the other: the classic mistake.
  func refuseSwapped() throws(Failure) {
    for source in [production, sandbox].compactMap({ $0 }) {
      if source.id == teamID {
        throw Failure(
          .configuration,
          "\(teamID) is given as team id, but it is also the key id of \(source.file): "
            + "the team id stands at developer.apple.com under Membership details")
      }
      if KeySettings.id(fromFileName: source.file) == teamID {
        throw Failure(
          .configuration,
          "team id and key id look swapped: \(teamID) is given as team id, "
            + "but by its file name it is the key id of \(source.file)")
      }
    }
  }
}

/// Names of settings that are lacking.
enum Missing {
  /// `--team-id (or NUDGED_TEAM_ID)`.
  static func name(_ setting: String) -> String {
    let option = Option.all.first { $0.isSetting && $0.name == setting }
    return "--\(setting)\(option?.variable.map { " (or \($0))" } ?? "")"
  }

  /// The one failure that names every lacking piece.
  static func failure(_ command: CommandName, _ pieces: [String]) -> Failure {
    Failure(
      .configuration,
      "`nudged \(command.rawValue)` also needs \(pieces.joined(separator: "; "))\n"
        + "`nudged help \(command.rawValue)` explains the settings")
  }

  /// The database's path, which every command needs.
  static func requireDatabase(_ given: Given) throws(Failure) -> String {
    guard let database = given["database"] else {
      throw failure(given.command, [name("database")])
    }
    return database.text
  }
}
