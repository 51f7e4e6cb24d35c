//! Atomic batches: the messages of a batch are collected, then checked and stored together.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::{ID_BYTES_MAX, batch_members};
use crate::headers::{Block, find};
use crate::jetstream::api::requires_newer_level;
use crate::jetstream::stream::Stream;
use crate::jetstream::stream::acks::{Ack, AckContent};
use crate::jetstream::stream::append::{Admitted, Rollup};
use crate::jetstream::stream::check::BatchEffects;
use crate::jetstream::stream::headers::PublishHeaders;
use crate::jetstream::{ApiError, Discard, Message, Port, Timestamp};
use crate::store::{NewRecord, StoreError};

/// Default maximum number of messages in a batch.
const MESSAGES_MAX: usize = 1_000;
/// Default maximum number of open batches of a stream.
const OPEN_MAX: usize = 50;
/// Maximum size of all open batches of a stream together in bytes.
const BYTES_MAX: usize = 128 * 1024 * 1024;

/// The open batches of a stream.
#[derive(Default)]
pub(in crate::jetstream::stream) struct AtomicBatches {
    open: HashMap<Vec<u8>, OpenBatch>,
    bytes: usize,
}

#[derive(Default)]
struct OpenBatch {
    messages: Vec<BatchMessage>,
    bytes: usize,
    abandoned_at: Duration,
}

/// Error for a message that was not added to its batch.
struct Refused {
    error: ApiError,
    /// Reason for which the batch was abandoned, if there was a batch.
    abandoned: Option<&'static str>,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Refused {
            error,
            abandoned: None,
        }
    }
}

/// Event of an abandoned batch.
#[derive(Serialize)]
struct AbandonedAdvisory<'a> {
    r#type: &'static str,
    id: String,
    timestamp: Timestamp,
    stream: &'a str,
    batch: &'a str,
    reason: &'static str,
}

/// A message of a batch.
struct BatchMessage {
    subject: Vec<u8>,
    headers: Vec<u8>,
    payload: Vec<u8>,
}

/// A checked message.
struct CheckedMessage {
    message: BatchMessage,
    msg_id: Option<Vec<u8>>,
    expires_at: Option<i64>,
    rollup: Option<Rollup>,
    due: Option<i64>,
    cancels: Option<Vec<u8>>,
}

/// Whether a message completes its batch, according to its headers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Commit {
    No,
    /// The message is the last of the batch.
    WithIt,
    /// The previous message was the last of the batch, and this one is not stored.
    WithoutIt,
}

impl AtomicBatches {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the time at which the next batch is abandoned if it gets no message.
    pub(in crate::jetstream::stream) fn next_timeout(&self) -> Option<Duration> {
        self.open.values().map(|batch| batch.abandoned_at).min()
    }

    fn take(&mut self, id: &[u8]) -> Option<OpenBatch> {
        let batch = self.open.remove(id)?;
        self.bytes -= batch.bytes;
        Some(batch)
    }

    fn put(&mut self, id: &[u8], batch: OpenBatch) {
        self.bytes += batch.bytes;
        self.open.insert(id.to_vec(), batch);
    }
}

impl Stream {
    /// Abandons the batches that have received no message for too long.
    pub(in crate::jetstream::stream) fn expire_batches(&mut self, port: &mut dyn Port) {
        let now = self.clock.since_start;
        let silent = self
            .atomic
            .open
            .iter()
            .filter(|(_, batch)| batch.abandoned_at <= now);
        let silent: Vec<_> = silent.map(|(id, _)| id.clone()).collect();
        for id in silent {
            self.atomic.take(&id);
            self.publish_abandoned(&id, "timeout", port);
        }
    }

    fn publish_abandoned(&self, id: &[u8], reason: &'static str, port: &mut dyn Port) {
        let subject = format!(
            "$JS.EVENT.ADVISORY.STREAM.BATCH_ABANDONED.{}",
            self.config.name
        );
        if !port.has_interest(subject.as_bytes()) {
            return;
        }
        let advisory = AbandonedAdvisory {
            r#type: "io.nats.jetstream.advisory.v1.stream_batch_abandoned",
            // The time alone is not unique, because two batches may be abandoned at the same time.
            id: format!("{:016X}{:06X}", self.clock.unix_nanos, self.random() >> 8),
            timestamp: Timestamp::from_unix_nanos(self.clock.unix_nanos),
            stream: &self.config.name,
            batch: &String::from_utf8_lossy(id),
            reason,
        };
        if let Ok(payload) = serde_json::to_vec(&advisory) {
            let subject = subject.as_bytes();
            port.publish(&Message {
                subject,
                payload: &payload,
                ..Message::default()
            });
        }
    }

