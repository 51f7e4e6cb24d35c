//! What a shard does for another server on the same machine, with which it shares the cores.
//!
//! A thread that is woken takes its core from whoever runs there, and who has just written or read much is woken by
//! the other server: in the middle of its work. So it lets that go on first. What then is there to read and to
//! write is more at once.

use std::cell::Cell;
use std::thread;

/// So much at once keeps the other server busy for a while.
const MUCH_BYTES: usize = 32 * 1024;

thread_local! {
    /// Whether much went to or came from such a server since this thread last slept.
    static HAS_MOVED_MUCH: Cell<bool> = const { Cell::new(false) };
}

/// Notes that so much was read from such a server, or written to it.
pub(crate) fn note_moved(bytes: usize) {
    if bytes >= MUCH_BYTES {
        HAS_MOVED_MUCH.set(true);
    }
}

/// To be called when the thread has been woken; tells whether it let others go first.
pub(crate) fn give_way() -> bool {
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
    fn only_who_has_moved_much_gives_way_and_once() {
        note_moved(MUCH_BYTES - 1);
        assert!(!give_way());
        note_moved(MUCH_BYTES);
        note_moved(1);
        assert!(give_way());
        assert!(!give_way());
    }
}
