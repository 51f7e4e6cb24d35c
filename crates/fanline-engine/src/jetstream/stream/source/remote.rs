//! Remote origins, which are in another domain or account: handles their messages, and requests records.
//!
//! Each record is stored once, although it may arrive several times: a sequence below the next expected one
//! is a duplicate. After a gap in the deliveries, the [`Reader`] requests records again.

use std::time::Duration;

use super::super::Stream;
use super::Source;
use super::copy::{CopiedRecord, expiry, without_conditions};
use super::reader::{OriginEvent, Reader};
use crate::jetstream::consumer::AckSubject;
use crate::jetstream::{Message, Now, Port};
use crate::random::Random;
use crate::subject::is_literal_subject;

impl Stream {
    /// Requests the next records from remote origins for which a request is due, and confirms durable records
    /// to them. Call it once after one or more events.
    pub(in crate::jetstream) fn update_remote_sources(
        &mut self,
        now: Now,
        random: &mut Random,
        port: &mut dyn Port,
    ) {
        let durable = self.store.durable();
        for source in &mut self.sources {
            source.update(&self.config.name, durable, now.since_start, random, port);
        }
    }

    /// Returns the inboxes of the remote origins, if they have changed since the last call.
    pub(in crate::jetstream) fn take_changed_inboxes(&mut self) -> Option<Vec<Box<[u8]>>> {
        let mut has_changed = std::mem::take(&mut self.inboxes_changed);
        for reader in self.sources.iter_mut().filter_map(|s| s.reader.as_mut()) {
            has_changed |= reader.take_changed();
        }
        if !has_changed {
            return None;
        }
        let readers = self.sources.iter().filter_map(|s| s.reader.as_ref());
        Some(readers.flat_map(Reader::inboxes).map(Into::into).collect())
    }

    /// Handles a message to one of the inboxes of remote origins.
    pub(in crate::jetstream) fn handle_origin_message(
        &mut self,
        message: &Message<'_>,
        now: Now,
        port: &mut dyn Port,
    ) {
        self.clock = now;
        let mut sources = std::mem::take(&mut self.sources);
        if let Some(source) = sources.iter_mut().find(|s| s.listens_to(message.subject)) {
            self.handle_source_message(source, message, port);
        }
        self.sources = sources;
    }

    /// Deletes the consumers at all remote origins.
    pub(in crate::jetstream) fn delete_origin_consumers(&mut self, port: &mut dyn Port) {
        for reader in self.sources.iter_mut().filter_map(|s| s.reader.as_mut()) {
            reader.delete_consumer(port);
        }
    }

    /// Ends the subscriptions of all remote origins. Their consumers remain, and expire later.
    pub(in crate::jetstream) fn stop_reading(&mut self, port: &mut dyn Port) {
        for reader in self.sources.iter_mut().filter_map(|s| s.reader.as_mut()) {
            reader.stop(port);
        }
    }

    fn handle_source_message(
        &mut self,
        source: &mut Source,
        message: &Message<'_>,
        port: &mut dyn Port,
    ) {
        let (now, until) = (self.clock, self.store.last_sequence());
        let Some(reader) = &mut source.reader else {
            return;
        };
        match reader.handle(message, now.since_start) {
            OriginEvent::Nothing => return,
            OriginEvent::Alive => {}
            OriginEvent::Started(started) => {
                source.lag = started.pending;
                source.identity = started.identity.unwrap_or_default();
            }
            OriginEvent::Record(subject) => self.take_delivery(source, &subject, message, port),
            OriginEvent::FlowControl(reply) => {
                reader.answer(reply, source.last_copied, until, port)
            }
            OriginEvent::Broken => reader.back_off(now.since_start, port),
            OriginEvent::Refused(_) => return reader.back_off(now.since_start, port),
        }
        source.active = Some(now.unix_nanos);
    }

    /// Stores a delivered record, unless it was stored before.
    fn take_delivery(
        &mut self,
        source: &mut Source,
        delivery: &AckSubject<'_>,
        message: &Message<'_>,
        port: &mut dyn Port,
    ) {
        let subject = match message.shown {
            b"" => message.subject,
            shown => shown,
        };
        let sequence = delivery.stream_sequence;
        let is_new = source.next.is_none_or(|next| sequence >= next);
        let mut result = Ok(0);
        if is_new && is_literal_subject(subject) {
            let expires_at = expiry(message.headers, delivery.unix_nanos);
            let copy = CopiedRecord {
                sequence,
                unix_nanos: delivery.unix_nanos,
                expires_at: expires_at.filter(|_| self.config.allow_msg_ttl),
                subject: source.rename(subject, self.random()),
                headers: without_conditions(message.headers),
                payload: message.payload.to_vec(),
            };
            result = self.store_copy(source, copy, subject, port);
        }
        let Some(reader) = &mut source.reader else {
            return;
        };
        match result {
            Ok(_) => {
                reader.note_stored();
                source.lag = delivery.pending;
                if is_new {
                    (source.next, source.last_copied) =
                        (Some(sequence.saturating_add(1)), sequence);
                }
            }
            // There is no room for the copy, or a counter cannot be read. The record is requested again.
            Err(error) => {
                reader.note_failed(error);
                reader.back_off(self.clock.since_start, port);
            }
        }
    }

    /// Returns the time at which to call [`update_remote_sources`](Self::update_remote_sources) even without
    /// another event.
    pub(in crate::jetstream::stream) fn next_source_timeout(&self) -> Option<Duration> {
        let readers = self.sources.iter().filter_map(|s| s.reader.as_ref());
        readers.filter_map(Reader::next_timeout).min()
    }
}

impl Source {
    fn listens_to(&self, subject: &[u8]) -> bool {
        let mut inboxes = self.reader.iter().flat_map(Reader::inboxes);
        inboxes.any(|inbox| inbox == subject)
    }

    fn update(
        &mut self,
        stream: &str,
        durable: u64,
        now: Duration,
        random: &mut Random,
        port: &mut dyn Port,
    ) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        reader.send_flow_answers(durable, port);
        if !reader.is_request_due(now, port) {
            return;
        }
        let names = reader.names(stream, &self.config, self.is_mirror, random);
        let api = reader.api().to_owned();
        let origin_request = self.origin_request(&api, &names);
        if let Some(reader) = &mut self.reader {
            reader.send_request(&origin_request, names, now, port);
        }
    }
}
