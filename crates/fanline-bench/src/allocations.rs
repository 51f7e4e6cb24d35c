//! How much each thread has allocated.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted per thread: two additions in memory of the thread's own, which
/// no other subcommand can notice.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

thread_local! {
    // Constant and without a destructor, so that reaching it never allocates and works to the end
    // of the thread.
    static TOTALS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

/// What a thread has allocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocations {
    /// How many times, growing a block included.
    pub(crate) count: u64,
    /// How many bytes; of a block that grows, those that came with it.
    pub(crate) bytes: u64,
}

impl Allocations {
    /// All that this thread has allocated so far.
    pub(crate) fn of_this_thread() -> Self {
        TOTALS.get()
    }

    /// What came since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            count: self.count - earlier.count,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

fn note(bytes: usize) {
    let mut totals = TOTALS.get();
    totals.count += 1;
    totals.bytes += bytes as u64;
    TOTALS.set(totals);
}

// SAFETY: every call is passed on as it came to the system's allocator, which keeps the contract;
// the counting beside it neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise is the one that this asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise is the one that this asks for.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `System` with this layout, through one of the others.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size.saturating_sub(layout.size()));
        // SAFETY: the block came from `System` with this layout; the size is the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_this_thread_only() {
        let before = Allocations::of_this_thread();
        std::hint::black_box(Vec::<u8>::with_capacity(100));
        let after = Allocations::of_this_thread();
        let expected = Allocations {
            count: 1,
            bytes: 100,
        };
        assert_eq!(after.since(before), expected);
        let elsewhere = std::thread::spawn(|| {
            let before = Allocations::of_this_thread();
            std::hint::black_box(vec![0u8; 1000]);
            Allocations::of_this_thread().since(before).bytes
        });
        assert_eq!(elsewhere.join().unwrap(), 1000);
    }
}
