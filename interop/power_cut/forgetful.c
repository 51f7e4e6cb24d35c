/* A journal of everything that a process does to the files below one folder.
 *
 *   FORGETFUL_ROOT=/folder FORGETFUL_JOURNAL=/journal LD_PRELOAD=forgetful.so program
 *
 * Each call is passed on to the C library, then its effect is appended to the journal. One mutex is held around a
 * call and its entry, so the entries have the order of the effects. Syncs run outside of the mutex and have two
 * entries, at their begin and at their end, since writes in between may or may not be covered.
 *
 * FORGETFUL_SYNC_MICROS makes each sync take that much longer. `journal.py` reads the journal.
 *
 * A program that makes system calls without the C library, as Go programs do, is not recorded. Calls that cannot be
 * replayed (shared writable mappings, io_uring, raw system calls) leave an entry of the kind UNSUPPORTED, which fails
 * the suite.
 */
#define _GNU_SOURCE
#include <dirent.h>
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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum kind {
    OPEN = 1,
    CLOSE,
    DUP,
    WRITE,
    TRUNCATE,
    RENAME,
    UNLINK,
    MKDIR,
    RMDIR,
    LINK,
    SYNC_BEGIN,
    SYNC_END,
    UNSUPPORTED,
};

/* Flags of OPEN and WRITE. */
enum { CREATED = 1, TRUNCATED = 2, ZEROS = 4 };

struct entry {
    uint32_t magic;
    uint16_t kind;
    uint16_t flags;
    uint64_t nanos;  /* CLOCK_MONOTONIC, before the effect */
    int64_t file;    /* file descriptor, or the number of a sync */
    int64_t value;   /* offset, length, or second file descriptor */
    uint64_t bytes;  /* of data that were written */
    uint32_t path;   /* bytes of the first path, below the root */
    uint32_t other;  /* bytes of the second one */
    uint64_t stored; /* bytes of data that follow */
};

#define MAGIC 0x74676f46u
#define FILES_MAX 65536

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_bytes;
static int journal = -1;
static long sync_micros;
static int64_t syncs;
/* Which file descriptors are regular files below the root. */
static volatile unsigned char tracked[FILES_MAX];

#define REAL(name) ((__typeof__(&name))real(#name, &real_##name))
#define DECLARE(name) static void *real_##name

static void *real(const char *name, void **place) {
    if (*place == NULL) {
        *place = dlsym(RTLD_NEXT, name);
        if (*place == NULL) {
            abort();
        }
    }
    return *place;
}

static void fail(const char *why) {
    dprintf(2, "forgetful: %s: %s\n", why, strerror(errno));
    _exit(97);
}

