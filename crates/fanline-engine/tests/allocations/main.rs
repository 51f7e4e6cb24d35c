//! Checks that nothing is allocated after buffers have reached their size, and that the memory of a store is
//! bounded.
//!
//! This is a test binary of its own, because it replaces the global allocator.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

mod jetstream;
mod mqtt;
mod shard;
mod store;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Number of allocations of this thread. Other threads, such as those of the test harness, do not count.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread has allocated and not freed.
    static HELD: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count_one() {
    // The access fails only while a thread ends, when nothing is measured.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

fn count_held(taken: usize, given: usize) {
    let size = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    let _ = HELD.try_with(|held| held.set(held.get() + size(taken) - size(given)));
}

// SAFETY: all calls are forwarded to `System`. The counters are in thread-local variables that do not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        count_held(layout.size(), 0);
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count_one();
        count_held(bytes, layout.size());
        // SAFETY: the caller upholds the same contract.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_held(0, layout.size());
        // SAFETY: the caller upholds the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations of this thread so far.
fn allocations_so_far() -> u64 {
    ALLOCATIONS.get()
}

/// Returns the number of allocations of `work`.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = allocations_so_far();
    work();
    allocations_so_far() - before
}

/// Returns the bytes that this thread has allocated and not freed.
fn allocated_bytes() -> i64 {
    HELD.get()
}
