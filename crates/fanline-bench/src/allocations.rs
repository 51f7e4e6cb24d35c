//! Counts of allocations per thread.
#![expect(unsafe_code, reason = "an allocator is an unsafe trait")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counts per thread. Counting is two additions in thread-local memory, which
/// does not affect other measurements.
struct Counted;

#[global_allocator]
static ALLOCATOR: Counted = Counted;

thread_local! {
    // The initial value is a constant, and the type has no destructor. So an access never allocates, and works
    // until the thread ends.
    static TOTALS: Cell<Allocations> = const { Cell::new(Allocations { count: 0, bytes: 0 }) };
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocations {
    /// Number of allocations. The growth of a block counts as one.
    pub(crate) count: u64,
    /// Number of allocated bytes. For the growth of a block, the number of added bytes.
    pub(crate) bytes: u64,
}

impl Allocations {
    pub(crate) fn of_this_thread() -> Self {
        TOTALS.get()
    }

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

// SAFETY: every call is forwarded unchanged to the system's allocator, which fulfills the contract. Counting
// neither allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller fulfills the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller fulfills the same contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from `System` with this layout, through one of the other methods.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size.saturating_sub(layout.size()));
        // SAFETY: the block came from `System` with this layout; the caller guarantees the size.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_calling_thread() {
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
