//! Storing a record, and all that follows from it.

use super::Stream;
use super::source::SOURCE_HEADER;
use crate::headers::{Block, find};
use crate::jetstream::{ApiError, Message, Port, Retention};
use crate::store::{Cause, DiskError, Filters, NewRecord, StoreError};
use crate::subject::is_literal_topic;
use crate::time::{Nanos, Timestamp};

/// A message that has passed every check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Admitted<'a> {
    /// What is to be stored; its time is set when it is.
    pub(super) record: NewRecord<'a>,
    pub(super) msg_id: Option<&'a [u8]>,
    pub(super) rollup: Option<Rollup>,
    /// When it is to be published again, if it is a schedule.
    pub(super) due: Option<i64>,
    /// The subject of the schedule that it puts an end to.
    pub(super) cancels: Option<&'a [u8]>,
}

/// What a record takes the place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rollup {
    /// All earlier ones of its subject.
    Subject,
    /// All earlier ones.
    All,
}

impl Rollup {
    /// What a stored record took the place of. A stream that does not allow rollups has those of its own markers and
    /// schedules, and none of the records that it copied.
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

    /// Returns the subject filter of the records that a record with this subject takes the place of; empty for all.
    fn filter(self, subject: &[u8]) -> &[u8] {
        match self {
            Rollup::Subject => subject,
            Rollup::All => b"",
        }
    }
}

impl Stream {
    /// Stores a message and does all that follows; says its sequence, and whether there is a record.
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

    /// What a republished message tells of its subject's last record.
    pub(super) fn previous_of(&self, subject: &[u8]) -> u64 {
        match &self.republish {
            None => 0,
            Some(_) => self.store.subject(subject).map_or(0, |known| known.last),
        }
    }

    /// Adds the record; `None` when nobody is interested, so that there is a sequence but no record.
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

    /// Whether a record is stored at all: an interest stream stores only what some consumer or copy needs.
    pub(super) fn is_wanted(&mut self, sequence: u64, subject: &[u8]) -> bool {
        self.config.retention != Retention::Interest
            || self.is_to_be_copied(sequence)
            || self.consumers.wants_subject(subject)
    }

    pub(super) fn remember_id(&mut self, admitted: &Admitted<'_>, sequence: u64) {
        let unix_nanos = self.clock.unix_nanos;
        if let (Some(id), Some(dedupe)) = (admitted.msg_id, &mut self.dedupe) {
            dedupe.insert(id, sequence, unix_nanos);
        }
    }

    /// All that a stored record brings about.
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
            // What the disk cannot remove now is one too many, as in `remove_below`.
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

    /// Removes the records of a subject, or of all, below a sequence. A subject with wildcards removes what it
    /// matches as a filter: this is how clients purge many keys of a bucket at once. One that the disk cannot
    /// remove now is one too many, and no reason to refuse the new one.
    fn remove_below(&mut self, subject: &[u8], sequence: u64, port: &mut dyn Port) {
        let first_of_subject = |known: crate::store::SubjectState| known.messages <= 2;
        if is_literal_topic(subject) && self.store.subject(subject).is_some_and(first_of_subject) {
            // Nearly always there is one, the value before.
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

    /// Applies the rollups of records that were not synced, from this sequence on. After a power cut the record may be
    /// there and the removal behind it missing.
    pub(in crate::jetstream) fn finish_rollups(
        &mut self,
        from: u64,
        port: &mut dyn Port,
    ) -> Result<(), StoreError> {
        // A mirror stores the rollups of its origin, and removes nothing itself.
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

    /// Whether the expiry of a subject's last record leaves a marker.
    pub(super) fn leaves_markers(&self) -> bool {
        !self.config.subject_delete_marker_ttl.is_zero()
    }

    /// Looks at what limits and age have removed: consumers are told, and markers are left.
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

    /// Stores a record that says that a subject's last record has expired.
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
        // A stream that is full has no room for it; readers then see that the subject is gone, not why.
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
            .apply(admitted.record.subject, random, &mut republish.topic)
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
            topic: &republish.topic,
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

/// Whether a record says itself that its subject is gone, so that its expiry leaves no marker: a marker, or the
/// purge of a key.
pub(super) fn is_marker(headers: &[u8]) -> bool {
    let reason = find(headers, b"Nats-Marker-Reason");
    reason.is_some_and(|reason| !reason.is_empty())
        || find(headers, b"KV-Operation") == Some(b"PURGE")
}

/// The answer to a publish that the log does not take.
pub(in crate::jetstream) fn refused(error: StoreError) -> ApiError {
    match error {
        StoreError::TooLarge => ApiError::STREAM_MESSAGE_EXCEEDS_MAXIMUM,
        StoreError::Disk(DiskError::Full) => ApiError::INSUFFICIENT_RESOURCES,
        error => ApiError::stream_store_failed(error),
    }
}
