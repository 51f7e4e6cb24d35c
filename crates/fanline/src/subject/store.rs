//! Retained values with the rules by which they go: the log, and for windows the ticks of a clock.

use std::collections::VecDeque;
use std::mem::needs_drop;
use std::ptr::NonNull;

use super::log::{GivenUp, Log};
use super::policy::Rules;
use crate::clock::Time;

pub(super) struct Store<T> {
    pub(super) log: Log<T>,
    /// Where values of a later time begin, oldest first: one entry for each time that differs, not for
    /// each value.
    runs: VecDeque<Run>,
    /// The time of the last run. Values of the same time join it, and so do values of an earlier one:
    /// a clock that goes back changes nothing.
    stamped: Time,
    /// Whether the next value begins a run whatever its time: there is none to join, or `latest` is
    /// past it.
    begins_run: bool,
    /// The latest time seen, by which age is counted.
    latest: Time,
}

struct Run {
    time: Time,
    from: usize,
}

impl<T> Store<T> {
    pub(super) fn new<P: Rules>(policy: &P) -> Self {
        Self {
            log: Log::new(P::COUNTED.then(|| policy.count_max())),
            runs: VecDeque::new(),
            stamped: Time::ZERO,
            begins_run: true,
            latest: Time::ZERO,
        }
    }

    /// Appends a value of the time `now`, and gives its address and what it displaced.
    #[inline]
    pub(super) fn append<P: Rules>(
        &mut self,
        policy: &P,
        value: T,
        now: Time,
    ) -> (NonNull<T>, GivenUp<T>) {
        let mut given_up = GivenUp::Nothing;
        if P::TIMED && (now > self.stamped || self.begins_run) {
            let fallen = self.turn_to(policy, now);
            // Without a destructor nothing ever is, which the compiler cannot know.
            if needs_drop::<T>() {
                given_up = fallen;
            }
        }
        if P::COUNTED && !needs_drop::<T>() && self.log.is_full() {
            self.reuse_chunks(policy);
        }
        let slot = self.log.append(value);
        if P::COUNTED && needs_drop::<T>() {
            // The value just appended is still to be passed on, so it stays even when none is kept.
            self.retain_newest(policy.count_max().max(1));
            given_up = given_up.and(self.log.give_up());
        }
        (slot, given_up)
    }

    /// Appends values of the time `now`, and gives what they displaced. Takes from `values` what it
    /// appends.
    pub(super) fn append_all<P: Rules>(
        &mut self,
        policy: &P,
        values: &mut Vec<T>,
        now: Time,
    ) -> GivenUp<T> {
        let mut given_up = GivenUp::Nothing;
        if P::TIMED && (now > self.stamped || self.begins_run) {
            given_up = self.turn_to(policy, now);
        }
        // What would not be retained need not be appended, unless somebody reads and must get all.
        let count = if P::COUNTED && !self.log.is_pinned() {
            values.len().min(policy.count_max())
        } else {
            values.len()
        };
        self.log.append_last(values, count);
        if P::COUNTED {
            self.retain_newest(policy.count_max());
            given_up = given_up.and(self.log.give_up());
        }
        given_up
    }

    /// Lets go of what the rules no longer retain at `now`. What stands in memory is given up by
    /// [`Log::give_up`], when that may be.
    pub(super) fn trim<P: Rules>(&mut self, policy: &P, now: Time) {
        self.trim_by_count(policy);
        if P::TIMED {
            self.latest = self.latest.max(now);
            self.expire(policy);
            self.begins_run = self.runs.is_empty() || self.latest > self.stamped;
        }
    }

    /// The same, by number alone.
    pub(super) fn trim_by_count<P: Rules>(&mut self, policy: &P) {
        if P::COUNTED {
            self.retain_newest(policy.count_max());
        }
    }

    /// Whether a value would be too old at `now`.
    pub(super) fn has_expired<P: Rules>(&self, policy: &P, now: Time) -> bool {
        let oldest = self.runs.front();
        oldest.is_some_and(|run| now.nanos_since(run.time) > policy.keep_nanos())
    }

    /// Lets go of everything.
    pub(super) fn clear(&mut self) {
        self.log.retain_from(self.log.end());
        self.runs = VecDeque::new();
        self.begins_run = true;
    }

    /// Frees chunks for what comes: without a destructor that is all there is to giving up.
    #[cold]
    fn reuse_chunks<P: Rules>(&mut self, policy: &P) {
        self.trim_by_count(policy);
        drop(self.log.give_up());
    }

    fn retain_newest(&mut self, count: usize) {
        self.log.retain_from(self.log.end().saturating_sub(count));
    }

    /// The clock has moved on: a new run begins, and values may have become too old.
    #[cold]
    fn turn_to<P: Rules>(&mut self, policy: &P, now: Time) -> GivenUp<T> {
        // A value is not older than the latest look at the clock, whoever took it.
        self.latest = self.latest.max(now);
        self.stamped = self.latest;
        self.begins_run = false;
        self.trim_by_count(policy);
        self.expire(policy);
        self.runs.push_back(Run {
            time: self.stamped,
            from: self.log.end(),
        });
        self.log.give_up()
    }

    /// Drops runs that are too old, or whose values are gone by number.
    fn expire<P: Rules>(&mut self, policy: &P) {
        let keep = policy.keep_nanos();
        while let Some(run) = self.runs.front() {
            let until = match self.runs.get(1) {
                Some(next) => next.from,
                None => self.log.end(),
            };
            let expired = self.latest.nanos_since(run.time) > keep;
            if !expired && until > self.log.first() {
                break;
            }
            self.log.retain_from(until);
            self.runs.pop_front();
        }
    }
}
