//! The subscribers of one repetition, and whether they have received what they should have.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, ensure};

/// Hands out seats, and collects the counts when they are left.
pub(super) struct Audience {
    subscribers: usize,
    counts: Arc<Mutex<Vec<u64>>>,
}

/// Counts in a plain field of its own, and reports when it is dropped. What drops it is the end of
/// the subject, so a system that never lets go of an observer fails the check.
pub(super) struct Seat {
    count: u64,
    counts: Arc<Mutex<Vec<u64>>>,
}

/// How many of the messages a subscriber gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    All,
    /// And before them the value that the subject began with.
    AllAndInitial,
    /// When the subject completes.
    TheLast,
    /// A limit that stands for the storing alone.
    Nothing,
}

impl Audience {
    pub(super) fn new(subscribers: usize) -> Self {
        Self {
            subscribers,
            counts: Arc::new(Mutex::new(Vec::with_capacity(subscribers))),
        }
    }

    pub(super) fn seats(&self) -> impl Iterator<Item = Seat> + '_ {
        (0..self.subscribers).map(|_| Seat {
            count: 0,
            counts: Arc::clone(&self.counts),
        })
    }

    /// After the end of the subject.
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
            "{} of {} subscribers were let go of at the end",
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

impl Seat {
    /// One more.
    #[inline(always)]
    pub(super) fn bump(&mut self) {
        self.count += 1;
    }

    /// One more, looked at: in a slice, counting alone would be the addition of its length.
    #[inline(always)]
    pub(super) fn see(&mut self, value: u32) {
        black_box(value);
        self.count += 1;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.push(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_value_and_a_leaked_observer_fail_the_check() {
        let check = |taken: usize, bumps: u32, is_right: bool| {
            let audience = Audience::new(2);
            for mut seat in audience.seats().take(taken) {
                (0..bumps).for_each(|_| seat.bump());
            }
            assert_eq!(audience.check(3, Received::All).is_ok(), is_right);
        };
        check(2, 3, true);
        check(2, 2, false);
        check(2, 4, false);
        check(1, 3, false);
    }
}
