// The parts of Linux that the Glibc module leaves out, and a fixed-arity form of the variadic calls.
#pragma once
#include <fcntl.h>
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>

static inline int nudged_fcntl_lock(int descriptor, int command, struct flock *range) {
  return fcntl(descriptor, command, range);
}

#include <errno.h>
#include <time.h>

// epoll_pwait2 came with Linux 5.11; before that, whole milliseconds, rounded up, have to do.
static inline int nudged_epoll_wait(int epoll, struct epoll_event *events, int count, const struct timespec *timeout) {
  int result = epoll_pwait2(epoll, events, count, timeout, NULL);
  if (result >= 0 || errno != ENOSYS) return result;
  int milliseconds = -1;
  if (timeout) {
    milliseconds = timeout->tv_sec > 1000000 ? 1000000000
      : (int)(timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000);
  }
  return epoll_wait(epoll, events, count, milliseconds);
}

#include <wchar.h>

// X/Open's; the Glibc module declares none of these.
extern int wcwidth(wchar_t character);

// Columns of a terminal that a character takes (wcwidth(3)): -1 for what has none.
static inline int nudged_columns(unsigned int scalar) { return wcwidth((wchar_t)scalar); }

#include <sys/vfs.h>

// Swift does not see a struct and a function that share their name when both come from here (statfs(2)).
static inline int nudged_volume(const char *path, long long *type, long long *free_bytes) {
  struct statfs status;
  if (statfs(path, &status) != 0) return -1;
  *type = status.f_type;
  *free_bytes = (long long)status.f_bavail * status.f_frsize;
  return 0;
}

#include <link.h>

// The beginning of struct dl_phdr_info, which link.h has for GNU's own dialect of C only.
struct nudged_object {
  ElfW(Addr) base;
  const char *name;
  const ElfW(Phdr) *headers;
  ElfW(Half) header_count;
};

// The program and each of its libraries in turn (dl_iterate_phdr(3)).
extern int nudged_each_object(int (*body)(struct nudged_object *object, size_t size, void *context), void *context)
  __asm__("dl_iterate_phdr");
