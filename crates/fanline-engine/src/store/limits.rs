//! Removal of records by limits, age, and time to live.

use super::record::Kind;
use super::types::{Cause, Discard, NEVER, NewRecord, StoreError, StoreLimits};
use super::{Filters, Store};

impl Store {
    /// Returns the current limits.
    pub fn limits(&self) -> &StoreLimits {
        &self.limits
    }

    /// Sets new limits, and removes records that exceed them.
    ///
    /// # Errors
    /// The disk cannot be read; the new limits apply nevertheless.
    pub fn set_limits(&mut self, limits: &StoreLimits) -> Result<(), StoreError> {
        let before = std::mem::replace(&mut self.limits, *limits);
        self.expiry_checked_below = 0;
        if let Some(max) = limits.messages_per_subject_max
            && before.messages_per_subject_max.is_none_or(|was| max < was)
        {
            self.trim_subjects(max)?;
        }
        self.enforce(Cause::LimitChange)
    }

    /// Checks whether limits allow a new record. Returns the sequence of the record that it replaces because
    /// of the limit per subject.
    pub(super) fn make_room(&mut self, record: &NewRecord<'_>) -> Result<Option<u64>, StoreError> {
        self.recount()?;
        let replaced = match self.limits.messages_per_subject_max {
            None => None,
            Some(max) => self.replaced_by(record, max)?,
        };
        if self.limits.discard == Discard::Old {
            return Ok(replaced);
        }
        if replaced.is_some() && self.limits.discard == Discard::NewPerSubject {
            return Err(StoreError::MessagesPerSubjectMax);
        }
        let (messages, bytes) = match replaced {
            None => (self.messages, self.bytes),
            Some(sequence) => (
                self.messages.saturating_sub(1),
                self.bytes.saturating_sub(self.bytes_of(sequence)?),
            ),
        };
        if self.limits.messages_max.is_some_and(|max| messages >= max) {
            return Err(StoreError::MessagesMax);
        }
        let bytes = bytes + self.record_bytes(record);
        if self.limits.bytes_max.is_some_and(|max| bytes > max) {
            return Err(StoreError::BytesMax);
        }
        Ok(replaced)
    }

    fn replaced_by(&mut self, record: &NewRecord<'_>, max: u64) -> Result<Option<u64>, StoreError> {
        let Some(id) = self.subjects.find(record.subject) else {
            return Ok(None);
        };
        let is_full = self.subjects.get(id).is_some_and(|s| s.messages >= max);
        match is_full {
            true => self.first_of(id),
            false => Ok(None),
        }
    }

    fn bytes_of(&mut self, sequence: u64) -> Result<u64, StoreError> {
        let Some(location) = self.find(sequence)? else {
            return Ok(0);
        };
        let (content_bytes, has_headers) =
            (location.entry.content_bytes(), location.entry.has_headers());
        Ok(self.counted_bytes(content_bytes, has_headers))
    }

    /// Removes the oldest records until the number of records and their bytes are within the limits.
    pub(super) fn enforce(&mut self, cause: Cause) -> Result<(), StoreError> {
        while self.messages > 0
            && (self
                .limits
                .messages_max
                .is_some_and(|max| self.messages > max)
                || self.limits.bytes_max.is_some_and(|max| self.bytes > max))
            && self.drop_first(Some(cause))?
        {}
        Ok(())
    }

    fn trim_subjects(&mut self, max: u64) -> Result<(), StoreError> {
        self.recount()?;
        let excess = |(id, subject): (u32, &super::subjects::Subject)| {
            (subject.messages > max).then(|| (id, subject.messages - max))
        };
        let over: Vec<_> = self.subjects.iter().filter_map(excess).collect();
        for (id, excess) in over {
            for _ in 0..excess {
                // The index of a damaged segment may be wrong, so there may be no such record.
                let Some(first) = self.first_of(id)? else {
                    break;
                };
                self.log_control(Kind::Remove, first, b"");
                if !self.drop_sequence(first, Some(Cause::LimitChange))? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Removes records that exceed the age limit or whose own time to live has ended.
    ///
    /// # Errors
    /// The disk cannot be read; the next call removes the remaining records.
    pub fn expire(&mut self, now_unix_nanos: i64) -> Result<(), StoreError> {
        while let Some((sequence, at)) = self.next_to_age()? {
            if at > now_unix_nanos {
                break;
            }
            if sequence != self.first {
                self.log_control(Kind::Remove, sequence, b"");
            }
            if !self.drop_sequence(sequence, Some(Cause::Age))? {
                // The index is wrong: there is no such record. The next call continues after it.
                self.skip_age_check(sequence);
                break;
            }
        }
        while let Some((at, sequence)) = self.expiry.pop_until(now_unix_nanos) {
            let gone = self.expire_record(sequence);
            if gone.is_err() {
                self.expiry.insert(at, sequence);
            }
            gone?;
        }
        Ok(())
    }

    fn expire_record(&mut self, sequence: u64) -> Result<(), StoreError> {
        if let Some(location) = self.find(sequence)? {
            self.log_control(Kind::Remove, sequence, b"");
            self.drop_at(&location, Some(Cause::TimeToLive))?;
        }
        Ok(())
    }

    /// Returns the time at which [`expire`](Store::expire) must be called next, in nanoseconds since 1970
    /// UTC.
    ///
    /// # Errors
    /// The disk cannot be read.
    pub fn next_expiry(&mut self) -> Result<Option<i64>, StoreError> {
        let aged = self.next_to_age()?.map(|(_, at)| at);
        let expired = self.expiry.peek().map(|(at, _)| at);
        Ok(match (aged, expired) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        })
    }

    /// Returns the oldest record that can exceed the age limit, and the time at which it does.
    fn next_to_age(&mut self) -> Result<Option<(u64, i64)>, StoreError> {
        let Some(age_max) = self.limits.age_nanos_max else {
            return Ok(None);
        };
        loop {
            let from = self.expiry_checked_below.max(self.first);
            let Some(sequence) = self.next_matching(&mut Filters::default(), from)? else {
                return Ok(None);
            };
            if let Some((known, at)) = self.oldest_expiring
                && known == sequence
            {
                return Ok(Some((sequence, at.saturating_add(age_max))));
            }
            let record = match self.read(sequence) {
                Ok(Some(record)) => record,
                // The index of a damaged segment may be wrong, so there may be no such record.
                Ok(None) | Err(StoreError::Damaged(_)) => {
                    self.skip_age_check(sequence);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (at, is_exempt) = (record.unix_nanos, record.expires_at == Some(NEVER));
            if is_exempt {
                self.skip_age_check(sequence);
                continue;
            }
            self.expiry_checked_below = self.expiry_checked_below.max(sequence);
            self.oldest_expiring = Some((sequence, at));
            return Ok(Some((sequence, at.saturating_add(age_max))));
        }
    }

    /// Excludes the records up to this sequence from further checks of the age limit.
    fn skip_age_check(&mut self, sequence: u64) {
        self.expiry_checked_below = self.expiry_checked_below.max(sequence) + 1;
    }

    /// Removes the timers of records that no longer exist.
    pub(super) fn prune_expiry(&mut self) {
        let mut expiry = std::mem::take(&mut self.expiry);
        // The timers of records that cannot be read now stay, and are checked again when they are due.
        expiry.retain(|sequence| !matches!(self.find(sequence), Ok(None)));
        self.expiry = expiry;
    }
}
