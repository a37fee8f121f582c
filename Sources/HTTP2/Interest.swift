import CLinux
import Glibc

/// What descriptors are registered for in the caller's epoll, level-triggered and all under one tag.
struct Interest {
  let epoll: Int32
  let tag: UInt64

  func add(_ descriptor: Int32, _ events: UInt32) -> Bool { control(EPOLL_CTL_ADD, descriptor, events) }

  func modify(_ descriptor: Int32, _ events: UInt32) -> Bool { control(EPOLL_CTL_MOD, descriptor, events) }

  private func control(_ operation: Int32, _ descriptor: Int32, _ events: UInt32) -> Bool {
    var event = unsafe epoll_event(events: events, data: epoll_data_t(u64: tag))
    return unsafe epoll_ctl(epoll, operation, descriptor, &event) == 0
  }
}
