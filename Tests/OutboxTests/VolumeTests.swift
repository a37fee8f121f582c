import Testing

@testable import Outbox

@Suite("Volume")
struct VolumeTests {
  @Test("a place that is there has a type and room; one that is not has neither")
  func places() throws {
    let folder = try TemporaryFolder()
    let volume = try #require(Volume(of: folder.path))
    #expect(volume.freeBytes > 0)
    #expect(volume.remoteName == nil)
    // The kernel's own: PROC_SUPER_MAGIC of linux/magic.h.
    #expect(Volume(of: "/proc")?.type == 0x9FA0)
    #expect(Volume(of: folder.file("absent")) == nil)
  }

  @Test(
    "file systems of other machines are called by name",
    arguments: [
      (0x6969, "NFS"), (0xFE53_4D42, "SMB"), (0xFF53_4D42, "SMB"), (0x6573_5546, "FUSE"), (0x0102_1997, "9p"),
      (0x00C3_6400, "Ceph"),
      // A signed 32-bit long extends the sign.
      (-0x01AC_B2BE, "SMB"),
    ] as [(Int64, String)])
  func remote(_ type: Int64, _ name: String) {
    #expect(Volume(type: type, freeBytes: 0).remoteName == name)
  }

  @Test(
    "local ones are not", arguments: [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630] as [Int64])
  func local(_ type: Int64) {
    #expect(Volume(type: type, freeBytes: 0).remoteName == nil)
  }
}
