import CLinux
import Glibc

/// The pages of the program's own file and of its libraries' that have been read.
enum ProgramPages {
  /// Takes them out of the process's memory; what is needed again comes back from the kernel's cache of files.
  ///
  /// Of segments that can be written nothing is taken: what stands there is in no file (elf(5), `PT_LOAD` and `PF_W`;
  /// madvise(2), `MADV_DONTNEED`).
  static func giveBack() {
    _ = nudged_each_object(
      { object, _, _ in
        guard let object = object?.pointee else { return 0 }
        let pageSize = UInt(getpagesize())
        for header in UnsafeBufferPointer(start: object.headers, count: Int(object.header_count))
        where header.p_type == PT_LOAD && header.p_flags & UInt32(PF_W) == 0 {
          let start = UInt(object.base + header.p_vaddr)
          let length = start % pageSize + UInt(header.p_memsz)
          madvise(UnsafeMutableRawPointer(bitPattern: start - start % pageSize), Int(length), MADV_DONTNEED)
        }
        return 0
      }, nil)
  }
}
