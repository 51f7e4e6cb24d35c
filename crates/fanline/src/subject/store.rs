//! Retained values: their log, the rules that remove values from it, and the timestamps that time windows need.

use std::collections::VecDeque;
use std::mem::needs_drop;
use std::ptr::NonNull;

use super::log::{Evicted, Log};
use super::policy::Rules;
use crate::clock::Time;

pub(super) struct Store<T> {
    pub(super) log: Log<T>,
    /// The positions at which the timestamp changes, oldest first: one entry per timestamp, not per value.
    runs: VecDeque<Run>,
    /// The timestamp of the last run. A value with the same or an earlier timestamp is added to that run. So
    /// a clock that goes back has no effect.
    last_stamp: Time,
    /// Whether the next value begins a run, even if its timestamp is not later than the last one. This is the
    /// case if there is no run, or if `latest` is later than the timestamp of the last run.
    begins_run: bool,
    /// The latest time seen. The age of values is computed from it.
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
            last_stamp: Time::ZERO,
            begins_run: true,
            latest: Time::ZERO,
        }
    }

    /// Appends a value with the timestamp `now`. Returns its address and the values it displaced.
    #[inline]
    pub(super) fn append<P: Rules>(
        &mut self,
        policy: &P,
        value: T,
        now: Time,
    ) -> (NonNull<T>, Evicted<T>) {
        let mut evicted = Evicted::Nothing;
        if P::TIMED && (now > self.last_stamp || self.begins_run) {
            let displaced = self.begin_run(policy, now);
            // Without a destructor `displaced` is always empty, which the compiler cannot know.
            if needs_drop::<T>() {
                evicted = displaced;
            }
        }
        if P::COUNTED && !needs_drop::<T>() && self.log.is_full() {
            self.reuse_chunks(policy);
        }
        let slot = self.log.append(value);
        if P::COUNTED && needs_drop::<T>() {
            // The new value is not emitted yet, so it stays even if the policy retains no value.
            self.retain_newest(policy.count_max().max(1));
            evicted = evicted.and(self.log.evict());
        }
        (slot, evicted)
    }

    /// Appends values with the timestamp `now`, and returns the values they displaced. The appended values
    /// are removed from `values`.
    pub(super) fn append_all<P: Rules>(
        &mut self,
        policy: &P,
        values: &mut Vec<T>,
        now: Time,
    ) -> Evicted<T> {
        let mut evicted = Evicted::Nothing;
        if P::TIMED && (now > self.last_stamp || self.begins_run) {
            evicted = self.begin_run(policy, now);
        }
        // Values that would not be retained are not appended, unless a reader that pins the log needs them.
        let count = if P::COUNTED && !self.log.is_pinned() {
            values.len().min(policy.count_max())
        } else {
            values.len()
        };
        self.log.append_last(values, count);
        if P::COUNTED {
            self.retain_newest(policy.count_max());
            evicted = evicted.and(self.log.evict());
        }
        evicted
    }

    /// Ends the retention of values that the policy does not retain at the time `now`. [`Log::evict`] removes
    /// them from memory.
    pub(super) fn trim<P: Rules>(&mut self, policy: &P, now: Time) {
        self.trim_by_count(policy);
        if P::TIMED {
            self.latest = self.latest.max(now);
            self.expire(policy);
            self.begins_run = self.runs.is_empty() || self.latest > self.last_stamp;
        }
    }

    /// Applies only the limit of count.
    pub(super) fn trim_by_count<P: Rules>(&mut self, policy: &P) {
        if P::COUNTED {
            self.retain_newest(policy.count_max());
        }
    }

    /// Returns whether a value is too old at `now`.
    pub(super) fn has_expired<P: Rules>(&self, policy: &P, now: Time) -> bool {
        let oldest = self.runs.front();
        oldest.is_some_and(|run| now.nanos_since(run.time) > policy.age_nanos_max())
    }

    /// Stops retaining all values.
    pub(super) fn clear(&mut self) {
        self.log.retain_from(self.log.end());
        self.runs = VecDeque::new();
        self.begins_run = true;
    }

    /// Frees chunks for later values. Values without a destructor are evicted only to free their chunks.
    #[cold]
    fn reuse_chunks<P: Rules>(&mut self, policy: &P) {
        self.trim_by_count(policy);
        drop(self.log.evict());
    }

    fn retain_newest(&mut self, count: usize) {
        self.log.retain_from(self.log.end().saturating_sub(count));
    }

    /// Begins a new run after the clock has advanced, and expires old values.
    #[cold]
    fn begin_run<P: Rules>(&mut self, policy: &P, now: Time) -> Evicted<T> {
        // Another thread may have read a later time. `latest` never goes back.
        self.latest = self.latest.max(now);
        self.last_stamp = self.latest;
        self.begins_run = false;
        self.trim_by_count(policy);
        self.expire(policy);
        self.runs.push_back(Run {
            time: self.last_stamp,
            from: self.log.end(),
        });
        self.log.evict()
    }

    /// Removes runs that are too old, or whose values were removed by count.
    fn expire<P: Rules>(&mut self, policy: &P) {
        let age_nanos_max = policy.age_nanos_max();
        while let Some(run) = self.runs.front() {
            let until = match self.runs.get(1) {
                Some(next) => next.from,
                None => self.log.end(),
            };
            let expired = self.latest.nanos_since(run.time) > age_nanos_max;
            if !expired && until > self.log.first() {
                break;
            }
            self.log.retain_from(until);
            self.runs.pop_front();
        }
    }
}
