/* Library preloaded into a server: records operations on the files of one directory, and fails calls on command.
 *
 *   RECORD_ROOT=DIR     the directory, absolute; files ending in -shm are left out, since SQLite makes them anew
 *   RECORD_LOG=FILE     where the record goes: a sequence of records as disk.py reads them
 *   FAIL_CALL=NAME      a call to fail: fsync, write, rename, unlink, open, link or mmap ...
 *   FAIL_NTH=N          ... the n-th of them in the directory, counted from 1; 0 only counts
 *   FAIL_ERRNO=N        ... with this errno; 0 makes a write short
 *   FAIL_LOG=FILE       where the number of calls of each kind is written at the exit, and the failed one when it fails
 *
 * A change is made and recorded under one lock, so the record has the order of the changes. A sync is recorded when it
 * begins and when it has ended: what was written in between is not covered by it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN = 1, WRITE, TRUNCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, LINK, MKDIR, RMDIR };
enum { CREATED = 1, TRUNCATED = 2 };

static const char *const CALLS[] = {"fsync", "write", "rename", "unlink", "open", "link", "mmap"};
enum { FSYNC_CALL, WRITE_CALL, RENAME_CALL, UNLINK_CALL, OPEN_CALL, LINK_CALL, MMAP_CALL, CALL_COUNT };

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char root[PATH_MAX];
static size_t root_length;
static int log_fd = -1, fail_call = -1, fail_errno;
static long fail_nth, counts[CALL_COUNT];
static uint64_t syncs;

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("RECORD_ROOT"), *path = getenv("RECORD_LOG"), *call = getenv("FAIL_CALL");
    if (given == NULL) return;
    snprintf(root, sizeof root, "%s", given);
    root_length = strlen(root);
    if (path != NULL) log_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (int at = 0; call != NULL && at < CALL_COUNT; at++)
        if (strcmp(call, CALLS[at]) == 0) fail_call = at;
    fail_nth = getenv("FAIL_NTH") ? atol(getenv("FAIL_NTH")) : 0;
    fail_errno = getenv("FAIL_ERRNO") ? atoi(getenv("FAIL_ERRNO")) : 0;
}

/* Appends a line to the log of failures; by raw calls, since the others are ours. */
static void tell(const char *line) {
    const char *path = getenv("FAIL_LOG");
    if (path == NULL) return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0) return;
    (void)!syscall(SYS_write, fd, line, strlen(line));
    syscall(SYS_close, fd);
}

__attribute__((destructor)) static void end(void) {
    char line[256];
    int length = 0;
    if (root_length == 0) return;
    for (int at = 0; at < CALL_COUNT; at++)
        length += snprintf(line + length, sizeof line - (size_t)length, "%s=%ld ", CALLS[at], counts[at]);
    snprintf(line + length, sizeof line - (size_t)length, "\n");
    tell(line);
}

/* Is a path in the directory, and of a file that counts? */
static int is_ours(const char *path) {
    size_t length = strlen(path);
    if (root_length == 0 || strncmp(path, root, root_length) != 0) return 0;
    if (path[root_length] != '/' && path[root_length] != '\0') return 0;
    return length < 4 || strcmp(path + length - 4, "-shm") != 0;
}

/* The absolute path of a name relative to an open directory. */
static int path_of(int dir, const char *name, char *path) {
    if (name[0] == '/') return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    char link[64], above[PATH_MAX];
    if (dir == AT_FDCWD) {
        if (getcwd(above, sizeof above) == NULL) return 0;
    } else {
        snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        ssize_t length = readlink(link, above, sizeof above - 1);
        if (length < 0) return 0;
        above[length] = '\0';
    }
    return snprintf(path, PATH_MAX, "%s/%s", above, name) < PATH_MAX;
}

static int path_of_fd(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return 1;
}

/* Is this an open file of ours? An unlinked one counts: its path has " (deleted)" behind it. */
static int is_our_fd(int fd, char *path) {
    return root_length != 0 && path_of_fd(fd, path) && is_ours(path) && strstr(path, "-shm") == NULL;
}

static uint64_t inode(int fd) {
    struct stat found;
    return fstat(fd, &found) == 0 ? (uint64_t)found.st_ino : 0;
}

struct head {
    uint32_t length;
    uint16_t first, second;
    uint64_t op, ino, a, b;
};

static void record(uint64_t op, uint64_t ino, uint64_t a, uint64_t b, const char *first, const char *second,
                   const void *data, size_t bytes) {
    if (log_fd < 0) return;
    struct head head = {0, (uint16_t)strlen(first), (uint16_t)strlen(second), op, ino, a, b};
    head.length = (uint32_t)(sizeof head + head.first + head.second + bytes);
    struct iovec parts[] = {{&head, sizeof head}, {(void *)first, head.first}, {(void *)second, head.second}, {(void *)data, bytes}};
    if (syscall(SYS_writev, log_fd, parts, 4) != (ssize_t)head.length) abort();
}

