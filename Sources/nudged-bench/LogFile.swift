import Glibc

/// What stands in a write-ahead log from its start (https://www.sqlite.org/fileformat2.html#walformat).
struct LogFile {
  private(set) var pages = 0
  /// Frames that end a transaction: "the size of the database file in pages after the commit", else zero.
  private(set) var commits = 0

  init(of database: String) throws(Trouble) {
    guard let file = fopen(database + "-wal", "r") else { throw Trouble("cannot read \(database)-wal") }
    defer { fclose(file) }
    var header = [UInt8](repeating: 0, count: 32)
    guard fread(&header, 1, 32, file) == 32 else { return }
    let pageSize = Self.integer(header[8..<12])
    var frame = [UInt8](repeating: 0, count: 24)
    while fread(&frame, 1, 24, file) == 24, frame[8..<16] == header[16..<24] {
      pages += 1
      if Self.integer(frame[4..<8]) != 0 { commits += 1 }
      fseek(file, pageSize, SEEK_CUR)
    }
  }

  /// Big-endian.
  private static func integer(_ bytes: ArraySlice<UInt8>) -> Int { bytes.reduce(0) { $0 << 8 | Int($1) } }
}
