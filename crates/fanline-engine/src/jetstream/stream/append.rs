//! Stores records, with the consequences: rollups, markers, schedules, and republished messages.

use super::Stream;
use super::source::SOURCE_HEADER;
use crate::headers::{Block, find};
use crate::jetstream::{ApiError, Message, Port, Retention};
use crate::store::{Cause, DiskError, Filters, NewRecord, StoreError};
use crate::subject::is_literal_subject;
use crate::time::{Nanos, Timestamp};

/// A message that has passed all checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admitted<'a> {
    /// The record to store; its time is set when it is stored.
    pub(super) record: NewRecord<'a>,
    pub(super) msg_id: Option<&'a [u8]>,
    pub(super) rollup: Option<Rollup>,
    /// If the message is a schedule: the next time at which it is due.
    pub(super) due: Option<i64>,
    /// Subject of the schedule that the message ends, if any.
    pub(super) cancels: Option<&'a [u8]>,
}

/// The earlier records that a record replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rollup {
    /// The records of its subject.
    Subject,
    /// All records of the stream.
    All,
}

impl Rollup {
    /// Returns the rollup of a stored record. If the stream does not allow rollups, the rollup headers of
    /// copied records are ignored, but those of the stream's own markers and schedules still apply.
    fn of(headers: &[u8], is_allowed: bool) -> Option<Self> {
        let text = find(headers, b"Nats-Rollup")?;
        if !is_allowed && find(headers, SOURCE_HEADER.as_bytes()).is_some() {
            return None;
        }
        match text.eq_ignore_ascii_case(b"all") {
            true => Some(Rollup::All),
            false => Some(Rollup::Subject),
        }
    }

    /// Returns the filter of the replaced records; empty for all records.
    fn filter(self, subject: &[u8]) -> &[u8] {
        match self {
            Rollup::Subject => subject,
            Rollup::All => b"",
        }
    }
}

impl Stream {
    /// Stores a message, and then applies rollups, schedules, and republishing. Returns its sequence, and
    /// whether a record was stored.
    pub(super) fn append(
        &mut self,
        admitted: &Admitted<'_>,
        port: &mut dyn Port,
    ) -> Result<(u64, bool), ApiError> {
        let previous = self.previous_of(admitted.record.subject);
        let Some(sequence) = self.store_record(admitted)? else {
            let sequence = self.store.last_sequence();
            self.remember_id(admitted, sequence);
            return Ok((sequence, false));
        };
        self.follow_up(admitted, sequence, previous, port);
        Ok((sequence, true))
    }

    /// Returns the sequence of the subject's last record before a publish. A republished message contains it.
    pub(super) fn previous_of(&self, subject: &[u8]) -> u64 {
        match &self.republish {
            None => 0,
            Some(_) => self.store.subject(subject).map_or(0, |known| known.last),
        }
    }

    /// Appends the record. If no consumer or copy needs it, only increments the sequence and returns `None`.
    pub(super) fn store_record(
        &mut self,
        admitted: &Admitted<'_>,
    ) -> Result<Option<u64>, ApiError> {
        if !self.is_wanted(self.store.last_sequence() + 1, admitted.record.subject) {
            self.skipped_at = Some(self.clock.unix_nanos);
            let next = self.store.last_sequence() + 2;
            self.store.skip_to(next).map_err(refused)?;
            return Ok(None);
        }
        let record = NewRecord {
            unix_nanos: self.clock.unix_nanos,
            ..admitted.record
        };
        let sequence = self.store.append(&record).map_err(refused)?;
        if self.leaves_markers() && is_marker(admitted.record.headers) {
            self.markers.insert(sequence);
        }
        self.consumers
            .handle_append(sequence, admitted.record.subject);
        Ok(Some(sequence))
    }

