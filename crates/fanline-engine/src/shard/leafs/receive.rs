//! What comes from a leaf.

use std::ops::Range;
use std::time::Duration;

use super::super::SessionId;
use super::super::verbs::asks_for_trace;
use super::super::{PRODUCED_BYTES_MAX, Receipt, Shard};
use crate::accounts::Mapped;
use crate::codec::leaf::parse::{LeafMessage, LeafParsed, LeafVerb, parse_leaf};
use crate::codec::leaf::{LeafError, RETRY_AFTER_CLASH, Side};
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::parse::Publish;
use crate::exchange::message::{Context, Dispatch, Message, Origin};
use crate::exchange::run::Intake;
use crate::exchange::text::text;
use crate::outbox::Chunk;

/// What the replies of a stream's deliveries begin with.
const STREAM_REPLIES: &[u8] = b"$JS.ACK.";

impl Shard {
    /// Takes bytes from a leaf; as [`receive`](Shard::receive) does from a client.
    pub(in crate::shard) fn receive_leaf(
        &mut self,
        id: SessionId,
        chunk: &Chunk,
        range: Range<usize>,
        now: Duration,
    ) -> Receipt {
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        let rtt_before = self.broker.exchange.sessions[id.index()].rtt;
        self.broker.exchange.outputs.begin_batch();
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.sessions[id.index()].active_at = now;
        let mut intake = self.begin_leaf_intake(id, chunk);
        while receipt.consumed < input.len() {
            if self.broker.exchange.sessions[id.index()].ending.is_some() {
                receipt.consumed = input.len();
                break;
            }
            let rest = &input[receipt.consumed..];
            let from = range.start + receipt.consumed;
            match parse_leaf(rest, self.broker.exchange.config.limits.payload_bytes_max) {
                LeafParsed::Verb(LeafVerb::Message(message), taken) => {
                    self.take_from_leaf(&mut intake, &message, from);
                    receipt.consumed += taken;
                }
                LeafParsed::Verb(verb, taken) => {
                    self.broker.exchange.end_run(&intake);
                    self.end_intake(&intake);
                    self.handle_leaf(id, verb, now);
                    intake = self.begin_leaf_intake(id, chunk);
                    receipt.consumed += taken;
                    if self.broker.exchange.sessions[id.index()].check.is_some() {
                        receipt.awaits_check = true;
                        break;
                    }
                }
                LeafParsed::Partial { frame_bytes } => {
                    receipt.frame_bytes = frame_bytes;
                    break;
                }
                LeafParsed::Wrong(fault) => self.refuse(id, fault.error, fault.reason),
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.exchange.end_run(&intake);
        self.end_intake(&intake);
        self.end_overrun();
        self.broker.exchange.tell_leafs();
        receipt.produced_bytes = self.broker.exchange.outputs.produced_bytes;
        receipt.was_measured = self.broker.exchange.sessions[id.index()].rtt != rtt_before;
        if let Some((congested, _)) = self.broker.exchange.outputs.congested {
            self.broker.exchange.sessions[id.index()].stalls += 1;
            receipt.congested = Some(congested);
        }
        receipt
    }

    /// Does what a verb other than a message says.
    fn handle_leaf(&mut self, id: SessionId, verb: LeafVerb<'_>, now: Duration) {
        match verb {
            LeafVerb::Connect(json) => self.leaf_connect(id, json),
            LeafVerb::Info(json) => self.leaf_info(id, json),
            LeafVerb::Error(error) => self.leaf_complains(id, error),
            LeafVerb::Ping => self.broker.exchange.send(id, b"PONG\r\n"),
            LeafVerb::Pong => self.pong(id, now),
            LeafVerb::Ok | LeafVerb::Message(_) => {}
            LeafVerb::Wants { .. } | LeafVerb::WantsNoMore { .. } if !self.is_ready(id) => {
                self.refuse_early(id);
            }
            LeafVerb::Wants {
                filter,
                queue,
                weight,
            } => self.leaf_wants(id, filter, queue, weight),
            LeafVerb::WantsNoMore { filter, queue } => self.leaf_wants_no_more(id, filter, queue),
        }
    }

    fn is_ready(&self, id: SessionId) -> bool {
        let leaf = self.broker.exchange.sessions[id.index()].kind.leaf.as_ref();
        leaf.is_some_and(|leaf| leaf.is_ready())
    }

    /// Somebody speaks before it was let in.
    fn refuse_early(&mut self, id: SessionId) {
        let leaf = self.broker.exchange.sessions[id.index()].kind.leaf.as_ref();
        match leaf.map(|leaf| &leaf.side) {
            Some(Side::Listening) => self.refuse_credentials(id),
            _ => self.end(id, CloseReason::ProtocolViolation),
        }
    }

    /// The other side gives up, and says why.
    fn leaf_complains(&mut self, id: SessionId, error: &[u8]) {
        let error = text(error);
        let retry_after = LeafError::retry_after(&error);
        self.broker
            .exchange
            .outputs
            .notice(id, || format!("Leafnode Error '{error}'"));
        if let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf {
            leaf.retry_after = retry_after.or(leaf.retry_after);
            leaf.complaint = Some(error);
        }
        self.end(id, CloseReason::ParseError);
    }

    /// What the messages of one leaf have in common until it says something else.
    fn begin_leaf_intake<'a>(&self, id: SessionId, chunk: &'a Chunk) -> Intake<'a> {
        let session = &self.broker.exchange.sessions[id.index()];
        let leaf = session.kind.leaf.as_ref();
        let mut intake = self.begin_intake(id, chunk);
        intake.origin.echo = false;
        intake.is_admitted = leaf.is_some_and(|leaf| leaf.is_ready());
        intake.is_restricted = leaf.is_some_and(|leaf| !leaf.rules.is_empty());
        let is_held = leaf.is_some_and(|leaf| leaf.is_held());
        intake.may_run = intake.is_admitted
            && !is_held
            && !intake.is_mapped
            && !self.broker.exchange.outputs.traces;
        intake
    }

