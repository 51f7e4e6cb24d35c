// Counts the bytes of the heap that are in use. Preloaded into the server, it writes the number to a file that the suite
// maps. Unlike resident memory, the number does not contain what the C library keeps for later allocations.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static _Atomic long before_start;
static _Atomic long *live = &before_start;

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("LIVE_BYTES");
    int file = name ? open(name, O_RDWR) : -1;
    if (file < 0) return;
    void *shared = mmap(NULL, sizeof *live, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED) return;
    *(_Atomic long *)shared = before_start;
    live = shared;
}

static void add(long bytes) {
    atomic_fetch_add_explicit(live, bytes, memory_order_relaxed);
}

static void *added(void *block) {
    add((long)malloc_usable_size(block));
    return block;
}

void *malloc(size_t size) {
    return added(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return added(__libc_calloc(count, size));
}

void *realloc(void *block, size_t size) {
    long old = (long)malloc_usable_size(block);
    void *moved = __libc_realloc(block, size);
    // If it fails, the old block stays.
    if (moved || size == 0) add(-old);
    return added(moved);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    void *found = added(__libc_memalign(alignment, size));
    if (!found) return ENOMEM;
    *block = found;
    return 0;
}

void *aligned_alloc(size_t alignment, size_t size) {
    return added(__libc_memalign(alignment, size));
}

void free(void *block) {
    add(-(long)malloc_usable_size(block));
    __libc_free(block);
}