    /// Returns whether to store a record. A stream with interest retention stores only records that a
    /// consumer or copy needs.
    pub(super) fn is_wanted(&mut self, sequence: u64, subject: &[u8]) -> bool {
        self.config.retention != Retention::Interest
            || self.is_needed_by_copies(sequence)
            || self.consumers.wants_subject(subject)
    }

    pub(super) fn remember_id(&mut self, admitted: &Admitted<'_>, sequence: u64) {
        let unix_nanos = self.clock.unix_nanos;
        if let (Some(id), Some(dedupe)) = (admitted.msg_id, &mut self.dedupe) {
            dedupe.insert(id, sequence, unix_nanos);
        }
    }

    /// Applies rollups, schedules, and republishing after a record was stored.
    pub(super) fn follow_up(
        &mut self,
        admitted: &Admitted<'_>,
        sequence: u64,
        previous: u64,
        port: &mut dyn Port,
    ) {
        self.remember_id(admitted, sequence);
        if let Some(rollup) = admitted.rollup {
            self.remove_below(rollup.filter(admitted.record.subject), sequence, port);
        }
        if let Some(schedule) = admitted.cancels {
            self.schedules.remove(schedule);
            // If the disk cannot remove the schedule now, it stays. The publish still succeeds.
            if self
                .store
                .purge(schedule, None, 0)
                .is_ok_and(|purged| purged > 0)
            {
                self.note_purged(port);
            }
        }
        if self.config.allow_msg_schedules {
            match admitted.due {
                Some(due) => self.schedules.set(admitted.record.subject, sequence, due),
                None => self.schedules.remove(admitted.record.subject),
            }
        }
        self.settle_removed(port);
        self.republish(admitted, sequence, previous, port);
    }

    /// Removes the records of a subject below a sequence; an empty subject means all. A subject with
    /// wildcards is used as a filter, because clients purge many keys of a bucket this way. If the disk
    /// cannot remove records now, they stay, and the publish still succeeds.
    fn remove_below(&mut self, subject: &[u8], sequence: u64, port: &mut dyn Port) {
        let first_of_subject = |known: crate::store::SubjectState| known.messages <= 2;
        if is_literal_subject(subject) && self.store.subject(subject).is_some_and(first_of_subject)
        {
            // Usually there is one earlier record: the previous value.
            let filters = Filters::new([subject]);
            let before = filters.map(|mut filters| self.store.next_matching(&mut filters, 0));
            if let Ok(Ok(Some(before))) = before
                && before < sequence
            {
                let _ = self.remove_record(before, false);
            }
            return;
        }
        if self
            .store
            .purge(subject, Some(sequence), 0)
            .is_ok_and(|purged| purged > 0)
        {
            self.note_purged(port);
        }
    }

    /// Repeats the removals of all rollups from this sequence on. These records may have been unsynced, so a
    /// power cut may have lost the removals of a rollup although the record with the rollup header survived.
    pub(in crate::jetstream) fn finish_rollups(
        &mut self,
        from: u64,
        port: &mut dyn Port,
    ) -> Result<(), StoreError> {
        // A mirror stores rollup headers of its origin's records, but removes records only when the origin
        // does.
        if self.config.mirror.is_some() {
            return Ok(());
        }
        for sequence in from..=self.store.last_sequence() {
            let record = match self.store.read(sequence) {
                Ok(Some(record)) => record,
                Ok(None) | Err(StoreError::Damaged(_)) => continue,
                Err(error) => return Err(error),
            };
            if let Some(rollup) = Rollup::of(record.headers, self.config.allow_rollup_hdrs) {
                let filter = rollup.filter(record.subject).to_vec();
                self.remove_below(&filter, sequence, port);
            }
        }
        Ok(())
    }

    /// Returns whether a marker is stored when the last record of a subject expires.
    pub(super) fn leaves_markers(&self) -> bool {
        !self.config.subject_delete_marker_ttl.is_zero()
    }

