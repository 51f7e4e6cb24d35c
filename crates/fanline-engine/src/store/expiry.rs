//! Timers of records that have their own time to live.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::types::NEVER;

/// Times and sequences, earliest first. When a record is removed before its timer is due, the timer stays in
/// the heap until more than half of all timers belong to removed records. If no record has a time to live,
/// the heap uses no memory.
#[derive(Default)]
pub(super) struct Expiry {
    heap: BinaryHeap<Reverse<(i64, u64)>>,
    gone: usize,
}

impl Expiry {
    pub(super) fn insert(&mut self, expires_at: i64, sequence: u64) {
        if expires_at != NEVER {
            self.heap.push(Reverse((expires_at, sequence)));
        }
    }

    /// Counts a record that was removed before its timer was due. Returns whether to call
    /// [`retain`](Self::retain) to drop such timers.
    pub(super) fn note_gone(&mut self) -> bool {
        self.gone += 1;
        self.gone > 64 && self.gone > self.heap.len() / 2
    }

    pub(super) fn retain(&mut self, mut is_live: impl FnMut(u64) -> bool) {
        self.heap
            .retain(|Reverse((_, sequence))| is_live(*sequence));
        self.gone = 0;
    }

    /// Returns the earliest timer.
    pub(super) fn peek(&self) -> Option<(i64, u64)> {
        self.heap.peek().map(|Reverse(entry)| *entry)
    }

    /// Removes and returns the earliest timer if it is due.
    pub(super) fn pop_until(&mut self, now: i64) -> Option<(i64, u64)> {
        self.peek().filter(|(at, _)| *at <= now)?;
        // The caller removes the record and calls `note_gone`. That call counts a timer which is no longer in
        // the heap, so the count is reduced here in advance.
        self.gone = self.gone.saturating_sub(1);
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.heap.iter().map(|Reverse(entry)| *entry)
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.gone = 0;
    }
}
