//! A queue that drops its oldest value to make room for a new one. It needs a lock, because both sides remove
//! values.

use std::collections::VecDeque;

use crate::sync::{Mutex, lock};

/// Queued values, at most `capacity`.
pub(super) struct Queue<T> {
    values: Mutex<VecDeque<T>>,
    capacity: usize,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            values: Mutex::new(VecDeque::new()),
            capacity,
        }
    }

    /// Adds a value. Returns the oldest one if the queue was full.
    pub(super) fn push_out(&self, value: T) -> Option<T> {
        let mut values = lock(&self.values);
        let full = values.len() >= self.capacity;
        let oldest = if full { values.pop_front() } else { None };
        values.push_back(value);
        oldest
    }

    pub(super) fn pop(&self) -> Option<T> {
        lock(&self.values).pop_front()
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.values).len()
    }

    /// Drops the queued values.
    pub(super) fn clear(&self) {
        let dropped = std::mem::take(&mut *lock(&self.values));
        drop(dropped);
    }
}