    /// Handles records that limits and age have removed: notifies consumers and stores markers.
    pub(in crate::jetstream) fn settle_removed(&mut self, port: &mut dyn Port) {
        let leaves_markers = self.leaves_markers();
        let mut marked: Vec<Vec<u8>> = Vec::new();
        let (consumers, markers) = (&mut self.consumers, &mut self.markers);
        let mut has_removed = false;
        self.store.removed(&mut |removed| {
            has_removed = true;
            consumers.handle_removed(removed.sequence, removed.subject);
            let was_marker = leaves_markers && markers.remove(&removed.sequence);
            let has_aged = matches!(removed.cause, Cause::Age | Cause::TimeToLive);
            if leaves_markers && has_aged && removed.was_last_of_subject && !was_marker {
                marked.push(removed.subject.to_vec());
            }
        });
        self.has_removed |= has_removed;
        for subject in marked {
            self.leave_marker(&subject, port);
        }
    }

    /// Stores a marker for a subject whose last record has expired.
    fn leave_marker(&mut self, subject: &[u8], port: &mut dyn Port) {
        let ttl = self.config.subject_delete_marker_ttl.0;
        let whole_seconds = ttl - ttl % Nanos::from_secs(1).0;
        let shown = Nanos(whole_seconds).to_string();
        let mut headers = Vec::new();
        Block::new(&mut headers)
            .add("Nats-Marker-Reason", b"MaxAge")
            .add("Nats-TTL", shown.as_bytes())
            .add("Nats-Rollup", b"sub")
            .end();
        let marker = Admitted {
            record: NewRecord {
                subject,
                headers: &headers,
                expires_at: Some(self.clock.unix_nanos.saturating_add(ttl)),
                ..NewRecord::default()
            },
            ..Admitted::default()
        };
        // If the marker cannot be stored, readers see that the subject has no record, but not why.
        let _ = self.append(&marker, port);
    }

    fn republish(
        &mut self,
        admitted: &Admitted<'_>,
        sequence: u64,
        previous: u64,
        port: &mut dyn Port,
    ) {
        if self.republish.is_none() {
            return;
        }
        let random = self.random();
        let Some(republish) = &mut self.republish else {
            return;
        };
        if !republish
            .transform
            .apply(admitted.record.subject, random, &mut republish.subject)
        {
            return;
        }
        let time = Timestamp::from_unix_nanos(self.clock.unix_nanos).to_string();
        let mut block = Block::from(&mut republish.headers, admitted.record.headers)
            .add("Nats-Stream", self.config.name.as_bytes())
            .add("Nats-Subject", admitted.record.subject)
            .add_number("Nats-Sequence", sequence)
            .add("Nats-Time-Stamp", time.as_bytes())
            .add_number("Nats-Last-Sequence", previous);
        if republish.headers_only {
            block = block.add_number("Nats-Msg-Size", admitted.record.payload.len() as u64);
        }
        port.publish(&Message {
            subject: &republish.subject,
            reply: b"",
            headers: block.end(),
            payload: if republish.headers_only {
                b""
            } else {
                admitted.record.payload
            },
            ..Message::default()
        });
    }
}

/// Returns whether a record marks its subject as removed: a marker, or the purge of a key. When such a record
/// expires, no marker is stored.
pub(super) fn is_marker(headers: &[u8]) -> bool {
    let reason = find(headers, b"Nats-Marker-Reason");
    reason.is_some_and(|reason| !reason.is_empty())
        || find(headers, b"KV-Operation") == Some(b"PURGE")
}

/// Returns the error with which a publish is answered if the log refuses the record.
pub(in crate::jetstream) fn refused(error: StoreError) -> ApiError {
    match error {
        StoreError::TooLarge => ApiError::STREAM_MESSAGE_EXCEEDS_MAXIMUM,
        StoreError::Disk(DiskError::Full) => ApiError::INSUFFICIENT_RESOURCES,
        error => ApiError::stream_store_failed(error),
    }
}
