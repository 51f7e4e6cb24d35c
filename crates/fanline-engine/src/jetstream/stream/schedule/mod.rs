//! Scheduled messages: records that are published again later, once or repeatedly.
//!
//! A schedule is the last record of its subject. The messages that a schedule publishes are records, too.
//! Schedules need no other storage: after a restart, the last record of each subject determines what is due.

mod cron;
mod fire;
mod pattern;

use std::collections::{BTreeMap, HashMap};

pub(super) use pattern::{Pattern, PatternError};

use super::Stream;
use super::headers::PublishHeaders;
use super::ttl::parse_ttl;
use crate::jetstream::ApiError;
use crate::subject::is_literal_subject;

/// Due times of schedules. A subject has at most one schedule.
#[derive(Default)]
pub(super) struct Schedules {
    /// Subjects by due time and sequence of the schedule's record.
    due: BTreeMap<(i64, u64), Box<[u8]>>,
    by_subject: HashMap<Box<[u8]>, (i64, u64)>,
}

impl Schedules {
    pub(super) fn set(&mut self, subject: &[u8], sequence: u64, due: i64) {
        self.remove(subject);
        self.due.insert((due, sequence), subject.into());
        self.by_subject.insert(subject.into(), (due, sequence));
    }

    pub(super) fn remove(&mut self, subject: &[u8]) {
        if let Some(entry) = self.by_subject.remove(subject) {
            self.due.remove(&entry);
        }
    }

    /// Returns the time at which the next schedule is due, in nanoseconds since 1970 UTC.
    pub(super) fn next(&self) -> Option<i64> {
        self.due.keys().next().map(|(due, _)| *due)
    }

    /// Removes and returns the next due schedule: its due time, and its record's sequence.
    fn take_due(&mut self, unix_nanos: i64) -> Option<(i64, u64)> {
        let first = self
            .due
            .first_entry()
            .filter(|first| first.key().0 <= unix_nanos)?;
        let (entry, subject) = first.remove_entry();
        self.by_subject.remove(&subject);
        Some(entry)
    }
}

impl Stream {
    /// Returns the subject of the schedule that a message ends; `None` if it is not the last message of a
    /// schedule.
    pub(super) fn cancelled<'a>(
        &self,
        subject: &[u8],
        headers: &PublishHeaders<'a>,
    ) -> Option<&'a [u8]> {
        let scheduler = headers
            .scheduler
            .filter(|_| self.config.allow_msg_schedules)?;
        let ends = headers.schedule_next == Some(b"purge");
        (ends && scheduler != subject && is_literal_subject(scheduler)).then_some(scheduler)
    }

    /// Checks the schedule headers of a publish. Returns the first due time if the message is a schedule.
    pub(super) fn check_schedule(
        &self,
        subject: &[u8],
        headers: &PublishHeaders<'_>,
    ) -> Result<Option<i64>, ApiError> {
        if headers.scheduler.is_some() || headers.schedule_next.is_some() {
            let cancels = self.cancelled(subject, headers).is_some();
            return cancels
                .then_some(None)
                .ok_or(ApiError::MESSAGE_SCHEDULES_SCHEDULER_INVALID);
        }
        let Some(text) = headers.schedule else {
            return Ok(None);
        };
        if !self.config.allow_msg_schedules {
            return Err(ApiError::MESSAGE_SCHEDULES_DISABLED);
        }
        let now = self.clock.unix_nanos;
        let pattern =
            Pattern::parse(text, headers.schedule_time_zone, now).map_err(|e| match e {
                PatternError::Pattern => ApiError::MESSAGE_SCHEDULES_PATTERN_INVALID,
                PatternError::TimeZone => ApiError::MESSAGE_SCHEDULES_TIME_ZONE_INVALID,
            })?;
        let ttl = headers.schedule_ttl;
        if ttl.is_some() && !self.config.allow_msg_ttl {
            return Err(ApiError::MESSAGE_TTL_DISABLED);
        }
        if ttl.is_some_and(|text| parse_ttl(text).is_none()) {
            return Err(ApiError::MESSAGE_SCHEDULES_TTL_INVALID);
        }
        let is_sub = |text: &[u8]| text.eq_ignore_ascii_case(b"sub");
        let rollups = [headers.schedule_rollup, headers.rollup];
        if rollups.into_iter().flatten().any(|text| !is_sub(text)) {
            return Err(ApiError::MESSAGE_SCHEDULES_ROLLUP_INVALID);
        }
        let is_own = |other: &[u8]| {
            is_literal_subject(other) && self.stores_subject(other) && other != subject
        };
        let target = headers.schedule_target.filter(|target| is_own(target));
        let target = target.ok_or(ApiError::MESSAGE_SCHEDULES_TARGET_INVALID)?;
        let source = headers.schedule_source;
        if source.is_some_and(|source| !is_own(source) || source == target) {
            return Err(ApiError::MESSAGE_SCHEDULES_SOURCE_INVALID);
        }
        Ok(pattern.next(now))
    }
}