    /// Takes a message. `from` is where its verb begins in the chunk.
    fn take_from_leaf<'a>(
        &mut self,
        intake: &mut Intake<'a>,
        message: &LeafMessage<'a>,
        from: usize,
    ) {
        let LeafMessage { publish, groups } = message;
        if groups.is_empty()
            && intake.may_run
            && (self.broker.exchange).coalesce(intake, publish, from, false)
        {
            return intake.count(publish);
        }
        self.broker.exchange.end_run(intake);
        let id = intake.id;
        if !intake.is_admitted {
            return self.refuse_early(id);
        }
        intake.count(publish);
        let leaf = self.broker.exchange.sessions[id.index()].kind.leaf.as_ref();
        if leaf.is_some_and(|leaf| leaf.is_held()) {
            return;
        }
        // What the memo holds was allowed when it came for the first time.
        if let Some(leaf) = leaf
            && intake.is_restricted
            && !self.broker.exchange.routers[intake.account].holds(intake.memo, publish.topic)
        {
            match leaf.rules.may_take(publish.topic) {
                Ok(true) => {}
                Ok(false) => return,
                Err(()) => return self.refuse_leaf_message(id, publish.topic),
            }
        }
        let origin = Origin {
            groups: Some(groups),
            ..intake.origin
        };
        if !intake.is_mapped {
            return self.pass_from_leaf(intake, publish, origin, from);
        }
        let mut renamed = Vec::new();
        match self
            .broker
            .rename(intake.account, publish.topic, &mut renamed)
        {
            Mapped::Unchanged => self.pass_from_leaf(intake, publish, origin, from),
            Mapped::Renamed => {
                let publish = Publish {
                    topic: &renamed,
                    ..publish.clone()
                };
                self.pass_from_leaf(intake, &publish, origin, from);
            }
            Mapped::Lost => {}
        }
    }

    /// A hub has said what may be published, and this is not among it.
    fn refuse_leaf_message(&mut self, id: SessionId, topic: &[u8]) {
        if let Some(leaf) = &mut self.broker.exchange.sessions[id.index()].kind.leaf {
            if leaf.is_spoke() {
                // It was said for this side to keep, and what a hub does is its own business.
                return;
            }
            leaf.retry_after = Some(RETRY_AFTER_CLASH);
        }
        self.deny_publish(id, topic);
        self.end(id, CloseReason::ProtocolViolation);
    }

    /// Gives a message to all who want it.
    fn pass_from_leaf(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        origin: Origin<'_>,
        from: usize,
    ) {
        let Intake {
            id, account, chunk, ..
        } = *intake;
        let mut message = Message::published(chunk, publish, from);
        let mut traced = None;
        if publish.header_bytes > 0 && asks_for_trace(chunk, publish, from) {
            let bytes = publish.payload_bytes();
            match self.trace_of_leaf(id, publish.topic, message.headers(), bytes) {
                Some(trace) => traced = trace,
                None => return,
            }
        }
        let (reply, shown) = split_shown(publish.reply);
        let mut head = Vec::new();
        if !shown.is_empty() {
            head = [b"HMSG ", shown, b" "].concat();
        }
        message.head = &head;
        let mut dispatch = Dispatch {
            account,
            subject: publish.topic,
            message: &message,
            origin,
            context: Context {
                trace: traced.as_mut(),
                ..Context::default()
            },
        };
        let memo = &mut intake.memo;
        if publish.args.is_empty() || !shown.is_empty() {
            // Not in the form in which it is passed on.
            let publish = Publish {
                reply,
                ..publish.clone()
            };
            self.dispatch_rewritten(dispatch, &publish, memo);
        } else {
            self.broker.dispatch(&mut dispatch, memo);
        }
        if let Some(traced) = traced {
            self.broker.end_trace(traced);
        }
    }
}

/// The reply of a stream's delivery, and the topic that its reader is shown, if that is another.
fn split_shown(reply: &[u8]) -> (&[u8], &[u8]) {
    if !reply.starts_with(STREAM_REPLIES) {
        return (reply, &[]);
    }
    match reply.iter().rposition(|b| *b == b'@') {
        Some(at) if at + 1 < reply.len() => (&reply[..at], &reply[at + 1..]),
        _ => (reply, &[]),
    }
}
