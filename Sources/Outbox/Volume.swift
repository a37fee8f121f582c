import CLinux

/// The file system that a path is on (statfs(2)).
package struct Volume: Equatable, Sendable {
  /// Its magic number.
  package let type: Int64
  /// What a user may still fill.
  package let freeBytes: Int64

  /// Nil when the path leads nowhere.
  package init?(of path: String) {
    var type: Int64 = 0
    var freeBytes: Int64 = 0
    guard nudged_volume(path, &type, &freeBytes) == 0 else { return nil }
    self.init(type: type, freeBytes: freeBytes)
  }

  package init(type: Int64, freeBytes: Int64) {
    self.type = type
    self.freeBytes = freeBytes
  }

  /// What it is called if it lies on another machine, or may; nil for a local one.
  ///
  /// There locks may not hold, and the write-ahead log cannot work: all its users have to share memory
  /// (https://www.sqlite.org/wal.html). The numbers are those of statfs(2) and linux/magic.h.
  package var remoteName: String? {
    switch UInt32(truncatingIfNeeded: type) {
    case 0x6969: "NFS"
    case 0x517B, 0xFF53_4D42, 0xFE53_4D42: "SMB"
    case 0x6573_5546: "FUSE"
    case 0x0102_1997: "9p"
    case 0x00C3_6400: "Ceph"
    case 0x5346_414F, 0x6B41_4653: "AFS"
    case 0x7375_7245: "Coda"
    case 0x0BD0_0BD0: "Lustre"
    case 0x786F_4256: "VirtualBox's shared folders"
    default: nil
    }
  }
}
