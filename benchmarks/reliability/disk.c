/* A disk that fails: calls that change what lies below a folder are counted, and one of them fails.
 *
 * Preloaded into a process by disk.py, which says through a shared file what is to fail, and when.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ONCE, ONWARD, SHORT };                 /* how the chosen call fails: alone, with all after it, after half a write */
enum { WRITES = 1, FLUSHES = 2, NAMES = 4, REMOVALS = 8, CLOSES = 16 };

struct control {                              /* as disk.py has it */
    int32_t armed, code, mode, calls;         /* error number; kinds of calls that count */
    int64_t seen, at, failed;                 /* calls so far; which is to fail; how many did */
    char folder[1024];
    char what[1024];                          /* the first call that failed */
};

static struct control *shared;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CGHASH_FAULTS");
    if (!path) return;
    int fd = REAL(open)(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *at = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) shared = at;
    REAL(close)(fd);
}

static int below(const char *path) {
    size_t n = strlen(shared->folder);
    return n && strncmp(path, shared->folder, n) == 0;
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return 1;
}

static int absolute(int folder, const char *name, char *path) {
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return 1;
    }
    if (folder == AT_FDCWD) {
        if (!getcwd(path, PATH_MAX)) return 0;
    } else if (!path_of(folder, path)) return 0;
    size_t n = strlen(path);
    snprintf(path + n, PATH_MAX - n, "/%s", name);
    return 1;
}

/* Whether this call is to fail; `half` where it may write half of what it was given. */
static int fails(int kind, const char *name, const char *path, int *half) {
    if (!shared->armed || !(shared->calls & kind) || !below(path)) return 0;
    int64_t n = __sync_add_and_fetch(&shared->seen, 1);
    if (shared->at == 0 || n < shared->at) return 0;
    int mode = shared->mode;
    if (mode == SHORT && n == shared->at && half) {
        *half = 1;
        return 0;
    }
    if (n > shared->at && !(mode == ONWARD || (mode == SHORT && kind == WRITES && shared->failed == 0))) return 0;
    if (__sync_fetch_and_add(&shared->failed, 1) == 0) snprintf(shared->what, sizeof shared->what, "%s %s", name, path);
    return 1;
}

static int failing_file(int kind, const char *name, int fd, int *half) {
    char path[PATH_MAX];
    if (!shared || !shared->armed) return 0;
    int before = errno;
    int found = path_of(fd, path) && fails(kind, name, path, half);
    errno = found ? shared->code : before;
    return found;
}

static int failing_name(int kind, const char *name, int folder, const char *path) {
    char whole[PATH_MAX + NAME_MAX];
    if (!shared || !shared->armed || !path) return 0;
    int before = errno;
    int found = absolute(folder, path, whole) && fails(kind, name, whole, NULL);
    errno = found ? shared->code : before;
    return found;
}

#define EXPORT __attribute__((visibility("default")))

#define WRITING(name, ...)                                                                      \
    static __typeof__(&name) real;                                                              \
    if (!real) real = REAL(name);                                                               \
    int half = 0;                                                                               \
    if (failing_file(WRITES, #name, fd, &half)) return -1;                                      \
    if (half && n > 1) n /= 2;                                                                  \
    return real(__VA_ARGS__)

EXPORT ssize_t write(int fd, const void *bytes, size_t n) { WRITING(write, fd, bytes, n); }
EXPORT ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at) { WRITING(pwrite, fd, bytes, n, at); }
EXPORT ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at) { WRITING(pwrite64, fd, bytes, n, at); }
EXPORT ssize_t writev(int fd, const struct iovec *parts, int n) { WRITING(writev, fd, parts, n); }
EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int n, off_t at) { WRITING(pwritev, fd, parts, n, at); }
EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int n, off64_t at) { WRITING(pwritev64, fd, parts, n, at); }
EXPORT ssize_t copy_file_range(int from, off64_t *a, int fd, off64_t *b, size_t n, unsigned flags) {
    WRITING(copy_file_range, from, a, fd, b, n, flags);
}
ssize_t sendfile(int, int, off_t *, size_t);
ssize_t sendfile64(int, int, off64_t *, size_t);
EXPORT ssize_t sendfile(int fd, int from, off_t *at, size_t n) { WRITING(sendfile, fd, from, at, n); }
EXPORT ssize_t sendfile64(int fd, int from, off64_t *at, size_t n) { WRITING(sendfile64, fd, from, at, n); }