/* Counts a call, and says whether it fails. */
static int fails(int call) {
    char line[128];
    counts[call]++;
    if (call != fail_call || counts[call] != fail_nth) return 0;
    snprintf(line, sizeof line, "failed %s %ld with %d\n", CALLS[call], fail_nth, fail_errno);
    tell(line);
    return 1;
}

static int fail(void) {
    errno = fail_errno;
    return -1;
}

#define IN_TURN(body)                                                                                                      \
    do {                                                                                                                   \
        pthread_mutex_lock(&lock);                                                                                         \
        body int saved = errno;                                                                                            \
        pthread_mutex_unlock(&lock);                                                                                       \
        errno = saved;                                                                                                     \
    } while (0)

static int do_open(int dir, const char *name, int flags, mode_t mode) {
    REAL(openat64);
    char path[PATH_MAX];
    if (root_length == 0 || !path_of(dir, name, path) || !is_ours(path)) return real(dir, name, flags, mode);
    int fd = -1;
    IN_TURN({
        struct stat before;
        int is_there = fstatat(dir, name, &before, 0) == 0;
        if (fails(OPEN_CALL)) {
            fd = fail();
        } else {
            fd = real(dir, name, flags, mode);
        }
        if (fd >= 0) {
            uint64_t made = (is_there ? 0 : CREATED) | (flags & O_TRUNC ? TRUNCATED : 0);
            if (made != 0) record(OPEN, inode(fd), made, 0, path, "", NULL, 0);
        }
    });
    return fd;
}

#define OPEN_LIKE(name)                                                                                                    \
    int name(const char *path, int flags, ...) {                                                                           \
        mode_t mode = 0;                                                                                                   \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
            va_list rest;                                                                                                  \
            va_start(rest, flags);                                                                                         \
            mode = va_arg(rest, mode_t);                                                                                   \
            va_end(rest);                                                                                                  \
        }                                                                                                                  \
        return do_open(AT_FDCWD, path, flags, mode);                                                                       \
    }
OPEN_LIKE(open)
OPEN_LIKE(open64)

#define OPENAT_LIKE(name)                                                                                                  \
    int name(int dir, const char *path, int flags, ...) {                                                                  \
        mode_t mode = 0;                                                                                                   \
        if (flags & (O_CREAT | O_TMPFILE)) {                                                                               \
            va_list rest;                                                                                                  \
            va_start(rest, flags);                                                                                         \
            mode = va_arg(rest, mode_t);                                                                                   \
            va_end(rest);                                                                                                  \
        }                                                                                                                  \
        return do_open(dir, path, flags, mode);                                                                            \
    }
OPENAT_LIKE(openat)

/* A write at a place, or at the file's own place where `at` is negative. */
static ssize_t do_write(int fd, const void *data, size_t bytes, off64_t at) {
    REAL(pwrite64);
    char path[PATH_MAX];
    if (!is_our_fd(fd, path)) return at < 0 ? syscall(SYS_write, fd, data, bytes) : real(fd, data, bytes, at);
    ssize_t done = -1;
    IN_TURN({
        int is_failed = fails(WRITE_CALL);
        if (is_failed && fail_errno != 0) {
            done = fail();
        } else {
            size_t wanted = is_failed && bytes > 1 ? bytes / 2 : bytes;
            done = at < 0 ? syscall(SYS_write, fd, data, wanted) : real(fd, data, wanted, at);
        }
        if (done > 0) {
            uint64_t place = at < 0 ? (uint64_t)(lseek(fd, 0, SEEK_CUR) - done) : (uint64_t)at;
            record(WRITE, inode(fd), place, 0, "", "", data, (size_t)done);
        }
    });
    return done;
}

ssize_t write(int fd, const void *data, size_t bytes) { return do_write(fd, data, bytes, -1); }
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t at) { return do_write(fd, data, bytes, at); }
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t at) { return do_write(fd, data, bytes, at); }

ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!is_our_fd(fd, path)) return syscall(SYS_writev, fd, parts, count);
    ssize_t sum = 0;
    for (int at = 0; at < count; at++) {
        ssize_t done = do_write(fd, parts[at].iov_base, parts[at].iov_len, -1);
        if (done < 0) return sum > 0 ? sum : done;
        sum += done;
        if ((size_t)done < parts[at].iov_len) break;
    }
    return sum;
}

/* They take other paths for which there are fallbacks. */
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *place, size_t bytes, unsigned flags) {
    REAL(copy_file_range);
    char path[PATH_MAX];
    if (!is_our_fd(to, path)) return real(from, at, to, place, bytes, flags);
    errno = ENOSYS;
    return -1;
}

