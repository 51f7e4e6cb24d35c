//! Checks of a message and its headers before it is stored.

use std::collections::{HashMap, HashSet};

use super::append::{Admitted, Rollup};
use super::decimal::Decimal;
use super::headers::{HEADER_BYTES_MAX, PublishHeaders};
use super::ttl::{Ttl, parse_ttl};
use super::{Stream, counter};
use crate::headers::{Block, find};
use crate::jetstream::{ApiError, Message};
use crate::store::{NEVER, NewRecord};
use crate::subject::Filter;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// Buffers for changed parts of a message, reused for each message. [`Checked`] tells which parts are
/// changed.
#[derive(Default)]
pub(super) struct Edits {
    pub(super) subject: Vec<u8>,
    pub(super) headers: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

/// Result of the checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Checked {
    /// Sequence of the stored original, if the message is a duplicate, which is not stored.
    pub(super) duplicate_of: Option<u64>,
    pub(super) is_counter: bool,
    subject_edited: bool,
    headers_edited: bool,
    expires_at: Option<i64>,
    rollup: Option<Rollup>,
    /// If the message is a schedule: the first time at which it is due.
    due: Option<i64>,
    /// Whether the message ends a schedule.
    cancels: bool,
}

/// Effects of earlier messages of a batch on the checks of later ones.
#[derive(Default)]
pub(super) struct BatchEffects {
    pub(super) messages: u64,
    pub(super) subjects: HashSet<Vec<u8>>,
    ids: HashSet<Vec<u8>>,
    counters: HashMap<Vec<u8>, Decimal>,
}

impl Checked {
    /// Returns the message as it will be stored.
    pub(super) fn admitted<'a>(
        &self,
        message: &Message<'a>,
        asked: &PublishHeaders<'a>,
        edits: &'a Edits,
    ) -> Admitted<'a> {
        let record = NewRecord {
            subject: if self.subject_edited {
                &edits.subject
            } else {
                message.subject
            },
            headers: if self.headers_edited {
                &edits.headers
            } else {
                message.headers
            },
            payload: if self.is_counter {
                &edits.payload
            } else {
                message.payload
            },
            expires_at: self.expires_at,
            ..NewRecord::default()
        };
        Admitted {
            record,
            msg_id: asked.msg_id,
            rollup: self.rollup,
            due: self.due,
            cancels: asked.scheduler.filter(|_| self.cancels),
        }
    }
}

impl Stream {
    /// Checks a message. `so_far` is set for a message of a batch.
    pub(super) fn check(
        &mut self,
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        edits: &mut Edits,
        mut so_far: Option<&mut BatchEffects>,
    ) -> Result<Checked, ApiError> {
        let mut checked = Checked::default();
        if self.config.sealed {
            return Err(ApiError::STREAM_SEALED);
        }
        self.check_size(message)?;
        if let Some(transform) = &self.transform {
            let random = self.random();
            checked.subject_edited = transform.apply(message.subject, random, &mut edits.subject);
        }
        let edited = std::mem::take(&mut edits.subject);
        let subject = if checked.subject_edited {
            &edited
        } else {
            message.subject
        };
        // Without headers there is nothing to check, except in a stream of counters, which requires an
        // increment.
        let result = if message.headers.is_empty() && !self.config.allow_msg_counter {
            Ok(())
        } else {
            self.check_headers(
                subject,
                message,
                asked,
                edits,
                so_far.as_deref_mut(),
                &mut checked,
            )
        };
        if let Some(so_far) = so_far {
            so_far.messages += 1;
            so_far.subjects.insert(subject.to_vec());
        }
        edits.subject = edited;
        result.map(|()| checked)
    }

    pub(super) fn check_size(&self, message: &Message<'_>) -> Result<(), ApiError> {
        if message.headers.len() > HEADER_BYTES_MAX {
            return Err(ApiError::STREAM_HEADER_EXCEEDS_MAXIMUM);
        }
        match usize::try_from(self.config.max_msg_size) {
            Ok(max) if max > 0 && message.headers.len() + message.payload.len() > max => {
                Err(ApiError::STREAM_MESSAGE_EXCEEDS_MAXIMUM)
            }
            _ => Ok(()),
        }
    }