#define ON_FILE(kind, name, error, ...)                                                         \
    static __typeof__(&name) real;                                                              \
    if (!real) real = REAL(name);                                                               \
    if (failing_file(kind, #name, fd, NULL)) return error;                                      \
    return real(__VA_ARGS__)

EXPORT int fsync(int fd) { ON_FILE(FLUSHES, fsync, -1, fd); }
EXPORT int fdatasync(int fd) { ON_FILE(FLUSHES, fdatasync, -1, fd); }
EXPORT int ftruncate(int fd, off_t n) { ON_FILE(WRITES, ftruncate, -1, fd, n); }
EXPORT int ftruncate64(int fd, off64_t n) { ON_FILE(WRITES, ftruncate64, -1, fd, n); }
EXPORT int fallocate(int fd, int mode, off_t at, off_t n) { ON_FILE(WRITES, fallocate, -1, fd, mode, at, n); }
EXPORT int fallocate64(int fd, int mode, off64_t at, off64_t n) { ON_FILE(WRITES, fallocate64, -1, fd, mode, at, n); }
EXPORT int posix_fallocate(int fd, off_t at, off_t n) { ON_FILE(WRITES, posix_fallocate, errno, fd, at, n); }
EXPORT int posix_fallocate64(int fd, off64_t at, off64_t n) { ON_FILE(WRITES, posix_fallocate64, errno, fd, at, n); }

EXPORT int close(int fd) {
    static __typeof__(&close) real;
    if (!real) real = REAL(close);
    int flags = shared && shared->armed && (shared->calls & CLOSES) ? fcntl(fd, F_GETFL) : -1;
    int failed = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && failing_file(CLOSES, "close", fd, NULL);
    int done = real(fd);
    if (!failed) return done;
    errno = shared->code;
    return -1;
}

/* Only a call that makes a file or folder can fail for want of room. */
static int makes(int folder, const char *path) {
    if (!shared || !shared->armed) return 0;
    int before = errno, missing = faccessat(folder, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
    errno = before;
    return missing;
}

#define ON_NAME(kind, name, folder, path, ...)                                                  \
    static __typeof__(&name) real;                                                              \
    if (!real) real = REAL(name);                                                               \
    if (failing_name(kind, #name, folder, path)) return -1;                                     \
    return real(__VA_ARGS__)

EXPORT int rename(const char *from, const char *to) { ON_NAME(NAMES, rename, AT_FDCWD, to, from, to); }
EXPORT int renameat(int a, const char *from, int b, const char *to) { ON_NAME(NAMES, renameat, b, to, a, from, b, to); }
EXPORT int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    ON_NAME(NAMES, renameat2, b, to, a, from, b, to, flags);
}
EXPORT int link(const char *from, const char *to) { ON_NAME(NAMES, link, AT_FDCWD, to, from, to); }
EXPORT int linkat(int a, const char *from, int b, const char *to, int flags) {
    ON_NAME(NAMES, linkat, b, to, a, from, b, to, flags);
}
EXPORT int symlink(const char *from, const char *to) { ON_NAME(NAMES, symlink, AT_FDCWD, to, from, to); }
EXPORT int mkdir(const char *path, mode_t mode) {
    ON_NAME(makes(AT_FDCWD, path) ? NAMES : 0, mkdir, AT_FDCWD, path, path, mode);
}
EXPORT int mkdirat(int folder, const char *path, mode_t mode) {
    ON_NAME(makes(folder, path) ? NAMES : 0, mkdirat, folder, path, folder, path, mode);
}
EXPORT int unlink(const char *path) { ON_NAME(REMOVALS, unlink, AT_FDCWD, path, path); }
EXPORT int unlinkat(int folder, const char *path, int flags) { ON_NAME(REMOVALS, unlinkat, folder, path, folder, path, flags); }
EXPORT int rmdir(const char *path) { ON_NAME(REMOVALS, rmdir, AT_FDCWD, path, path); }

#define OPENING(name, folder, ...)                                                              \
    static __typeof__(&name) real;                                                              \
    if (!real) real = REAL(name);                                                               \
    mode_t mode = 0;                                                                            \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                      \
        va_list rest;                                                                           \
        va_start(rest, flags);                                                                  \
        mode = va_arg(rest, mode_t);                                                            \
        va_end(rest);                                                                           \
    }                                                                                           \
    if ((flags & O_CREAT) && makes(folder, path) && failing_name(NAMES, #name, folder, path)) return -1;      \
    return real(__VA_ARGS__, mode)

EXPORT int open(const char *path, int flags, ...) { OPENING(open, AT_FDCWD, path, flags); }
EXPORT int open64(const char *path, int flags, ...) { OPENING(open64, AT_FDCWD, path, flags); }
EXPORT int openat(int folder, const char *path, int flags, ...) { OPENING(openat, folder, folder, path, flags); }
EXPORT int openat64(int folder, const char *path, int flags, ...) { OPENING(openat64, folder, folder, path, flags); }
