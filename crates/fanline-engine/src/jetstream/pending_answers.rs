//! Answers that wait until the change that they confirm is on disk.
//!
//! A publish waits until its sequence is synced, but purges, deletions, and confirmed acknowledgements have
//! no sequence. Their answers wait for two counters instead: a mark, which counts changes of the log, and a
//! ticket, which counts changes of the documents. One sync of the log or of the documents serves all waiting
//! answers.

use std::collections::VecDeque;

use super::account::JetStream;
use super::api::{self, Endpoint};
use super::streams::Key;
use super::{ApiError, Message, Now, Port};
use crate::store::DiskError;

/// Maximum number of answers of one stream that wait for the disk. At this limit, requests are refused and
/// acknowledgements are not confirmed, so that their senders retry.
const PENDING_ANSWERS_MAX: usize = 65_536;

/// The pending answers of one stream, oldest first.
#[derive(Default)]
pub(super) struct PendingAnswers(VecDeque<PendingAnswer>);

struct PendingAnswer {
    /// Mark (a count of log changes) up to which the log must be durable.
    log: u64,
    /// Ticket (a count of document changes) up to which the documents must be durable.
    documents: u64,
    answer: Answer,
}

/// An answer to send when the change that it confirms is durable.
pub(super) struct Answer {
    pub(super) reply: Box<[u8]>,
    pub(super) payload: Vec<u8>,
    /// Endpoint of the request; `None` for a confirmed acknowledgement.
    pub(super) endpoint: Option<&'static Endpoint>,
}

impl Answer {
    fn send(&self, port: &mut dyn Port) {
        let message = Message {
            subject: &self.reply,
            payload: &self.payload,
            ..Message::default()
        };
        port.answer(&message, Ok(0));
    }

    /// Sends an error to the client of an API request. An acknowledgement gets no error and stays
    /// unconfirmed.
    fn refuse(&self, error: &ApiError, port: &mut dyn Port) {
        if let Some(endpoint) = self.endpoint {
            let message = Message {
                subject: &self.reply,
                payload: &api::refusal(endpoint, error),
                ..Message::default()
            };
            port.answer(&message, Err(error));
        }
    }
}

impl PendingAnswers {
    /// Sends all answers, because the changes that they confirm are durable or can no longer be observed.
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

    /// Refuses all requests whose answers wait, because their changes may not be durable.
    pub(super) fn fail(&mut self, error: &ApiError, port: &mut dyn Port) {
        self.0
            .drain(..)
            .for_each(|waiting| waiting.answer.refuse(error, port));
    }
}

impl JetStream {
    /// Sends an answer after all earlier changes to a stream are durable, or immediately if the stream does
    /// not wait for syncs.
    pub(super) fn answer_when_durable(&mut self, key: Key, answer: Answer, port: &mut dyn Port) {
        let Some((stream, documents, answers)) = self.streams.with_answers(key) else {
            return answer.send(port);
        };
        if !stream.commits() {
            return answer.send(port);
        }
        if answers.0.len() >= PENDING_ANSWERS_MAX {
            return answer.refuse(&ApiError::INSUFFICIENT_RESOURCES, port);
        }
        answers.0.push_back(PendingAnswer {
            log: stream.mark(),
            documents: documents.map_or(0, |documents| documents.last_ticket()),
            answer,
        });
    }

    /// Sends the answers whose changes are durable now.
    pub(super) fn release_answers(&mut self, key: Key, port: &mut dyn Port) {
        if let Some((stream, documents, answers)) = self.streams.with_answers(key) {
            let documents = documents.map_or(u64::MAX, |documents| documents.durable());
            answers.release(stream.durable_mark(), documents, port);
        }
    }

    /// Sends errors instead of all pending answers, because the disk has failed and its content is unknown.
    pub(super) fn fail_answers(&mut self, key: Key, error: DiskError, port: &mut dyn Port) {
        if let Some((_, _, answers)) = self.streams.with_answers(key) {
            answers.fail(&super::stream::refused(error.into()), port);
        }
    }

    /// Confirms acknowledgements that requested a confirmation, after the states of their consumers are on
    /// disk. While a sync is under way, such acknowledgements accumulate and share the next sync. With
    /// `last`, on shutdown, they no longer accumulate.
    pub(super) fn confirm_acks(&mut self, key: Key, last: bool, now: Now, port: &mut dyn Port) {
        let Some((stream, mut documents)) = self.streams.with_documents(key) else {
            return;
        };
        let commits = stream.commits();
        let durability = stream.config().durability();
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
                    super::assets::persist_consumer_state(documents, consumer, durability, state);
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
            self.answer_when_durable(key, answer, port);
        }
    }
}
