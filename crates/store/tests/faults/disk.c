/*
 * Preloaded into a test process: counts, fails and records the writes and syncs of the files below one directory.
 *
 * DISK_DIR      the directory, absolute and without symbolic links
 * DISK_CONTROL  a file of 64-bit words (struct control), which the test writes and this library maps
 * DISK_RECORD   the file that records are appended to while control.recording is set
 *
 * Nothing is really synced: the test decides what a disk would have kept.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct control {
    uint64_t calls;     /* writes, truncations and syncs so far */
    uint64_t fail_from; /* calls from this number on fail; 0: none */
    uint64_t fail_to;   /* up to this one */
    uint64_t error;     /* with this errno */
    uint64_t partly;    /* a write that fails has stored its first half, in whole sectors */
    uint64_t failed;    /* calls that have failed */
    uint64_t recording;
};

enum operation { WRITE = 1, SYNC, TRUNCATE, CREATE, UNLINK };

struct head {
    uint32_t operation;
    uint32_t name_bytes;
    uint64_t offset;
    uint64_t data_bytes;
};

#define FILES 4096
#define SECTOR 512

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *names[FILES]; /* of open files below the directory, relative to it */
static const char *directory;
static size_t directory_bytes;
static struct control *control;
static int record = -1;

static int (*real_open)(const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_truncate)(int, off_t);
static int (*real_unlink)(const char *);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

__attribute__((constructor)) static void start(void) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_truncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    const char *path = getenv("DISK_CONTROL"), *recorded = getenv("DISK_RECORD");
    directory = getenv("DISK_DIR");
    if (!path || !recorded || !directory)
        return;
    directory_bytes = strlen(directory);
    int file = real_open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        abort();
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (control == MAP_FAILED)
        abort();
    real_close(file);
    record = real_open(recorded, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (record < 0)
        abort();
}

static const char *below(const char *path) {
    if (!control || strncmp(path, directory, directory_bytes) != 0 || path[directory_bytes] != '/')
        return NULL;
    return path + directory_bytes + 1;
}

static const char *name_of(int file) {
    return control && file >= 0 && file < FILES ? names[file] : NULL;
}

static void put(const void *data, size_t bytes) {
    if (bytes && real_write(record, data, bytes) != (ssize_t)bytes)
        abort();
}

static void note(enum operation operation, const char *name, uint64_t offset, const void *data, size_t bytes) {
    if (!control->recording)
        return;
    struct head head = {operation, strlen(name), offset, bytes};
    put(&head, sizeof head);
    put(name, head.name_bytes);
    put(data, bytes);
}

/* Whether this call fails. */
static int fails(void) {
    uint64_t call = ++control->calls;
    if (!control->fail_from || call < control->fail_from || call > control->fail_to)
        return 0;
    control->failed++;
    errno = control->error;
    return 1;
}

static ssize_t put_at(int file, const char *name, const void *data, size_t bytes, off_t offset, int at) {
    pthread_mutex_lock(&lock);
    if (!at)
        offset = lseek(file, 0, SEEK_CUR);
    ssize_t done = -1;
    int error = 0;
    if (fails()) {
        error = errno;
        size_t half = bytes / 2 / SECTOR * SECTOR;
        /* The caller asks for the rest, and that fails. */
        if (control->partly && half > 0 && real_pwrite(file, data, half, offset) != (ssize_t)half)
            abort();
        if (control->partly && half > 0)
            note(WRITE, name, offset, data, half);
    } else {
        note(WRITE, name, offset, data, bytes);
        done = at ? real_pwrite(file, data, bytes, offset) : real_write(file, data, bytes);
        error = errno;
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

static int put_in_order(int file, const char *name) {
    pthread_mutex_lock(&lock);
    int failed = fails(), error = errno;
    if (!failed)
        note(SYNC, name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    (void)file;
    return failed ? -1 : 0;
}

static int opened(const char *path, int flags, mode_t mode) {
    const char *name = below(path);
    if (!name)
        return real_open(path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat there;
    int is_new = (flags & O_CREAT) && stat(path, &there) != 0;
    int file = real_open(path, flags, mode), error = errno;
    if (file >= 0 && file < FILES) {
        free(names[file]);
        names[file] = strdup(name);
        if (is_new)
            note(CREATE, name, 0, NULL, 0);
        if (flags & O_TRUNC)
            note(TRUNCATE, name, 0, NULL, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return file;
}

#define MODE(flags)                                    \
    mode_t mode = 0;                                   \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {           \
        va_list list;                                  \
        va_start(list, flags);                         \
        mode = va_arg(list, mode_t);                   \
        va_end(list);                                  \
    }

int open(const char *path, int flags, ...) {
    MODE(flags)
    return opened(path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags)
    return opened(path, flags, mode);
}

int close(int file) {
    if (control && file >= 0 && file < FILES && names[file]) {
        pthread_mutex_lock(&lock);
        free(names[file]);
        names[file] = NULL;
        pthread_mutex_unlock(&lock);
    }
    return real_close(file);
}

ssize_t write(int file, const void *data, size_t bytes) {
    const char *name = name_of(file);
    return name ? put_at(file, name, data, bytes, 0, 0) : real_write(file, data, bytes);
}

ssize_t pwrite(int file, const void *data, size_t bytes, off_t offset) {
    const char *name = name_of(file);
    return name ? put_at(file, name, data, bytes, offset, 1) : real_pwrite(file, data, bytes, offset);
}

ssize_t pwrite64(int file, const void *data, size_t bytes, off64_t offset) {
    return pwrite(file, data, bytes, offset);
}

static int truncated(int file, off_t bytes) {
    const char *name = name_of(file);
    if (!name)
        return real_truncate(file, bytes);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails()) {
        note(TRUNCATE, name, bytes, NULL, 0);
        done = real_truncate(file, bytes);
    }
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

int ftruncate(int file, off_t bytes) {
    return truncated(file, bytes);
}

int ftruncate64(int file, off64_t bytes) {
    return truncated(file, bytes);
}

int fsync(int file) {
    const char *name = name_of(file);
    return name ? put_in_order(file, name) : real_fsync(file);
}

int fdatasync(int file) {
    const char *name = name_of(file);
    return name ? put_in_order(file, name) : real_fdatasync(file);
}

int unlink(const char *path) {
    const char *name = below(path);
    if (!name)
        return real_unlink(path);
    pthread_mutex_lock(&lock);
    int done = real_unlink(path), error = errno;
    if (done == 0)
        note(UNLINK, name, 0, NULL, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}