__attribute__((constructor)) static void start(void) {
    const char *folder = getenv("FORGETFUL_ROOT");
    const char *path = getenv("FORGETFUL_JOURNAL");
    const char *micros = getenv("FORGETFUL_SYNC_MICROS");
    /* Child processes are not recorded. */
    unsetenv("LD_PRELOAD");
    if (folder == NULL || path == NULL) {
        return;
    }
    if (realpath(folder, root) == NULL) {
        fail(folder);
    }
    root_bytes = strlen(root);
    sync_micros = micros == NULL ? 0 : atol(micros);
    journal = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (journal < 0) {
        fail(path);
    }
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* --- Paths ------------------------------------------------------------------------------------------- */

/* Writes the path relative to the root to `out`. Returns 0 for a path outside of it. */
static int below_root(int folder, const char *path, char out[PATH_MAX]) {
    char whole[PATH_MAX];
    if (journal < 0 || path == NULL) {
        return 0;
    }
    if (path[0] == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        char link[64], base[PATH_MAX];
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        ssize_t bytes = readlink(link, base, sizeof base - 1);
        if (bytes < 0) {
            return 0;
        }
        base[bytes] = 0;
        if (snprintf(whole, sizeof whole, "%s/%s", base, path) >= (int)sizeof whole) {
            return 0;
        }
    }
    size_t bytes = strlen(whole);
    while (bytes > 1 && whole[bytes - 1] == '/') {
        whole[--bytes] = 0;
    }
    if (strncmp(whole, root, root_bytes) != 0) {
        return 0;
    }
    if (whole[root_bytes] == 0) {
        out[0] = 0;
        return 1;
    }
    if (whole[root_bytes] != '/') {
        return 0;
    }
    snprintf(out, PATH_MAX, "%s", whole + root_bytes + 1);
    return 1;
}

static int is_tracked(int file) {
    return file >= 0 && file < FILES_MAX && tracked[file];
}

/* --- The journal ------------------------------------------------------------------------------------- */

static int is_zero(const char *data, size_t bytes) {
    return bytes > 0 && data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

/* Appends an entry to the journal. The caller holds the mutex. */
static void record(struct entry entry, const char *path, const char *other, const void *data) {
    int saved = errno;
    entry.magic = MAGIC;
    entry.path = path == NULL ? 0 : (uint32_t)strlen(path);
    entry.other = other == NULL ? 0 : (uint32_t)strlen(other);
    entry.stored = data == NULL ? 0 : entry.bytes;
    if (entry.stored > 0 && is_zero(data, entry.stored)) {
        entry.flags |= ZEROS;
        entry.stored = 0;
    }
    struct iovec parts[4] = {
        {&entry, sizeof entry},
        {(void *)path, entry.path},
        {(void *)other, entry.other},
        {(void *)data, entry.stored},
    };
    size_t left = sizeof entry + entry.path + entry.other + entry.stored;
    struct iovec *first = parts;
    while (left > 0) {
        long written = syscall(SYS_writev, journal, first, 4 - (first - parts));
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            fail("the journal cannot be written");
        }
        left -= (size_t)written;
        while (written > 0 && (size_t)written >= first->iov_len) {
            written -= (long)first->iov_len;
            first++;
        }
        first->iov_base = (char *)first->iov_base + written;
        first->iov_len -= (size_t)written;
    }
    errno = saved;
}

static void unsupported(const char *what) {
    if (journal >= 0) {
        pthread_mutex_lock(&mutex);
        record((struct entry){.kind = UNSUPPORTED, .nanos = now()}, what, NULL, NULL);
        pthread_mutex_unlock(&mutex);
    }
}

/* --- Opening and closing ----------------------------------------------------------------------------- */

DECLARE(openat);

static int open_below(int folder, const char *path, int flags, mode_t mode) {
    char name[PATH_MAX];
    if (!below_root(folder, path, name)) {
        return REAL(openat)(folder, path, flags, mode);
    }
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        unsupported("O_TMPFILE");
    }
    pthread_mutex_lock(&mutex);
    uint64_t nanos = now();
    struct stat found;
    int existed = fstatat(folder, path, &found, 0) == 0;
    int file = REAL(openat)(folder, path, flags, mode);
    int saved = errno;
    if (file >= 0 && fstat(file, &found) == 0 && S_ISREG(found.st_mode)) {
        if (file >= FILES_MAX) {
            fail("too many open files");
        }
        uint16_t what = existed ? ((flags & O_TRUNC) ? TRUNCATED : 0) : CREATED;
        tracked[file] = 1;
        record((struct entry){.kind = OPEN, .flags = what, .nanos = nanos, .file = file}, name, NULL, NULL);
    }
    pthread_mutex_unlock(&mutex);
    errno = saved;
    return file;
}

#define OPEN_MODE(flags)                                     \
    mode_t mode = 0;                                         \
    if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {  \
        va_list rest;                                        \
        va_start(rest, flags);                               \
        mode = va_arg(rest, mode_t);                         \
        va_end(rest);                                        \
    }

