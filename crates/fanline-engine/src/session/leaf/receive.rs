//! Input of leaf connections.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::super::Receipt;
use super::super::publish::asks_for_trace;
use super::{LeafSession, Side};
use crate::accounts::Mapped;
use crate::codec::gateway::has_mark;
use crate::codec::leaf::parse::{LeafMessage, LeafParsed, LeafVerb, parse_leaf};
use crate::codec::leaf::{LeafError, RETRY_AFTER_CLASH};
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::parse::Publish;
use crate::exchange::message::{Context, Dispatch, Message, Origin, Via};
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::run::Intake;
use crate::exchange::text::text;
use crate::outbox::Chunk;

/// Prefix of the reply subjects of messages that a stream delivers.
const STREAM_REPLIES: &[u8] = b"$JS.ACK.";

impl LeafSession<'_> {
    /// Handles input; see [`Shard::receive`](crate::Shard::receive).
    pub(crate) fn receive(&mut self, chunk: &Chunk, range: Range<usize>, now: Duration) -> Receipt {
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        let rtt_before = self.session().rtt;
        self.broker.begin_input(self.id, now);
        let mut intake = self.begin_intake(chunk);
        while receipt.consumed < input.len() {
            if self.session().ending.is_some() {
                receipt.consumed = input.len();
                break;
            }
            let rest = &input[receipt.consumed..];
            let from = range.start + receipt.consumed;
            match parse_leaf(rest, self.broker.exchange.config.limits.payload_bytes_max) {
                LeafParsed::Verb(LeafVerb::Message(message), taken) => {
                    self.message(&mut intake, &message, from);
                    receipt.consumed += taken;
                }
                LeafParsed::Verb(verb, taken) => {
                    self.broker.exchange.end_run(&intake);
                    self.broker.end_intake(&intake);
                    self.handle(verb, now);
                    intake = self.begin_intake(chunk);
                    receipt.consumed += taken;
                    if self.session().check.is_some() {
                        receipt.awaits_check = true;
                        break;
                    }
                }
                LeafParsed::Partial { frame_bytes } => {
                    receipt.frame_bytes = frame_bytes;
                    break;
                }
                LeafParsed::Wrong(fault) => self.broker.refuse(self.id, fault.error, fault.reason),
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.end_input(&intake, &mut receipt);
        receipt.was_measured = self.session().rtt != rtt_before;
        receipt
    }

    /// Handles a verb other than a message.
    fn handle(&mut self, verb: LeafVerb<'_>, now: Duration) {
        match verb {
            LeafVerb::Connect(json) => self.connect(json),
            LeafVerb::Info(json) => self.info(json),
            LeafVerb::Error(error) => self.handle_error(error),
            LeafVerb::Ping => self.broker.exchange.send(self.id, b"PONG\r\n"),
            LeafVerb::Pong => self.any().pong(now),
            LeafVerb::Ok | LeafVerb::Message(_) => {}
            LeafVerb::Subscribe { .. } | LeafVerb::Unsubscribe { .. }
                if !self.state().is_ready() =>
            {
                self.refuse_before_handshake();
            }
            LeafVerb::Subscribe {
                filter,
                queue,
                weight,
            } => self.subscribe(filter, queue, weight),
            LeafVerb::Unsubscribe { filter, queue } => self.unsubscribe(filter, queue),
        }
    }

    /// Refuses a verb that comes before the handshake is complete.
    fn refuse_before_handshake(&mut self) {
        match self.state().side {
            Side::Listening => self.any().refuse_credentials(),
            Side::Dialling(_) => self.broker.end(self.id, CloseReason::ProtocolViolation),
        }
    }

    /// Handles an error: the other side closes the connection.
    fn handle_error(&mut self, error: &[u8]) {
        let error = text(error);
        let retry_after = LeafError::retry_after(&error);
        self.broker
            .exchange
            .outputs
            .notice(self.id, || format!("Leafnode Error '{error}'"));
        let leaf = self.state_mut();
        leaf.retry_after = retry_after.or(leaf.retry_after);
        leaf.complaint = Some(error);
        self.broker.end(self.id, CloseReason::ParseError);
    }

    /// Begins an intake, which holds the values that the connection's messages share until it sends another
    /// verb.
    fn begin_intake<'a>(&self, chunk: &'a Chunk) -> Intake<'a> {
        let leaf = self.state();
        let mut intake = self.broker.begin_intake(self.id, chunk);
        intake.origin.echo = false;
        intake.origin.via = match leaf.is_spoke() {
            true => Via::Hub,
            false => Via::Own,
        };
        intake.is_admitted = leaf.is_ready();
        intake.is_restricted = !leaf.rules.is_empty();
        intake.may_run = intake.is_admitted
            && self.cluster_for_routes().is_empty()
            && !leaf.is_paused()
            && !intake.is_mapped
            && !self.broker.exchange.outputs.traces;
        intake
    }

    /// Returns the cluster of the other server, if routes must name it: it is a leaf node of this server's cluster.
    fn cluster_for_routes(&self) -> Arc<str> {
        let leaf = self.state();
        match self.broker.exchange.config.routes {
            Some(_) if !leaf.is_spoke() => Arc::clone(&leaf.cluster),
            _ => Arc::default(),
        }
    }

    /// Handles a message. `from` is the offset of its verb in the chunk.
    fn message<'a>(&mut self, intake: &mut Intake<'a>, message: &LeafMessage<'a>, from: usize) {
        let LeafMessage { publish, groups } = message;
        if groups.is_empty()
            && intake.may_run
            && (self.broker.exchange).coalesce(intake, publish, from, publish.header_bytes > 0)
        {
            return intake.count(publish);
        }
        self.broker.exchange.end_run(intake);
        if !intake.is_admitted {
            return self.refuse_before_handshake();
        }
        intake.count(publish);
        let leaf = self.state();
        // Marks come from other clusters only. They would bypass the rules of the connection.
        if leaf.is_paused() || has_mark(publish) {
            return;
        }
        // If the cached route (`memo`) is for this subject, an earlier message passed this check.
        if intake.is_restricted
            && !self.broker.exchange.routers[intake.account].holds(intake.memo, publish.subject)
        {
            match leaf.rules.may_receive(publish.subject) {
                Ok(true) => {}
                Ok(false) => return,
                Err(()) => return self.refuse_message(publish.subject),
            }
        }
        let cluster = self.cluster_for_routes();
        let origin = Origin {
            groups: Some(groups),
            cluster: cluster.as_bytes(),
            ..intake.origin
        };
        if !intake.is_mapped {
            return self.pass_on(intake, publish, origin, from);
        }
        let mut renamed = Vec::new();
        match self
            .broker
            .rename(intake.account, publish.subject, &mut renamed)
        {
            Mapped::Unchanged => self.pass_on(intake, publish, origin, from),
            Mapped::Renamed => {
                let publish = Publish {
                    subject: &renamed,
                    ..publish.clone()
                };
                self.pass_on(intake, &publish, origin, from);
            }
            Mapped::Lost => {}
        }
    }

    /// Handles a message that the permissions of the connection do not allow.
    fn refuse_message(&mut self, subject: &[u8]) {
        let leaf = self.state_mut();
        if leaf.is_spoke() {
            // The hub gave these permissions to this side. They do not restrict the hub itself.
            return;
        }
        leaf.retry_after = Some(RETRY_AFTER_CLASH);
        self.any().deny_publish(subject);
        self.broker.end(self.id, CloseReason::ProtocolViolation);
    }

    /// Delivers a message.
    fn pass_on(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        origin: Origin<'_>,
        from: usize,
    ) {
        let Intake { account, chunk, .. } = *intake;
        let message = Message::published(chunk, publish, from);
        let mut traced = None;
        if publish.header_bytes > 0 && asks_for_trace(chunk, publish, from) {
            let bytes = publish.payload_bytes();
            match self.begin_trace(publish.subject, message.headers(), bytes) {
                Some(trace) => traced = trace,
                None => return,
            }
        }
        let dispatch = Dispatch {
            account,
            subject: publish.subject,
            message: &message,
            origin,
            context: Context {
                trace: traced.as_mut(),
                ..Context::default()
            },
        };
        let split = split_shown(publish.reply);
        (self.broker).dispatch_received(self.id, dispatch, publish, split, &mut intake.memo);
        if let Some(traced) = traced {
            self.broker.end_trace(traced);
        }
    }
}

/// Splits the reply of a stream's delivery into the reply subject and the subject that the subscriber
/// receives. The second part is empty if the subscriber receives the subject of the message.
fn split_shown(reply: &[u8]) -> (&[u8], &[u8]) {
    if !reply.starts_with(STREAM_REPLIES) {
        return (reply, &[]);
    }
    match reply.iter().rposition(|b| *b == b'@') {
        Some(at) if at + 1 < reply.len() => (&reply[..at], &reply[at + 1..]),
        _ => (reply, &[]),
    }
}