    fn check_headers(
        &mut self,
        subject: &[u8],
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        edits: &mut Edits,
        mut so_far: Option<&mut BatchEffects>,
        checked: &mut Checked,
    ) -> Result<(), ApiError> {
        checked.is_counter = self.count(subject, message, asked, edits, so_far.as_deref_mut())?;
        if asked.stream_source.is_some() {
            return Err(ApiError::MESSAGE_SOURCE_HDR_NOT_ALLOWED);
        }
        if asked
            .expected_stream
            .is_some_and(|name| name != self.config.name.as_bytes())
        {
            return Err(ApiError::STREAM_NOT_MATCH);
        }
        self.check_expected(subject, asked, so_far.as_deref())?;
        checked.due = self.check_schedule(subject, asked)?;
        checked.cancels = self.cancelled(subject, asked).is_some();
        if let Some(id) = asked.msg_id {
            let earlier = self.find_duplicate(id);
            if let Some(so_far) = &mut so_far {
                let is_new = so_far.ids.insert(id.to_vec());
                if earlier.is_some() || !is_new {
                    return Err(ApiError::ATOMIC_PUBLISH_CONTAINS_DUPLICATE_MESSAGE);
                }
            } else if earlier.is_some() {
                checked.duplicate_of = earlier;
                return Ok(());
            }
        }
        self.check_ttl(message, asked, edits, checked)?;
        checked.rollup = self.check_rollup(subject, asked, so_far.as_deref())?;
        if checked.due.is_some() && asked.rollup.is_none() {
            // A subject has at most one schedule, so a new schedule replaces the earlier one.
            checked.rollup = Some(Rollup::Subject);
            let current = match checked.headers_edited {
                true => edits.headers.clone(),
                false => message.headers.to_vec(),
            };
            Block::from(&mut edits.headers, &current)
                .add("Nats-Rollup", b"sub")
                .end();
            checked.headers_edited = true;
        }
        Ok(())
    }

    /// Adds the increment to the counter's value. Returns whether the stream has counters.
    fn count(
        &mut self,
        subject: &[u8],
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        edits: &mut Edits,
        so_far: Option<&mut BatchEffects>,
    ) -> Result<bool, ApiError> {
        if !self.config.allow_msg_counter {
            return match asked.increment {
                None => Ok(false),
                Some(text) if counter::is_number(text) => Err(ApiError::MESSAGE_INCR_DISABLED),
                Some(_) => Err(ApiError::MESSAGE_INCR_INVALID),
            };
        }
        let mut sum = counter::increment(asked, message.payload)?;
        let earlier = so_far
            .as_ref()
            .and_then(|so_far| so_far.counters.get(subject));
        if let Some(value) = earlier {
            sum += value;
        } else if let Some(known) = self.store.subject(subject) {
            let record = self
                .store
                .read(known.last)
                .map_err(ApiError::stream_store_failed)?;
            if let Some(record) = record {
                sum += &counter::value(record.payload)?;
            }
        }
        edits.payload.clear();
        edits
            .payload
            .extend_from_slice(counter::payload(&sum)?.as_bytes());
        if let Some(so_far) = so_far {
            so_far.counters.insert(subject.to_vec(), sum);
        }
        Ok(true)
    }

    fn check_expected(
        &mut self,
        subject: &[u8],
        headers: &PublishHeaders<'_>,
        so_far: Option<&BatchEffects>,
    ) -> Result<(), ApiError> {
        if let Some(expected) = headers.expected_last_subject_sequence {
            let subject = headers.expected_last_subject.unwrap_or(subject);
            if so_far.is_some_and(|so_far| so_far.subjects.contains(subject)) {
                return Err(ApiError::STREAM_WRONG_LAST_SEQUENCE_CONSTANT);
            }
            expect(expected, self.last_of(subject)?)?;
        } else if headers.expected_last_subject.is_some() {
            return Err(ApiError::STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_INVALID);
        }
        if let Some(expected) = headers.expected_last_sequence {
            // Only the first message of a batch may contain the expected last sequence.
            if so_far.is_some_and(|so_far| so_far.messages > 0) {
                return Err(ApiError::STREAM_WRONG_LAST_SEQUENCE_CONSTANT);
            }
            expect(expected, self.store.last_sequence())?;
        }
        if let Some(expected) = headers.expected_last_msg_id {
            if so_far.is_some() {
                let header = "Nats-Expected-Last-Msg-Id";
                return Err(ApiError::atomic_publish_unsupported_header_batch(header));
            }
            let last = self.store.last_sequence();
            let record = self
                .store
                .read(last)
                .map_err(ApiError::stream_store_failed)?;
            let id = record.and_then(|record| find(record.headers, b"Nats-Msg-Id"));
            let id = id.unwrap_or_default();
            if id != expected {
                return Err(ApiError::stream_wrong_last_msg_id(String::from_utf8_lossy(
                    id,
                )));
            }
        }
        Ok(())
    }

