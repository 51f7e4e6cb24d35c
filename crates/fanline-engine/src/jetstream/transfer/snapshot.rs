//! Snapshots: sends backups.

use std::time::Duration;

use super::{INTEREST_WAIT, SILENCE_MAX, TRANSFERS_MAX, archive, framing};
use crate::jetstream::account::JetStream;
use crate::jetstream::consumer::Context;
use crate::jetstream::info::StateInfo;
use crate::jetstream::stream::Stream;
use crate::jetstream::streams::StreamId;
use crate::jetstream::{ApiError, ConsumerConfig, Message, Now, Port};
use crate::store::{Filters, StoreError};

/// Options of a request for a snapshot.
#[derive(Clone, Debug)]
pub(in crate::jetstream) struct SnapshotOptions {
    pub(in crate::jetstream) deliver: String,
    pub(in crate::jetstream) chunk_bytes: usize,
    pub(in crate::jetstream) window_bytes: usize,
    pub(in crate::jetstream) with_consumers: bool,
}

/// A snapshot that is in progress.
pub(in crate::jetstream) struct Snapshot {
    id: String,
    stream: StreamId,
    name: String,
    options: SnapshotOptions,
    /// Sequence of the next record to write.
    next: u64,
    /// First sequence that is not part of the snapshot.
    end: u64,
    /// Whether the first chunk was sent. Before that, the snapshot waits for a subscriber of the deliver
    /// subject.
    has_begun: bool,
    has_ended: bool,
    /// Bytes of the archive that are not in frames yet.
    plain: Vec<u8>,
    /// Bytes in frames that are not sent yet.
    buffer: Vec<u8>,
    in_flight_bytes: usize,
    chunks: u64,
    pub(super) last_message: Duration,
}