    pub(in crate::jetstream::stream) fn publish_atomic(
        &mut self,
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
        port: &mut dyn Port,
    ) {
        let id = asked.batch_id.unwrap_or_default();
        match self.add_message(id, message, asked) {
            Err(Refused { error, abandoned }) => {
                if let Some(why) = abandoned {
                    self.publish_abandoned(id, why, port);
                }
                self.refuse(message, &error, port);
            }
            Ok(None) => {
                let reply = self.reply_of(message);
                if !reply.is_empty() {
                    port.publish(&Message {
                        subject: reply,
                        ..Message::default()
                    });
                }
            }
            Ok(Some(batch)) => {
                let count = batch.messages.len() as u64;
                match self.commit(batch, port) {
                    Err(error) => self.refuse(message, &error, port),
                    Ok(sequence) => {
                        let ack = Ack {
                            reply: self.reply_of(message),
                            until: sequence,
                            content: AckContent::Stored {
                                sequence,
                                extra: &batch_members(id, count),
                            },
                        };
                        self.send_ack(ack, port);
                    }
                }
            }
        }
    }

    /// Adds a message to its batch, and returns the batch if it is complete. If the message is refused, the
    /// batch is removed.
    fn add_message(
        &mut self,
        id: &[u8],
        message: &Message<'_>,
        asked: &PublishHeaders<'_>,
    ) -> Result<Option<OpenBatch>, Refused> {
        if !self.config.allow_atomic {
            return Err(ApiError::ATOMIC_PUBLISH_DISABLED.into());
        }
        if id.len() > ID_BYTES_MAX {
            return Err(ApiError::ATOMIC_PUBLISH_INVALID_BATCH_ID.into());
        }
        let sequence = asked.batch_sequence.and_then(number);
        let sequence = sequence.ok_or(ApiError::ATOMIC_PUBLISH_MISSING_SEQ)?;
        let earlier = self.atomic.take(id);
        if requires_newer_level(message.headers) {
            return Err(ApiError::REQUIRED_API_LEVEL.into());
        }
        // An empty header is an error, although other headers without a value are ignored.
        let commit = match find(message.headers, b"Nats-Batch-Commit") {
            None => Commit::No,
            Some(b"1") => Commit::WithIt,
            Some(b"eob") => Commit::WithoutIt,
            Some(_) => return Err(ApiError::ATOMIC_PUBLISH_INVALID_BATCH_COMMIT.into()),
        };
        let messages_max = self.batch_limits.messages_max.unwrap_or(MESSAGES_MAX);
        let room = messages_max.saturating_add(usize::from(commit == Commit::WithoutIt));
        if sequence > room {
            return Err(Refused {
                error: ApiError::atomic_publish_too_large_batch(messages_max),
                abandoned: earlier.map(|_| "large"),
            });
        }
        self.check_size(message)?;
        let mut batch = match earlier {
            Some(batch) if sequence == batch.messages.len() + 1 => batch,
            None if sequence == 1 => self.begin()?,
            earlier => {
                return Err(Refused {
                    error: ApiError::ATOMIC_PUBLISH_INCOMPLETE_BATCH,
                    abandoned: earlier.map(|_| "incomplete"),
                });
            }
        };
        if commit == Commit::WithoutIt {
            let last = batch.messages.last_mut();
            let last = last.ok_or(ApiError::ATOMIC_PUBLISH_INCOMPLETE_BATCH)?;
            let before = std::mem::take(&mut last.headers);
            Block::from(&mut last.headers, &before)
                .add("Nats-Batch-Commit", b"1")
                .end();
            return Ok(Some(batch));
        }
        let message = BatchMessage {
            subject: message.subject.to_vec(),
            headers: message.headers.to_vec(),
            payload: message.payload.to_vec(),
        };
        batch.bytes += message.subject.len() + message.headers.len() + message.payload.len();
        batch.messages.push(message);
        if commit == Commit::WithIt {
            return Ok(Some(batch));
        }
        if self.atomic.bytes + batch.bytes > BYTES_MAX {
            return Err(Refused {
                error: ApiError::ATOMIC_PUBLISH_TOO_MANY_INFLIGHT,
                abandoned: Some("large"),
            });
        }
        batch.abandoned_at = self.batch_abandoned_at();
        self.atomic.put(id, batch);
        Ok(None)
    }

    fn begin(&self) -> Result<OpenBatch, ApiError> {
        let open_max = self.batch_limits.open_per_stream_max.unwrap_or(OPEN_MAX);
        if self.atomic.len() >= open_max || !self.has_room_for_atomic() {
            return Err(ApiError::ATOMIC_PUBLISH_TOO_MANY_INFLIGHT);
        }
        Ok(OpenBatch::default())
    }

