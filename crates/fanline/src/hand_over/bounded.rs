//! A queue with a limit.

use std::collections::VecDeque;

use crate::sync::{Condvar, Mutex, lock, wait};

/// Values that wait, `capacity` at most.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    space: Condvar,
    capacity: usize,
}

struct State<T> {
    values: VecDeque<T>,
    /// Whether somebody waits for space.
    waited_for: bool,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            state: Mutex::new(State {
                values: VecDeque::new(),
                waited_for: false,
                closed: false,
            }),
            space: Condvar::new(),
            capacity,
        }
    }

    /// Adds a value, or gives it back when the queue is full.
    pub(super) fn try_push(&self, value: T) -> Result<(), T> {
        let mut state = lock(&self.state);
        if state.values.len() >= self.capacity {
            return Err(value);
        }
        state.values.push_back(value);
        Ok(())
    }

    /// Adds a value whether or not the queue is full.
    pub(super) fn push_beyond(&self, value: T) {
        lock(&self.state).values.push_back(value);
    }

    /// Adds a value, and gives back the oldest when the queue is full.
    pub(super) fn push_out(&self, value: T) -> Option<T> {
        let mut state = lock(&self.state);
        let full = state.values.len() >= self.capacity;
        let oldest = if full { state.values.pop_front() } else { None };
        state.values.push_back(value);
        oldest
    }

    /// Waits until there is space, or nobody will make any.
    pub(super) fn wait_for_space(&self) {
        let mut state = lock(&self.state);
        while state.values.len() >= self.capacity && !state.closed {
            state.waited_for = true;
            state = wait(&self.space, state);
        }
    }

    pub(super) fn pop(&self) -> Option<T> {
        let mut state = lock(&self.state);
        let value = state.values.pop_front();
        // Not for each value: to wake a thread costs more than to fill the queue.
        let wake = state.waited_for && state.values.len() <= self.capacity / 2;
        if wake {
            state.waited_for = false;
        }
        drop(state);
        if wake {
            self.space.notify_all();
        }
        value
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.state).values.len()
    }

    /// Drops what waits and lets go whoever waits for space.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.closed = true;
        let dropped = std::mem::take(&mut state.values);
        drop(state);
        self.space.notify_all();
        drop(dropped);
    }
}