impl JetStream {
    /// Begins to send the current content of a stream to a subject.
    pub(in crate::jetstream) fn start_snapshot(
        &mut self,
        name: &str,
        options: SnapshotOptions,
        now: Now,
        port: &mut dyn Port,
    ) -> Result<(), ApiError> {
        if self.transfers.snapshots.len() >= TRANSFERS_MAX {
            return Err(ApiError::stream_snapshot("too many backups at once"));
        }
        let key = self.streams.find(name).ok_or(ApiError::STREAM_NOT_FOUND)?;
        let stream = self.streams.id(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
        let of = self.streams.touch(key).ok_or(ApiError::STREAM_NOT_FOUND)?;
        let mut plain = Vec::new();
        archive::begin(&mut plain);
        if options.with_consumers {
            write_consumers(of, &mut plain, now, port);
        }
        let state = StateInfo::of(of);
        let mut buffer = Vec::new();
        framing::begin(&mut buffer);
        let snapshot = Snapshot {
            id: self.random.id(),
            stream,
            name: name.to_owned(),
            options,
            next: of.store().first_sequence(),
            end: of.store().last_sequence() + 1,
            has_begun: false,
            has_ended: false,
            plain,
            buffer,
            in_flight_bytes: 0,
            chunks: 0,
            last_message: now.since_start,
        };
        self.advisories
            .transfer("snapshot_create", (name, Some(&state)), now, port);
        self.transfers.snapshots.push(snapshot);
        self.begin_snapshots(now, port);
        Ok(())
    }

    /// Begins to send the snapshots whose deliver subject has a subscriber. A wildcard subscription counts
    /// only after `INTEREST_WAIT`.
    pub(in crate::jetstream) fn begin_snapshots(&mut self, now: Now, port: &mut dyn Port) {
        for mut snapshot in std::mem::take(&mut self.transfers.snapshots) {
            let deliver = snapshot.options.deliver.as_bytes();
            let is_due = snapshot.abandoned_at() <= now.since_start;
            let begins = !snapshot.has_begun
                && (port.is_subscribed(deliver) || is_due && port.has_interest(deliver));
            if begins {
                snapshot.has_begun = true;
                snapshot.last_message = now.since_start;
            }
            if !begins || !self.send_window(&mut snapshot, now, port) {
                self.transfers.snapshots.push(snapshot);
            }
        }
    }

    /// Handles the answer to a chunk of `bytes` bytes.
    pub(super) fn handle_snapshot_ack(
        &mut self,
        id: &str,
        bytes: usize,
        now: Now,
        port: &mut dyn Port,
    ) {
        let snapshots = &mut self.transfers.snapshots;
        let Some(at) = snapshots.iter().position(|snapshot| snapshot.id == id) else {
            return;
        };
        let mut snapshot = snapshots.swap_remove(at);
        snapshot.in_flight_bytes = snapshot.in_flight_bytes.saturating_sub(bytes);
        snapshot.last_message = now.since_start;
        if !self.send_window(&mut snapshot, now, port) {
            self.transfers.snapshots.push(snapshot);
        }
    }

    /// Sends chunks until the window is full. Returns whether the snapshot is complete.
    fn send_window(&mut self, snapshot: &mut Snapshot, now: Now, port: &mut dyn Port) -> bool {
        let key = self.streams.by_id(snapshot.stream);
        let Some(stream) = key.and_then(|key| self.streams.get_mut(key)) else {
            snapshot.end_with("NATS/1.0 500 Stream Deleted\r\n\r\n", port);
            return true;
        };
        match snapshot.send(stream, port) {
            Ok(false) => return false,
            Ok(true) => snapshot.end_with("NATS/1.0 204\r\n\r\n", port),
            Err(_) => snapshot.end_with("NATS/1.0 500 Read Error\r\n\r\n", port),
        }
        let name = &snapshot.name;
        self.advisories
            .transfer("snapshot_complete", (name, None), now, port);
        true
    }
}

impl Snapshot {
    fn send(&mut self, stream: &mut Stream, port: &mut dyn Port) -> Result<bool, StoreError> {
        let mut everything = Filters::default();
        loop {
            while !self.has_ended && self.plain.len() + self.buffer.len() < self.options.chunk_bytes
            {
                let found = stream.store().next_matching(&mut everything, self.next)?;
                let Some(sequence) = found.filter(|sequence| *sequence < self.end) else {
                    archive::write_end(&mut self.plain, self.end);
                    self.has_ended = true;
                    break;
                };
                self.next = sequence + 1;
                match stream.store().read(sequence) {
                    Ok(Some(record)) => archive::write_record(&mut self.plain, &record),
                    // A damaged record is omitted.
                    Ok(None) | Err(StoreError::Damaged(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            framing::write(&mut self.buffer, &self.plain);
            self.plain.clear();
            if self.buffer.is_empty() {
                return Ok(true);
            }
            if self.in_flight_bytes >= self.options.window_bytes {
                return Ok(false);
            }
            self.send_chunk(port);
        }
    }

    fn send_chunk(&mut self, port: &mut dyn Port) {
        let bytes = self.buffer.len().min(self.options.chunk_bytes);
        let chunk: Vec<u8> = self.buffer.drain(..bytes).collect();
        self.chunks += 1;
        self.in_flight_bytes += bytes;
        let Snapshot {
            name, id, chunks, ..
        } = &*self;
        let reply = format!("$JS.SNAPSHOT.ACK.{name}.{id}.{bytes}.{chunks}");
        port.publish(&Message {
            subject: self.options.deliver.as_bytes(),
            reply: reply.as_bytes(),
            payload: &chunk,
            ..Message::default()
        });
    }

    /// Returns the time at which the snapshot is abandoned if no message arrives.
    pub(super) fn abandoned_at(&self) -> Duration {
        let wait_max = match self.has_begun {
            true => SILENCE_MAX,
            false => INTEREST_WAIT,
        };
        self.last_message + wait_max
    }

    /// Ends a snapshot whose receiver does not answer chunks.
    pub(super) fn abandon(&self, port: &mut dyn Port) {
        self.end_with("NATS/1.0 408 No Flow Response\r\n\r\n", port);
    }

    fn end_with(&self, status: &str, port: &mut dyn Port) {
        port.publish(&Message {
            subject: self.options.deliver.as_bytes(),
            headers: status.as_bytes(),
            ..Message::default()
        });
    }
}

fn write_consumers(stream: &mut Stream, out: &mut Vec<u8>, now: Now, port: &mut dyn Port) {
    stream.with_consumers(now, port, |consumers, _: &mut Context<'_>| {
        for (_, consumer) in consumers.iter() {
            let config: &ConsumerConfig = consumer.config();
            if config.direct {
                continue;
            }
            let kept = serde_json::to_vec(&(consumer.created(), config)).unwrap_or_default();
            let mut state = Vec::new();
            consumer.encode_state(&mut state);
            archive::write_consumer(out, &kept, &state);
        }
    });
}