    /// Checks and stores all messages of a batch, and returns the last sequence.
    fn commit(&mut self, batch: OpenBatch, port: &mut dyn Port) -> Result<u64, ApiError> {
        let ready = self.check_batch(batch)?;
        self.check_room(&ready)?;
        let mut stored = Vec::with_capacity(ready.len());
        let first = self.store.last_sequence() + 1;
        // The record that completes the batch must be marked in the log, so that recovery detects incomplete
        // batches.
        let completing = ready.iter().enumerate().rposition(|(number, ready)| {
            self.is_wanted(first + number as u64, &ready.message.subject)
        });
        for (number, ready) in ready.iter().enumerate() {
            let previous = self.previous_of(&ready.message.subject);
            let mut admitted = ready.admitted();
            admitted.record.more_in_batch =
                completing.is_some_and(|completing| number < completing);
            match self.store_record(&admitted) {
                Ok(sequence) => stored.push((sequence, previous)),
                Err(error) => {
                    // The stored records are removed. They were not visible yet.
                    for sequence in stored.iter().filter_map(|(sequence, _)| *sequence) {
                        let _ = self.remove_record(sequence, false);
                    }
                    return Err(error);
                }
            }
        }
        let last = self.store.last_sequence();
        for (ready, (sequence, previous)) in ready.iter().zip(stored) {
            match sequence {
                Some(sequence) => self.follow_up(&ready.admitted(), sequence, previous, port),
                None => self.remember_id(&ready.admitted(), last),
            }
        }
        Ok(last)
    }

    fn check_batch(&mut self, batch: OpenBatch) -> Result<Vec<CheckedMessage>, ApiError> {
        let mut so_far = BatchEffects::default();
        let mut edits = std::mem::take(&mut self.edits);
        let mut all = Vec::with_capacity(batch.messages.len());
        let mut result = Ok(());
        for owned in batch.messages {
            let message = Message {
                subject: &owned.subject,
                reply: b"",
                headers: &owned.headers,
                payload: &owned.payload,
                ..Message::default()
            };
            let asked = PublishHeaders::parse(&owned.headers);
            match self.check(&message, &asked, &mut edits, Some(&mut so_far)) {
                Ok(checked) => all.push(CheckedMessage::from(
                    &checked.admitted(&message, &asked, &edits),
                )),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.edits = edits;
        result.map(|()| all)
    }

    /// Checks whether a stream that discards new messages has room for the whole batch. If a message may
    /// replace another record, the limit is checked when the message is stored.
    fn check_room(&self, ready: &[CheckedMessage]) -> Result<(), ApiError> {
        if self.config.discard != Discard::New {
            return Ok(());
        }
        let limits = self.store.limits();
        if let Some(max) = limits.messages_per_subject_max {
            return match self.config.discard_new_per_subject && self.overfills(ready, max) {
                true => Err(ApiError::stream_store_failed(
                    StoreError::MessagesPerSubjectMax,
                )),
                false => Ok(()),
            };
        }
        let messages = self.store.messages() + ready.len() as u64;
        if limits.messages_max.is_some_and(|max| messages > max) {
            return Err(ApiError::stream_store_failed(StoreError::MessagesMax));
        }
        Ok(())
    }

    /// Returns whether the batch would raise the number of records of a subject above `max`.
    fn overfills(&self, ready: &[CheckedMessage], max: u64) -> bool {
        let mut after: HashMap<&[u8], u64> = HashMap::new();
        ready.iter().any(|ready| {
            let subject = ready.message.subject.as_slice();
            let count = after.entry(subject).or_insert_with(|| {
                let known = self.store.subject(subject);
                known.map_or(0, |known| known.messages)
            });
            *count += 1;
            *count > max
        })
    }
}

impl CheckedMessage {
    fn from(admitted: &Admitted<'_>) -> Self {
        CheckedMessage {
            message: BatchMessage {
                subject: admitted.record.subject.to_vec(),
                headers: admitted.record.headers.to_vec(),
                payload: admitted.record.payload.to_vec(),
            },
            msg_id: admitted.msg_id.map(<[u8]>::to_vec),
            expires_at: admitted.record.expires_at,
            rollup: admitted.rollup,
            due: admitted.due,
            cancels: admitted.cancels.map(<[u8]>::to_vec),
        }
    }

    fn admitted(&self) -> Admitted<'_> {
        Admitted {
            record: NewRecord {
                subject: &self.message.subject,
                headers: &self.message.headers,
                payload: &self.message.payload,
                expires_at: self.expires_at,
                ..NewRecord::default()
            },
            msg_id: self.msg_id.as_deref(),
            rollup: self.rollup,
            due: self.due,
            cancels: self.cancels.as_deref(),
        }
    }
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
