//! Retained values: their log, the rules that remove values from it, and the timestamps that time windows need.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem::needs_drop;
use core::ptr::NonNull;

use super::log::{Evicted, Log};
use super::policy::Rules;
use crate::clock::Time;

pub(super) struct Store<T, W> {
    pub(super) log: Log<T>,
    /// [`Runs`] for a time window, [`Untimed`] for other flavors.
    times: W,
}

/// The timestamps of values, if a flavor needs them.
pub trait Times: Default + Send {
    /// Returns the timestamps.
    fn runs(&mut self) -> Option<&mut Runs>;

    /// Returns the timestamps, to read them.
    fn as_runs(&self) -> Option<&Runs>;
}

/// No timestamps.
#[derive(Debug, Default)]
pub struct Untimed;

impl Times for Untimed {
    #[inline(always)]
    fn runs(&mut self) -> Option<&mut Runs> {
        None
    }

    fn as_runs(&self) -> Option<&Runs> {
        None
    }
}

/// The timestamps of values: one entry per timestamp, not per value.
#[derive(Debug)]
pub struct Runs {
    /// The positions at which the timestamp changes, oldest first.
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

impl Default for Runs {
    fn default() -> Self {
        Self {
            runs: VecDeque::new(),
            last_stamp: Time::ZERO,
            begins_run: true,
            latest: Time::ZERO,
        }
    }
}

impl Times for Runs {
    #[inline(always)]
    fn runs(&mut self) -> Option<&mut Runs> {
        Some(self)
    }

    fn as_runs(&self) -> Option<&Runs> {
        Some(self)
    }
}

#[derive(Debug)]
struct Run {
    time: Time,
    from: usize,
}

impl<T, W: Times> Store<T, W> {
    pub(super) fn new<P: Rules>(policy: &P) -> Self {
        Self {
            log: Log::new(P::COUNTED.then(|| policy.count_max())),
            times: W::default(),
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
        if self.begins_run(now) {
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
        if self.begins_run(now) {
            evicted = self.begin_run(policy, now);
        }
        if !P::COUNTED {
            self.log.append_last(values, values.len());
            return evicted;
        }
        // Values that would not be retained are not appended, unless a reader that pins the log needs them.
        let count_max = policy.count_max();
        let count = if self.log.is_pinned() {
            values.len()
        } else {
            values.len().min(count_max)
        };
        // First, because a ring has no room for the displaced values and the new ones.
        self.retain_newest(count_max.saturating_sub(count));
        evicted = evicted.and(self.log.evict());
        self.log.append_last(values, count);
        self.retain_newest(count_max);
        evicted
    }

    /// Ends the retention of values that the policy does not retain at the time `now`. [`Log::evict`] removes
    /// them from memory.
    pub(super) fn trim<P: Rules>(&mut self, policy: &P, now: Time) {
        self.trim_by_count(policy);
        if let Some(times) = self.times.runs() {
            times.latest = times.latest.max(now);
            times.expire(policy, &mut self.log);
            times.begins_run = times.runs.is_empty() || times.latest > times.last_stamp;
        }
    }

    /// Applies only the limit of count.
    pub(super) fn trim_by_count<P: Rules>(&mut self, policy: &P) {
        if P::COUNTED {
            self.retain_newest(policy.count_max());
        }
    }

    /// Returns the position of the oldest value that the policy retains at the time `now`. Changes nothing, so
    /// it can be called while values are borrowed.
    pub(super) fn first_at<P: Rules>(&self, policy: &P, now: Time) -> usize {
        let mut first = self.log.first();
        if P::COUNTED {
            first = first.max(self.log.end().saturating_sub(policy.count_max()));
        }
        match self.times.as_runs() {
            Some(times) => first.max(times.first_at(policy, now, self.log.end())),
            None => first,
        }
    }

    /// Returns whether a value is too old at `now`.
    pub(super) fn has_expired<P: Rules>(&mut self, policy: &P, now: Time) -> bool {
        let oldest = self.times.runs().and_then(|times| times.runs.front());
        oldest.is_some_and(|run| now.nanos_since(run.time) > policy.age_nanos_max())
    }

    /// Stops retaining all values.
    pub(super) fn clear(&mut self) {
        self.log.retain_from(self.log.end());
        if let Some(times) = self.times.runs() {
            times.runs = VecDeque::new();
            times.begins_run = true;
        }
    }

    /// Frees chunks for later values. Values without a destructor are evicted only to free their chunks.
    #[cold]
    fn reuse_chunks<P: Rules>(&mut self, policy: &P) {
        self.trim_by_count(policy);
        drop(self.log.evict());
    }

    #[inline]
    fn retain_newest(&mut self, count: usize) {
        self.log.retain_from(self.log.end().saturating_sub(count));
    }

    /// Returns whether a value with the timestamp `now` begins a run.
    #[inline(always)]
    fn begins_run(&mut self, now: Time) -> bool {
        self.times
            .runs()
            .is_some_and(|times| now > times.last_stamp || times.begins_run)
    }

    /// Begins a new run after the clock has advanced, and expires old values.
    #[cold]
    fn begin_run<P: Rules>(&mut self, policy: &P, now: Time) -> Evicted<T> {
        self.trim_by_count(policy);
        if let Some(times) = self.times.runs() {
            // Another thread may have read a later time. `latest` never goes back.
            times.latest = times.latest.max(now);
            times.last_stamp = times.latest;
            times.begins_run = false;
            times.expire(policy, &mut self.log);
            times.runs.push_back(Run {
                time: times.last_stamp,
                from: self.log.end(),
            });
        }
        self.log.evict()
    }
}

impl Runs {
    /// Returns the position of the oldest value that is not too old at `now`. `end` is the end of the log.
    fn first_at<P: Rules>(&self, policy: &P, now: Time, end: usize) -> usize {
        let latest = self.latest.max(now);
        let age_nanos_max = policy.age_nanos_max();
        let young = |run: &&Run| latest.nanos_since(run.time) <= age_nanos_max;
        self.runs.iter().find(young).map_or(end, |run| run.from)
    }

    /// Removes runs that are too old, or whose values were removed by count.
    fn expire<T, P: Rules>(&mut self, policy: &P, log: &mut Log<T>) {
        let age_nanos_max = policy.age_nanos_max();
        while let Some(run) = self.runs.front() {
            let until = match self.runs.get(1) {
                Some(next) => next.from,
                None => log.end(),
            };
            let expired = self.latest.nanos_since(run.time) > age_nanos_max;
            if !expired && until > log.first() {
                break;
            }
            log.retain_from(until);
            self.runs.pop_front();
        }
    }
}