    /// Returns the last sequence of a subject, or of all subjects that a filter matches; 0 if there is none.
    fn last_of(&mut self, subject: &[u8]) -> Result<u64, ApiError> {
        if Filter::parse(subject).is_ok_and(|filter| !filter.is_literal()) {
            let last = self.store.last_matching(subject);
            return Ok(last.map_err(ApiError::stream_store_failed)?.unwrap_or(0));
        }
        Ok(self.store.subject(subject).map_or(0, |known| known.last))
    }

    fn check_ttl(
        &self,
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        edits: &mut Edits,
        checked: &mut Checked,
    ) -> Result<(), ApiError> {
        let Some(text) = asked.ttl else {
            return Ok(());
        };
        let ttl = parse_ttl(text).ok_or(ApiError::MESSAGE_TTL_INVALID)?;
        if !self.config.allow_msg_ttl {
            return Err(ApiError::MESSAGE_TTL_DISABLED);
        }
        let marker = match self.config.max_msgs_per_subject {
            // With one record per subject, any time to live is allowed, because a marker replaces the record.
            1 => 0,
            _ => self.config.subject_delete_marker_ttl.0,
        };
        checked.expires_at = Some(match ttl {
            Ttl::Never => NEVER,
            // A record must not expire before a marker of its subject would. The record's time to live is
            // raised to that of the marker.
            Ttl::After(nanos) if nanos < marker => {
                let seconds = u64::try_from(marker / NANOS_PER_SECOND).unwrap_or(0);
                Block::filtered(&mut edits.headers, message.headers, |n| n != b"Nats-TTL")
                    .add_number("Nats-TTL", seconds)
                    .end();
                checked.headers_edited = true;
                self.clock.unix_nanos.saturating_add(marker)
            }
            Ttl::After(nanos) => self.clock.unix_nanos.saturating_add(nanos),
        });
        Ok(())
    }

    fn check_rollup(
        &self,
        subject: &[u8],
        headers: &PublishHeaders<'_>,
        so_far: Option<&BatchEffects>,
    ) -> Result<Option<Rollup>, ApiError> {
        let Some(text) = headers.rollup else {
            return Ok(None);
        };
        if !self.config.allow_rollup_hdrs || self.config.deny_purge {
            return Err(ApiError::stream_rollup_failed("rollup not permitted"));
        }
        if text.eq_ignore_ascii_case(b"sub") {
            if so_far.is_some_and(|so_far| so_far.subjects.contains(subject)) {
                return Err(ApiError::stream_rollup_failed("batch rollup sub invalid"));
            }
            return Ok(Some(Rollup::Subject));
        }
        if text.eq_ignore_ascii_case(b"all") {
            if so_far.is_some_and(|so_far| so_far.messages > 0) {
                return Err(ApiError::stream_rollup_failed("batch rollup all invalid"));
            }
            return Ok(Some(Rollup::All));
        }
        let shown = String::from_utf8_lossy(text);
        Err(ApiError::stream_rollup_failed(format_args!(
            "rollup value invalid: {shown:?}"
        )))
    }
}

/// Compares an expected number in a header. A value that is not a number never matches.
fn expect(expected: &[u8], found: u64) -> Result<(), ApiError> {
    let expected = std::str::from_utf8(expected)
        .ok()
        .and_then(|text| text.parse().ok());
    if expected == Some(found) {
        Ok(())
    } else {
        Err(ApiError::stream_wrong_last_sequence(found))
    }
}
