//! In steady state nothing is allocated, once everything has its room.
//!
//! A test binary of its own, because it replaces the global allocator.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

mod jetstream;
mod shard;
mod store;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations of this thread; others are the test harness.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count_one() {
    // Fails only while a thread ends, when nobody counts.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is left to `System`; counting touches a thread-local that needs no
// allocation itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count_one();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
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