int open(const char *path, int flags, ...) {
    OPEN_MODE(flags)
    return open_below(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    OPEN_MODE(flags)
    return open_below(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    OPEN_MODE(flags)
    return open_below(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    OPEN_MODE(flags)
    return open_below(folder, path, flags, mode);
}

int creat(const char *path, mode_t mode) {
    return open_below(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode) {
    return open_below(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

DECLARE(close);

int close(int file) {
    if (!is_tracked(file)) {
        return REAL(close)(file);
    }
    pthread_mutex_lock(&mutex);
    uint64_t nanos = now();
    tracked[file] = 0;
    int result = REAL(close)(file);
    record((struct entry){.kind = CLOSE, .nanos = nanos, .file = file}, NULL, NULL, NULL);
    pthread_mutex_unlock(&mutex);
    return result;
}

/* Records that `copy` is a second descriptor of the same file. The caller holds the mutex. */
static void note_copy(int file, int copy, uint64_t nanos) {
    if (copy >= 0 && copy < FILES_MAX && file != copy) {
        if (is_tracked(file)) {
            tracked[copy] = 1;
            record((struct entry){.kind = DUP, .nanos = nanos, .file = file, .value = copy}, NULL, NULL, NULL);
        } else if (is_tracked(copy)) {
            tracked[copy] = 0;
            record((struct entry){.kind = CLOSE, .nanos = nanos, .file = copy}, NULL, NULL, NULL);
        }
    }
}

#define COPIED(file, call)             \
    pthread_mutex_lock(&mutex);        \
    uint64_t nanos = now();            \
    int copy = call;                   \
    note_copy(file, copy, nanos);      \
    pthread_mutex_unlock(&mutex);      \
    return copy;

DECLARE(dup);
DECLARE(dup2);
DECLARE(dup3);
DECLARE(fcntl);

int dup(int file) { COPIED(file, REAL(dup)(file)) }
int dup2(int file, int to) { COPIED(file, REAL(dup2)(file, to)) }
int dup3(int file, int to, int flags) { COPIED(file, REAL(dup3)(file, to, flags)) }

static int control(int file, int command, long argument) {
    if ((command != F_DUPFD && command != F_DUPFD_CLOEXEC) || !is_tracked(file)) {
        return REAL(fcntl)(file, command, argument);
    }
    COPIED(file, REAL(fcntl)(file, command, argument))
}

#define CONTROL                                \
    va_list rest;                              \
    va_start(rest, command);                   \
    long argument = va_arg(rest, long);        \
    va_end(rest);                              \
    return control(file, command, argument);

int fcntl(int file, int command, ...) { CONTROL }
int fcntl64(int file, int command, ...) { CONTROL }

/* --- Writing ----------------------------------------------------------------------------------------- */

/* Records a write that ended at the file's current position. The caller holds the mutex. */
static void record_at_position(int file, uint64_t nanos, const void *data, ssize_t bytes) {
    if (bytes > 0) {
        off_t end = lseek(file, 0, SEEK_CUR);
        struct entry entry = {
            .kind = WRITE, .nanos = nanos, .file = file, .value = end - bytes, .bytes = (uint64_t)bytes};
        record(entry, NULL, NULL, data);
    }
}

static void record_at(int file, uint64_t nanos, const void *data, ssize_t bytes, off_t offset) {
    if (bytes > 0) {
        struct entry entry = {
            .kind = WRITE, .nanos = nanos, .file = file, .value = offset, .bytes = (uint64_t)bytes};
        record(entry, NULL, NULL, data);
    }
}

/* Returns the buffers of a vectored write, joined. The caller frees the result. */
static char *joined(const struct iovec *parts, int count) {
    size_t bytes = 0;
    for (int at = 0; at < count; at++) {
        bytes += parts[at].iov_len;
    }
    char *whole = malloc(bytes + 1), *to = whole;
    if (whole == NULL) {
        fail("no memory");
    }
    for (int at = 0; at < count; at++) {
        memcpy(to, parts[at].iov_base, parts[at].iov_len);
        to += parts[at].iov_len;
    }
    return whole;
}

/* Records data that a call has copied into a file, reading them back. The caller holds the mutex. */
static void record_copied(int file, uint64_t nanos, ssize_t bytes, off_t offset) {
    if (bytes > 0) {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        int reader = (int)syscall(SYS_openat, AT_FDCWD, link, O_RDONLY | O_CLOEXEC);
        char *data = malloc((size_t)bytes);
        if (reader < 0 || data == NULL || pread(reader, data, (size_t)bytes, offset) != bytes) {
            fail("what was copied cannot be read");
        }
        record_at(file, nanos, data, bytes, offset);
        syscall(SYS_close, reader);
        free(data);
    }
}

#define RECORDED(file, call, recorded)   \
    if (!is_tracked(file)) {             \
        return call;                     \
    }                                    \
    pthread_mutex_lock(&mutex);          \
    uint64_t nanos = now();              \
    __typeof__(call) result = call;      \
    int saved = errno;                   \
    recorded;                            \
    pthread_mutex_unlock(&mutex);        \
    errno = saved;                       \
    return result;

#define JOINED(parts, count, recorded)          \
    do {                                        \
        char *data = joined(parts, count);      \
        recorded;                               \
        free(data);                             \
    } while (0)

DECLARE(write);
DECLARE(pwrite);
DECLARE(writev);
DECLARE(pwritev);
DECLARE(pwritev2);
DECLARE(copy_file_range);
DECLARE(sendfile);

ssize_t write(int file, const void *data, size_t bytes) {
    RECORDED(file, REAL(write)(file, data, bytes), record_at_position(file, nanos, data, result))
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
    RECORDED(file, REAL(pwrite)(file, data, bytes, offset), record_at(file, nanos, data, result, offset))
}

ssize_t pwrite64(int file, const void *data, size_t bytes, off64_t offset) {
    RECORDED(file, REAL(pwrite)(file, data, bytes, offset), record_at(file, nanos, data, result, offset))
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    RECORDED(file, REAL(writev)(file, parts, count),
             JOINED(parts, count, record_at_position(file, nanos, data, result)))
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    RECORDED(file, REAL(pwritev)(file, parts, count, offset),
             JOINED(parts, count, record_at(file, nanos, data, result, offset)))
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    RECORDED(file, REAL(pwritev)(file, parts, count, offset),
             JOINED(parts, count, record_at(file, nanos, data, result, offset)))
}

#define WRITTEN_WITH_FLAGS                                                            \
    RECORDED(file, REAL(pwritev2)(file, parts, count, offset, flags),                 \
             JOINED(parts, count, offset == -1 ? record_at_position(file, nanos, data, result) \
                                               : record_at(file, nanos, data, result, offset)))

ssize_t pwritev2(int file, const struct iovec *parts, int count, off_t offset, int flags) { WRITTEN_WITH_FLAGS }
ssize_t pwritev64v2(int file, const struct iovec *parts, int count, off64_t offset, int flags) { WRITTEN_WITH_FLAGS }

ssize_t copy_file_range(int from, off64_t *from_offset, int to, off64_t *to_offset, size_t bytes, unsigned flags) {
    off64_t offset = to_offset != NULL ? *to_offset : lseek(to, 0, SEEK_CUR);
    RECORDED(to, REAL(copy_file_range)(from, from_offset, to, to_offset, bytes, flags),
             record_copied(to, nanos, result, offset))
}

ssize_t sendfile(int to, int from, off_t *from_offset, size_t bytes) {
    off_t offset = is_tracked(to) ? lseek(to, 0, SEEK_CUR) : 0;
    RECORDED(to, REAL(sendfile)(to, from, from_offset, bytes), record_copied(to, nanos, result, offset))
}

ssize_t sendfile64(int to, int from, off64_t *from_offset, size_t bytes) {
    return sendfile(to, from, from_offset, bytes);
}

/* --- Lengths ----------------------------------------------------------------------------------------- */

static void record_length(int file, uint64_t nanos, int result) {
    struct stat found;
    if (result == 0 && fstat(file, &found) == 0) {
        struct entry entry = {.kind = TRUNCATE, .nanos = nanos, .file = file, .value = found.st_size};
        record(entry, NULL, NULL, NULL);
    }
}

DECLARE(ftruncate);
DECLARE(truncate);
DECLARE(fallocate);
DECLARE(posix_fallocate);

int ftruncate(int file, off_t bytes) {
    RECORDED(file, REAL(ftruncate)(file, bytes), record_length(file, nanos, result))
}

int ftruncate64(int file, off64_t bytes) {
    RECORDED(file, REAL(ftruncate)(file, bytes), record_length(file, nanos, result))
}

static int truncated_by_path(const char *path, off_t bytes) {
    char name[PATH_MAX];
    if (below_root(AT_FDCWD, path, name)) {
        unsupported("truncate");
    }
    return REAL(truncate)(path, bytes);
}

int truncate(const char *path, off_t bytes) { return truncated_by_path(path, bytes); }
int truncate64(const char *path, off64_t bytes) { return truncated_by_path(path, bytes); }

static int allocated(int file, int mode, off_t offset, off_t bytes) {
    if (is_tracked(file) && (mode & ~FALLOC_FL_KEEP_SIZE) != 0) {
        unsupported("fallocate with a mode");
    }
    RECORDED(file, REAL(fallocate)(file, mode, offset, bytes), record_length(file, nanos, result))
}

int fallocate(int file, int mode, off_t offset, off_t bytes) { return allocated(file, mode, offset, bytes); }
int fallocate64(int file, int mode, off64_t offset, off64_t bytes) { return allocated(file, mode, offset, bytes); }

int posix_fallocate(int file, off_t offset, off_t bytes) {
    RECORDED(file, REAL(posix_fallocate)(file, offset, bytes), record_length(file, nanos, result))
}

int posix_fallocate64(int file, off64_t offset, off64_t bytes) { return posix_fallocate(file, offset, bytes); }

/* --- Names ------------------------------------------------------------------------------------------- */

#define NAMED(what, folder, path, call)                                               \
    char name[PATH_MAX];                                                              \
    if (!below_root(folder, path, name)) {                                            \
        return call;                                                                  \
    }                                                                                 \
    pthread_mutex_lock(&mutex);                                                       \
    uint64_t nanos = now();                                                           \
    int result = call, saved = errno;                                                 \
    if (result == 0) {                                                                \
        record((struct entry){.kind = what, .nanos = nanos}, name, NULL, NULL);       \
    }                                                                                 \
    pthread_mutex_unlock(&mutex);                                                     \
    errno = saved;                                                                    \
    return result;

/* Either both names are below the root or none is. */
#define NAMED_TWICE(what, folder, path, to_folder, to_path, call)                     \
    char name[PATH_MAX], to[PATH_MAX];                                                \
    int is_from = below_root(folder, path, name);                                     \
    int is_to = below_root(to_folder, to_path, to);                                   \
    if (is_from != is_to) {                                                           \
        unsupported("a name that leads into the folder or out of it");                \
    }                                                                                 \
    if (!is_from || !is_to) {                                                         \
        return call;                                                                  \
    }                                                                                 \
    pthread_mutex_lock(&mutex);                                                       \
    uint64_t nanos = now();                                                           \
    int result = call, saved = errno;                                                 \
    if (result == 0) {                                                                \
        record((struct entry){.kind = what, .nanos = nanos}, name, to, NULL);         \
    }                                                                                 \
    pthread_mutex_unlock(&mutex);                                                     \
    errno = saved;                                                                    \
    return result;

DECLARE(rename);
DECLARE(renameat);
DECLARE(renameat2);
DECLARE(link);
DECLARE(linkat);
DECLARE(symlink);
DECLARE(symlinkat);
DECLARE(unlink);
DECLARE(unlinkat);
DECLARE(mkdir);
DECLARE(mkdirat);
DECLARE(rmdir);

int rename(const char *from, const char *to_path) {
    NAMED_TWICE(RENAME, AT_FDCWD, from, AT_FDCWD, to_path, REAL(rename)(from, to_path))
}

int renameat(int folder, const char *from, int to_folder, const char *to_path) {
    NAMED_TWICE(RENAME, folder, from, to_folder, to_path, REAL(renameat)(folder, from, to_folder, to_path))
}

int renameat2(int folder, const char *from, int to_folder, const char *to_path, unsigned flags) {
    if (flags & ~(unsigned)RENAME_NOREPLACE) {
        unsupported("renameat2 with flags");
    }
    NAMED_TWICE(RENAME, folder, from, to_folder, to_path, REAL(renameat2)(folder, from, to_folder, to_path, flags))
}

int link(const char *from, const char *to_path) {
    NAMED_TWICE(LINK, AT_FDCWD, from, AT_FDCWD, to_path, REAL(link)(from, to_path))
}

int linkat(int folder, const char *from, int to_folder, const char *to_path, int flags) {
    NAMED_TWICE(LINK, folder, from, to_folder, to_path, REAL(linkat)(folder, from, to_folder, to_path, flags))
}

int symlink(const char *target, const char *path) {
    char name[PATH_MAX];
    if (below_root(AT_FDCWD, path, name)) {
        unsupported("symlink");
    }
    return REAL(symlink)(target, path);
}

int symlinkat(const char *target, int folder, const char *path) {
    char name[PATH_MAX];
    if (below_root(folder, path, name)) {
        unsupported("symlinkat");
    }
    return REAL(symlinkat)(target, folder, path);
}

int unlink(const char *path) { NAMED(UNLINK, AT_FDCWD, path, REAL(unlink)(path)) }

int unlinkat(int folder, const char *path, int flags) {
    enum kind kind = (flags & AT_REMOVEDIR) ? RMDIR : UNLINK;
    NAMED(kind, folder, path, REAL(unlinkat)(folder, path, flags))
}

int mkdir(const char *path, mode_t mode) { NAMED(MKDIR, AT_FDCWD, path, REAL(mkdir)(path, mode)) }
int mkdirat(int folder, const char *path, mode_t mode) { NAMED(MKDIR, folder, path, REAL(mkdirat)(folder, path, mode)) }
int rmdir(const char *path) { NAMED(RMDIR, AT_FDCWD, path, REAL(rmdir)(path)) }

int remove(const char *path) {
    struct stat found;
    if (lstat(path, &found) == 0 && S_ISDIR(found.st_mode)) {
        return rmdir(path);
    }
    return unlink(path);
}

/* --- Syncs ------------------------------------------------------------------------------------------- */

/* Records the begin of a sync and returns its number; 0 for a file or folder outside of the root. */
static int64_t sync_begins(int file) {
    char link[64], path[PATH_MAX], name[PATH_MAX];
    struct stat found;
    int is_file = is_tracked(file);
    if (journal < 0 || file < 0) {
        return 0;
    }
    if (!is_file) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t bytes = readlink(link, path, sizeof path - 1);
        if (bytes < 0) {
            return 0;
        }
        path[bytes] = 0;
        if (!below_root(AT_FDCWD, path, name) || fstat(file, &found) != 0 || !S_ISDIR(found.st_mode)) {
            return 0;
        }
    }
    pthread_mutex_lock(&mutex);
    int64_t number = ++syncs;
    struct entry entry = {.kind = SYNC_BEGIN, .nanos = now(), .file = number, .value = is_file ? file : -1};
    record(entry, is_file ? NULL : name, NULL, NULL);
    pthread_mutex_unlock(&mutex);
    if (sync_micros > 0) {
        struct timespec time = {sync_micros / 1000000, sync_micros % 1000000 * 1000};
        nanosleep(&time, NULL);
    }
    return number;
}

static int sync_ends(int64_t number, int result) {
    if (number > 0 && result == 0) {
        pthread_mutex_lock(&mutex);
        record((struct entry){.kind = SYNC_END, .nanos = now(), .file = number}, NULL, NULL, NULL);
        pthread_mutex_unlock(&mutex);
    }
    return result;
}

DECLARE(fsync);
DECLARE(fdatasync);
DECLARE(sync);
DECLARE(syncfs);

int fsync(int file) {
    int64_t number = sync_begins(file);
    return sync_ends(number, REAL(fsync)(file));
}

int fdatasync(int file) {
    int64_t number = sync_begins(file);
    return sync_ends(number, REAL(fdatasync)(file));
}

void sync(void) {
    unsupported("sync");
    REAL(sync)();
}

int syncfs(int file) {
    unsupported("syncfs");
    return REAL(syncfs)(file);
}

/* --- What is not recorded ---------------------------------------------------------------------------- */

DECLARE(mmap);

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (is_tracked(file) && (flags & MAP_SHARED) && (protection & PROT_WRITE)) {
        unsupported("a shared writable mapping");
    }
    return REAL(mmap)(address, bytes, protection, flags, file, offset);
}

void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off64_t offset) {
    return mmap(address, bytes, protection, flags, file, offset);
}

DECLARE(syscall);

long syscall(long number, ...) {
    va_list rest;
    va_start(rest, number);
    long a = va_arg(rest, long), b = va_arg(rest, long), c = va_arg(rest, long);
    long d = va_arg(rest, long), e = va_arg(rest, long), f = va_arg(rest, long);
    va_end(rest);
    long (*call)(long, ...) = REAL(syscall);
    switch (number) {
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_pwritev2:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_fsync:
    case SYS_fdatasync:
        if (is_tracked((int)a)) {
            unsupported("a raw system call on a file");
        }
        break;
    case SYS_copy_file_range:
        if (is_tracked((int)c)) {
            unsupported("a raw system call on a file");
        }
        break;
    case SYS_openat:
    case SYS_openat2:
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_mkdirat: {
        char name[PATH_MAX];
        if (below_root((int)a, (const char *)b, name)) {
            unsupported("a raw system call on a name");
        }
        break;
    }
    case SYS_io_uring_setup:
        unsupported("io_uring");
        break;
    }
    return call(number, a, b, c, d, e, f);
}
