//! Answers that wait until what they promise is on the disk.
//!
//! A purge, a deletion, an acknowledgement that is confirmed: none of them has a sequence of its own, as a
//! publish has. So each waits for a mark in the log and for a ticket of the documents, and one sync of
//! either serves all who wait.

use std::collections::VecDeque;

use super::account::JetStream;
use super::api::{self, Endpoint};
use super::streams::Key;
use super::{ApiError, Message, Now, Port};
use crate::store::DiskError;

/// So many answers of one stream wait for the disk. Beyond that requests are refused, and
/// acknowledgements not confirmed: whoever sent one asks again.
const HELD_MAX: usize = 65_536;

/// The answers of one stream that wait, in the order in which they were given.
#[derive(Default)]
pub(super) struct Held(VecDeque<Waiting>);

struct Waiting {
    /// The log must be safe up to this mark,
    log: u64,
    /// and the documents up to this ticket.
    documents: u64,
    answer: Answer,
}

/// Something that is said once it is true.
pub(super) struct Answer {
    pub(super) reply: Box<[u8]>,
    pub(super) payload: Vec<u8>,
    /// What was asked for; `None` when an acknowledgement is confirmed.
    pub(super) endpoint: Option<&'static Endpoint>,
}

impl Answer {
    fn send(&self, port: &mut dyn Port) {
        port.publish(&Message {
            topic: &self.reply,
            payload: &self.payload,
            ..Message::default()
        });
    }

    /// What is asked of the API is answered in any case.
    fn refuse(&self, error: &ApiError, port: &mut dyn Port) {
        if let Some(endpoint) = self.endpoint {
            port.publish(&Message {
                topic: &self.reply,
                payload: &api::refusal(endpoint, error),
                ..Message::default()
            });
        }
    }
}

impl Held {
    /// Sends all: they are true, or nobody will know.
    pub(super) fn release_all(&mut self, port: &mut dyn Port) {
        self.0
            .drain(..)
            .for_each(|waiting| waiting.answer.send(port));
    }

    fn release(&mut self, log: u64, documents: u64, port: &mut dyn Port) {
        while let Some(first) = self.0.front()
            && first.log <= log
            && first.documents <= documents
        {
            first.answer.send(port);
            self.0.pop_front();
        }
    }

    fn fail(&mut self, error: &ApiError, port: &mut dyn Port) {
        self.0
            .drain(..)
            .for_each(|waiting| waiting.answer.refuse(error, port));
    }
}

impl JetStream {
    /// Says something once all that has been done to a stream so far is as safe as the stream makes it.
    pub(super) fn hold(&mut self, key: Key, answer: Answer, port: &mut dyn Port) {
        let Some((stream, documents, held)) = self.streams.with_held(key) else {
            return answer.send(port);
        };
        if !stream.commits() {
            return answer.send(port);
        }
        if held.0.len() >= HELD_MAX {
            return answer.refuse(&ApiError::INSUFFICIENT_RESOURCES, port);
        }
        held.0.push_back(Waiting {
            log: stream.mark(),
            documents: documents.map_or(0, |documents| documents.last_ticket()),
            answer,
        });
    }

    /// Says what has come true.
    pub(super) fn release_held(&mut self, key: Key, port: &mut dyn Port) {
        if let Some((stream, documents, held)) = self.streams.with_held(key) {
            let documents = documents.map_or(u64::MAX, |documents| documents.durable());
            held.release(stream.safe(), documents, port);
        }
    }

    /// The disk has failed: nobody knows what it holds.
    pub(super) fn fail_held(&mut self, key: Key, error: DiskError, port: &mut dyn Port) {
        if let Some((_, _, held)) = self.streams.with_held(key) {
            held.fail(&super::stream::refused(error.into()), port);
        }
    }

    /// Confirms acknowledgements that were sent as requests, once it is on the disk how far their
    /// consumers are. While that is being written others gather, unless it is the last time.
    pub(super) fn confirm_acks(&mut self, key: Key, last: bool, now: Now, port: &mut dyn Port) {
        let Some((stream, mut documents)) = self.streams.with_documents(key) else {
            return;
        };
        let commits = stream.commits();
        let is_syncing = documents.as_ref().is_some_and(|it| it.is_syncing());
        let is_busy = is_syncing || !stream.may_write_states();
        if !stream.consumers().has_confirmations() || commits && is_busy && !last {
            return;
        }
        let confirmed = stream.with_consumers(now, port, |consumers, _| {
            let confirmed = consumers.take_confirmations();
            let kept = documents.as_mut().filter(|_| commits);
            if let Some(documents) = kept {
                consumers.save_confirmed(&confirmed, &mut |consumer, state| {
                    super::keep::keep_state(documents, consumer, state);
                });
            }
            confirmed
        });
        stream.note_states();
        for (_, reply) in confirmed {
            let answer = Answer {
                reply,
                payload: Vec::new(),
                endpoint: None,
            };
            self.hold(key, answer, port);
        }
    }
}
