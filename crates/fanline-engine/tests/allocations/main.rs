//! In steady state nothing is allocated, once everything has its room; and what a store holds has bounds.
//!
//! A test binary of its own, because it replaces the global allocator.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

mod jetstream;
mod mqtt;
mod shard;
mod store;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread; others are the test harness.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    /// Bytes that it has allocated and not given back.
    static HELD: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count_one() {
    // Fails only while a thread ends, when nobody counts.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

fn count_held(taken: usize, given: usize) {
    let size = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
    let _ = HELD.try_with(|held| held.set(held.get() + size(taken) - size(given)));
}

// SAFETY: everything is left to `System`; counting touches a thread-local that needs no
// allocation itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        count_held(layout.size(), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count_one();
        count_held(bytes, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_held(0, layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread has allocated.
fn allocations_so_far() -> u64 {
    ALLOCATIONS.get()
}

/// How often `work` allocates.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = allocations_so_far();
    work();
    allocations_so_far() - before
}

/// How many bytes this thread has allocated and not given back.
fn held_so_far() -> i64 {
    HELD.get()
}