static int do_truncate(int fd, off64_t size) {
    REAL(ftruncate64);
    char path[PATH_MAX];
    if (!is_our_fd(fd, path)) return real(fd, size);
    int done = -1;
    IN_TURN({
        done = real(fd, size);
        if (done == 0) record(TRUNCATE, inode(fd), (uint64_t)size, 0, "", "", NULL, 0);
    });
    return done;
}

int ftruncate(int fd, off_t size) { return do_truncate(fd, size); }
int ftruncate64(int fd, off64_t size) { return do_truncate(fd, size); }

static int do_sync(int fd, int (*real)(int)) {
    char path[PATH_MAX];
    if (!is_our_fd(fd, path)) return real(fd);
    uint64_t sync = 0, ino = inode(fd);
    int is_failed = 0;
    IN_TURN({
        is_failed = fails(FSYNC_CALL);
        sync = ++syncs;
        if (!is_failed) record(SYNC_BEGIN, ino, sync, 0, path, "", NULL, 0);
    });
    if (is_failed) return fail();
    int done = real(fd);
    if (done == 0) IN_TURN({ record(SYNC_END, ino, sync, 0, path, "", NULL, 0); });
    return done;
}

int fsync(int fd) {
    REAL(fsync);
    return do_sync(fd, real);
}
int fdatasync(int fd) {
    REAL(fdatasync);
    return do_sync(fd, real);
}

/* A call that gives one name for another: both take two names and flags. */
static int do_name(int call, uint64_t op, long number, int from_dir, const char *from, int to_dir, const char *to, int flags) {
    char first[PATH_MAX], second[PATH_MAX];
    int is_found = path_of(from_dir, from, first) && path_of(to_dir, to, second);
    if (!is_found || !is_ours(second)) return (int)syscall(number, from_dir, from, to_dir, to, flags);
    int done = -1;
    IN_TURN({
        done = fails(call) ? fail() : (int)syscall(number, from_dir, from, to_dir, to, flags);
        if (done == 0) record(op, 0, 0, 0, first, second, NULL, 0);
    });
    return done;
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    return do_name(RENAME_CALL, RENAME, SYS_renameat2, from_dir, from, to_dir, to, (int)flags);
}
int renameat(int from_dir, const char *from, int to_dir, const char *to) { return renameat2(from_dir, from, to_dir, to, 0); }
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    return do_name(LINK_CALL, LINK, SYS_linkat, from_dir, from, to_dir, to, flags);
}
int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

static int do_unlink(int dir, const char *name, int flags) {
    char path[PATH_MAX];
    if (!path_of(dir, name, path) || !is_ours(path)) return (int)syscall(SYS_unlinkat, dir, name, flags);
    int done = -1;
    IN_TURN({
        done = fails(UNLINK_CALL) ? fail() : (int)syscall(SYS_unlinkat, dir, name, flags);
        if (done == 0) record(flags & AT_REMOVEDIR ? RMDIR : UNLINK, 0, 0, 0, path, "", NULL, 0);
    });
    return done;
}

int unlink(const char *name) { return do_unlink(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return do_unlink(AT_FDCWD, name, AT_REMOVEDIR); }
int unlinkat(int dir, const char *name, int flags) { return do_unlink(dir, name, flags); }

static int do_mkdir(int dir, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!path_of(dir, name, path) || !is_ours(path)) return (int)syscall(SYS_mkdirat, dir, name, mode);
    int done = -1;
    IN_TURN({
        done = (int)syscall(SYS_mkdirat, dir, name, mode);
        if (done == 0) record(MKDIR, 0, 0, 0, path, "", NULL, 0);
    });
    return done;
}

int mkdir(const char *name, mode_t mode) { return do_mkdir(AT_FDCWD, name, mode); }
int mkdirat(int dir, const char *name, mode_t mode) { return do_mkdir(dir, name, mode); }

static void *do_mmap(void *at, size_t bytes, int access, int flags, int fd, off64_t offset) {
    char path[PATH_MAX];
    /* The index of SQLite's log is a file too, though its content does not count. */
    if (fd >= 0 && root_length != 0 && path_of_fd(fd, path) && strncmp(path, root, root_length) == 0) {
        int is_failed = 0;
        IN_TURN({ is_failed = fails(MMAP_CALL); });
        if (is_failed) {
            errno = fail_errno;
            return MAP_FAILED;
        }
    }
    return (void *)syscall(SYS_mmap, at, bytes, access, flags, fd, offset);
}

void *mmap(void *at, size_t bytes, int access, int flags, int fd, off_t offset) {
    return do_mmap(at, bytes, access, flags, fd, offset);
}
void *mmap64(void *at, size_t bytes, int access, int flags, int fd, off64_t offset) {
    return do_mmap(at, bytes, access, flags, fd, offset);
}
