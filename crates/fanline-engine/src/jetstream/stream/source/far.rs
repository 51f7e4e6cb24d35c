//! Remote origins, in another domain or account: handles their messages and requests records.
//!
//! Each record is stored once, identified by its sequence at the origin: a lower sequence than the next one
//! is a duplicate, and a gap in the deliveries makes the [`Reader`] request again.

use std::time::Duration;

use super::super::Stream;
use super::Source;
use super::keep::{Copied, expiry, without_conditions};
use super::reader::{Heard, Reader};
use crate::jetstream::consumer::AckTopic;
use crate::jetstream::{Message, Now, Port};
use crate::random::Random;
use crate::subject::is_literal_topic;

impl Stream {
    /// Requests the next records from remote origins where due, and confirms progress to them. Call it once
    /// after handling events.
    pub(in crate::jetstream) fn tend_sources(
        &mut self,
        now: Now,
        random: &mut Random,
        port: &mut dyn Port,
    ) {
        let durable = self.store.durable();
        for source in &mut self.sources {
            source.tend(&self.config.name, durable, now.since_start, random, port);
        }
    }

    /// Returns the inboxes of the remote origins, if they have changed since the last call.
    pub(in crate::jetstream) fn take_moved_inlets(&mut self) -> Option<Vec<Box<[u8]>>> {
        let mut has_moved = std::mem::take(&mut self.inlets_moved);
        for reader in self.sources.iter_mut().filter_map(|s| s.reader.as_mut()) {
            has_moved |= reader.take_moved();
        }
        if !has_moved {
            return None;
        }
        let readers = self.sources.iter().filter_map(|s| s.reader.as_ref());
        Some(readers.flat_map(Reader::inlets).map(Into::into).collect())
    }

    /// Handles a message to one of these inboxes.
    pub(in crate::jetstream) fn take_from_afar(
        &mut self,
        message: &Message<'_>,
        now: Now,
        port: &mut dyn Port,
    ) {
        self.clock = now;
        let mut sources = std::mem::take(&mut self.sources);
        if let Some(source) = sources.iter_mut().find(|s| s.listens_to(message.topic)) {
            self.hear(source, message, port);
        }
        self.sources = sources;
    }

    /// Deletes the consumers at all remote origins.
    pub(in crate::jetstream) fn leave_origins(&mut self, port: &mut dyn Port) {
        for reader in self.sources.iter_mut().filter_map(|s| s.reader.as_mut()) {
            reader.leave(port);
        }
    }

    fn hear(&mut self, source: &mut Source, message: &Message<'_>, port: &mut dyn Port) {
        let (now, until) = (self.clock, self.store.last_sequence());
        let Some(reader) = &mut source.reader else {
            return;
        };
        match reader.handle(message, now.since_start) {
            Heard::Nothing => return,
            Heard::Alive => {}
            Heard::Begun(begun) => {
                source.lag = begun.pending;
                source.identity = begun.identity.unwrap_or_default();
            }
            Heard::Record(subject) => self.take_delivery(source, &subject, message, port),
            Heard::Asks(reply) => reader.answer(reply, source.taken, until, port),
            Heard::Broken => reader.rest(now.since_start, port),
            Heard::Refused(_) => return reader.rest(now.since_start, port),
        }
        source.active = Some(now.unix_nanos);
    }

    /// Stores a record, unless it was stored before.
    fn take_delivery(
        &mut self,
        source: &mut Source,
        delivery: &AckTopic<'_>,
        message: &Message<'_>,
        port: &mut dyn Port,
    ) {
        let subject = match message.shown {
            b"" => message.topic,
            shown => shown,
        };
        let sequence = delivery.stream_sequence;
        let is_new = source.next.is_none_or(|next| sequence >= next);
        let mut result = Ok(0);
        if is_new && is_literal_topic(subject) {
            let expires_at = expiry(message.headers, delivery.unix_nanos);
            let copy = Copied {
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
                reader.note_kept();
                source.lag = delivery.pending;
                if is_new {
                    (source.next, source.taken) = (Some(sequence.saturating_add(1)), sequence);
                }
            }
            // There is no room, or a counter cannot be read: it is requested again.
            Err(error) => {
                reader.note_failed(error);
                reader.rest(self.clock.since_start, port);
            }
        }
    }

    /// Returns when [`tend_sources`](Self::tend_sources) is due even if nothing happens.
    pub(in crate::jetstream::stream) fn next_asking(&self) -> Option<Duration> {
        let readers = self.sources.iter().filter_map(|s| s.reader.as_ref());
        readers.filter_map(Reader::next_timeout).min()
    }
}

impl Source {
    fn listens_to(&self, subject: &[u8]) -> bool {
        let mut inlets = self.reader.iter().flat_map(Reader::inlets);
        inlets.any(|inlet| inlet == subject)
    }

    fn tend(
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
        reader.pay(durable, port);
        if !reader.is_to_ask(now, port) {
            return;
        }
        let names = reader.names(stream, &self.config, self.is_mirror, random);
        let api = reader.api().to_owned();
        let question = self.question(&api, &names);
        if let Some(reader) = &mut self.reader {
            reader.ask(&question, names, now, port);
        }
    }
}
