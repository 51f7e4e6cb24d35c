//! The subscribers of one repetition, and the check of the values that they received.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};

/// Creates subscribers that count, and collects their counts when they are dropped.
pub(super) struct Audience {
    subscribers: usize,
    counts: Arc<Mutex<Vec<u64>>>,
}

/// A subscriber that counts in a plain field and reports the count when it is dropped. The end of the subject
/// drops it, so a system that leaks an observer fails the check.
pub(super) struct Counter {
    count: u64,
    counts: Arc<Mutex<Vec<u64>>>,
}

/// The values that a subscriber must receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    All,
    /// All messages after the subject's initial value.
    AllAndInitial,
    /// Only the last message, on completion.
    TheLast,
    /// No message, for a reference loop that measures only the storage.
    Nothing,
}

impl Audience {
    pub(super) fn new(subscribers: usize) -> Self {
        Self {
            subscribers,
            counts: Arc::new(Mutex::new(Vec::with_capacity(subscribers))),
        }
    }

    pub(super) fn counters(&self) -> impl Iterator<Item = Counter> + '_ {
        (0..self.subscribers).map(|_| Counter {
            count: 0,
            counts: Arc::clone(&self.counts),
        })
    }

    /// Checks the counts after the end of the subject.
    pub(super) fn check(&self, messages: u32, received: Received) -> Result<()> {
        let messages = u64::from(messages);
        let expected = match received {
            Received::All => messages,
            Received::AllAndInitial => messages + 1,
            Received::TheLast => 1,
            Received::Nothing => 0,
        };
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(
            counts.len() == self.subscribers,
            "{} of {} subscribers were dropped at the end",
            counts.len(),
            self.subscribers
        );
        let wrong = counts.iter().find(|count| **count != expected);
        ensure!(
            wrong.is_none(),
            "a subscriber has received {} values instead of {expected}",
            wrong.copied().unwrap_or_default()
        );
        Ok(())
    }
}

impl Counter {
    /// Counts one value without reading it.
    #[inline(always)]
    pub(super) fn count_value(&mut self) {
        self.count += 1;
    }

    /// Counts one value and reads it. Without the read, the compiler would replace the loop over a slice by
    /// adding the slice's length.
    #[inline(always)]
    pub(super) fn see(&mut self, value: u32) {
        black_box(value);
        self.count += 1;
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.push(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_value_or_leaked_observer_fails_check() {
        let check = |taken: usize, bumps: u32, is_right: bool| {
            let audience = Audience::new(2);
            for mut counter in audience.counters().take(taken) {
                (0..bumps).for_each(|_| counter.count_value());
            }
            assert_eq!(audience.check(3, Received::All).is_ok(), is_right);
        };
        check(2, 3, true);
        check(2, 2, false);
        check(2, 4, false);
        check(1, 3, false);
    }
}
