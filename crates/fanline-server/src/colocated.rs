//! Cooperation with another server on the same machine, which shares the cores.
//!
//! After a large read or write between the two servers, the other server still has work to do. If it wakes
//! this thread in the middle of that work, this thread would take the core from the other server. Therefore
//! this thread yields first. When it runs again, there is more to read and write.

use std::cell::Cell;
use std::thread;

/// Size in bytes of a read or write that gives the other server work for a while.
const MUCH_BYTES: usize = 32 * 1024;

thread_local! {
    /// Whether a read or write of at least `MUCH_BYTES` happened since this thread last slept.
    static HAS_MOVED_MUCH: Cell<bool> = const { Cell::new(false) };
}

/// Records a read from, or a write to, another server on this machine.
pub(crate) fn note_moved(bytes: usize) {
    if bytes >= MUCH_BYTES {
        HAS_MOVED_MUCH.set(true);
    }
}

/// Yields if the thread has read or written much before it slept, and returns whether it yielded. Called when
/// the thread is woken.
pub(crate) fn yield_if_needed() -> bool {
    let has_moved_much = HAS_MOVED_MUCH.replace(false);
    if has_moved_much {
        thread::yield_now();
    }
    has_moved_much
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_yields_once_after_a_large_transfer() {
        note_moved(MUCH_BYTES - 1);
        assert!(!yield_if_needed());
        note_moved(MUCH_BYTES);
        note_moved(1);
        assert!(yield_if_needed());
        assert!(!yield_if_needed());
    }
}
