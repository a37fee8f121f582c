/* What a power loss would leave of a database: a library to preload into nudged.
 *
 *     cc -shared -fPIC -o power.so power.c
 *     POWER_DATABASE=/real/path/app.db POWER_IMAGES=/empty/folder LD_PRELOAD=power.so nudged run ...
 *
 * It keeps a second copy of the database, its -wal and its -journal, which changes only as a disk has to change:
 * a file's bytes when fsync or fdatasync of that file has returned, a name that came or went when the folder has been
 * synced. Whatever was written and not synced is lost, the worst that can happen.
 *
 * Before each SSL_write that begins the Nth request of the process (an HTTP/2 HEADERS frame, RFC 9113, 6.2), the copy
 * as it stands is put into POWER_IMAGES/before-N. With POWER_DROP set, syncs count for nothing: the control.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 3 };
static const char *const suffixes[FILES] = {"", "-wal", "-journal"};

static const char *database, *images;
static char folder[PATH_MAX], name[NAME_MAX];
static int drops;
/* Which file stands behind each durable name; 0 for none. */
static ino_t durable_inode[FILES];

static void fail(const char *what) {
  perror(what);
  abort();
}

static void path_in(char *path, const char *place, int file) {
  if (snprintf(path, PATH_MAX, "%s/%s/%s%s", images, place, name, suffixes[file]) >= PATH_MAX) fail("path");
}

static void make_folder(const char *place) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", images, place) >= (int)sizeof path) fail("path");
  mkdir(path, 0700);
}

/* Copies through a descriptor that stays open: to open and close the database here would drop SQLite's locks. */
static void copy(int from, const char *to) {
  char buffer[65536];
  off_t offset = 0;
  ssize_t count;
  int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (target < 0) fail(to);
  while ((count = pread(from, buffer, sizeof buffer, offset)) > 0) {
    if (write(target, buffer, count) != count) fail(to);
    offset += count;
  }
  close(target);
}

static void copy_path(const char *from, const char *to) {
  int source = open(from, O_RDONLY | O_CLOEXEC);
  if (source < 0) return;
  copy(source, to);
  close(source);
}

__attribute__((constructor)) static void begin(void) {
  database = getenv("POWER_DATABASE");
  images = getenv("POWER_IMAGES");
  if (!database || !images) return;
  drops = getenv("POWER_DROP") != NULL;
  const char *slash = strrchr(database, '/');
  if (!slash) fail("POWER_DATABASE");
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - database), database);
  snprintf(name, sizeof name, "%s", slash + 1);
  make_folder("durable");
  make_folder("synced");
  for (int file = 0; file < FILES; file++) {
    char from[PATH_MAX], to[PATH_MAX];
    struct stat status;
    snprintf(from, sizeof from, "%s%s", database, suffixes[file]);
    if (stat(from, &status) != 0) continue;
    path_in(to, "durable", file);
    copy_path(from, to);
    durable_inode[file] = status.st_ino;
  }
}

static void synced_folder(void) {
  for (int file = 0; file < FILES; file++) {
    char real[PATH_MAX], durable[PATH_MAX], synced[PATH_MAX];
    struct stat status;
    snprintf(real, sizeof real, "%s%s", database, suffixes[file]);
    path_in(durable, "durable", file);
    path_in(synced, "synced", file);
    if (stat(real, &status) != 0) {
      unlink(durable);
      unlink(synced);
      durable_inode[file] = 0;
    } else if (status.st_ino != durable_inode[file]) {
      unlink(durable);
      if (rename(synced, durable) != 0) close(open(durable, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
      durable_inode[file] = status.st_ino;
    }
  }
}

static void synced(int descriptor) {
  char link[64], path[PATH_MAX], to[PATH_MAX];
  if (!images || drops) return;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return;
  path[length] = 0;
  if (strcmp(path, folder) == 0) return synced_folder();
  size_t prefix = strlen(database);
  if (strncmp(path, database, prefix) != 0) return;
  for (int file = 0; file < FILES; file++) {
    struct stat status;
    if (strcmp(path + prefix, suffixes[file]) != 0 || fstat(descriptor, &status) != 0) continue;
    path_in(to, status.st_ino == durable_inode[file] ? "durable" : "synced", file);
    copy(descriptor, to);
  }
}

int fdatasync(int descriptor) {
  static int (*next)(int);
  if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  int result = next(descriptor);
  if (result == 0) synced(descriptor);
  return result;
}

int fsync(int descriptor) {
  static int (*next)(int);
  if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  int result = next(descriptor);
  if (result == 0) synced(descriptor);
  return result;
}

/* Where one connection's bytes stand between HTTP/2 frames. */
struct frames {
  void *ssl;
  int preface, in_header;
  unsigned char header[9];
  unsigned long payload;
  unsigned long requests;
};

static struct frames connections[64];
static unsigned long requests;

static void pass(struct frames *at, const unsigned char *bytes, int count) {
  for (int i = 0; i < count; i++) {
    if (at->preface > 0) {
      at->preface--;
    } else if (at->payload > 0) {
      at->payload--;
    } else {
      at->header[at->in_header++] = bytes[i];
      if (at->in_header < 9) continue;
      at->in_header = 0;
      at->payload = (unsigned long)at->header[0] << 16 | at->header[1] << 8 | at->header[2];
      if (at->header[3] == 1) at->requests++;
    }
  }
}

int SSL_write(void *ssl, const void *bytes, int count) {
  static int (*next)(void *, const void *, int);
  if (!next) next = (int (*)(void *, const void *, int))dlsym(RTLD_NEXT, "SSL_write");
  if (!images) return next(ssl, bytes, count);
  struct frames *at = connections;
  while (at->ssl && at->ssl != ssl) {
    if (++at == connections + 64) fail("too many connections");
  }
  if (!at->ssl) *at = (struct frames){.ssl = ssl, .preface = 24};
  struct frames ahead = *at;
  pass(&ahead, bytes, count);
  if (ahead.requests > at->requests) {
    char place[64], from[PATH_MAX], to[PATH_MAX];
    snprintf(place, sizeof place, "before-%lu", requests + ahead.requests - at->requests);
    make_folder(place);
    for (int file = 0; file < FILES; file++) {
      path_in(from, "durable", file);
      path_in(to, place, file);
      copy_path(from, to);
    }
  }
  int result = next(ssl, bytes, count);
  if (result > 0) {
    unsigned long before = at->requests;
    pass(at, bytes, result);
    requests += at->requests - before;
  }
  return result;
}
