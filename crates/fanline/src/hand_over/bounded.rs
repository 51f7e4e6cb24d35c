//! A queue whose oldest value gives way to a new one, which takes a lock: both sides take values out.

use std::collections::VecDeque;

use crate::sync::{Mutex, lock};

/// Values that wait, `capacity` at most.
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

    /// Adds a value, and gives back the oldest when the queue is full.
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

    /// Drops what waits.
    pub(super) fn clear(&self) {
        let dropped = std::mem::take(&mut *lock(&self.values));
        drop(dropped);
    }
}
