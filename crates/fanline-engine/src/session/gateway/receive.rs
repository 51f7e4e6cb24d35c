//! Input of gateway connections.

use std::ops::Range;
use std::time::Duration;

use super::super::Receipt;
use super::super::publish::asks_for_trace;
use super::GatewaySession;
use super::Unmarked;
use super::state::Phase;
use crate::codec::gateway::has_mark;
use crate::codec::nats::error::CloseReason;
use crate::codec::route::parse::{RouteMessage, RouteParsed, RouteVerb, parse_route};
use crate::exchange::message::Via;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::router::{RouteMemo, is_measured};
use crate::exchange::run::Intake;
use crate::exchange::text::text;
use crate::outbox::Chunk;
use crate::session::arrival::{Arrival, Place};

impl GatewaySession<'_> {
    /// Handles input; see [`Shard::receive`](crate::Shard::receive).
    pub(crate) fn receive(&mut self, chunk: &Chunk, range: Range<usize>, now: Duration) -> Receipt {
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        self.broker.begin_input(self.id, now);
        let mut intake = self.begin_intake(chunk);
        let mut place = Place::default();
        while receipt.consumed < input.len() {
            if self.session().ending.is_some() {
                receipt.consumed = input.len();
                break;
            }
            let from = range.start + receipt.consumed;
            match parse_route(&input[receipt.consumed..], false) {
                RouteParsed::Verb(RouteVerb::Message(message), taken) => {
                    self.message(&mut intake, &mut place, &message, from);
                    receipt.consumed += taken;
                }
                RouteParsed::Verb(verb, taken) => {
                    self.broker.exchange.end_run(&intake);
                    self.broker.end_intake(&intake);
                    self.handle(&verb, now);
                    intake = self.begin_intake(chunk);
                    place = Place::default();
                    receipt.consumed += taken;
                }
                RouteParsed::Partial { frame_bytes } => {
                    receipt.frame_bytes = frame_bytes;
                    break;
                }
                RouteParsed::Wrong(fault) => self.broker.refuse(self.id, fault.error, fault.reason),
            }
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.end_input(&intake, &mut receipt);
        receipt
    }

    /// Handles a verb other than a message.
    fn handle(&mut self, verb: &RouteVerb<'_>, now: Duration) {
        let is_first = matches!(verb, RouteVerb::Connect(_) | RouteVerb::Error(_));
        if self.state().phase == Phase::Connecting && !is_first {
            return self.broker.any(self.id).refuse_credentials();
        }
        match verb {
            RouteVerb::Connect(json) => self.connect(json),
            RouteVerb::Info(json) => self.info(json),
            RouteVerb::Error(error) => self.handle_error(error),
            RouteVerb::Ping => self.broker.exchange.send(self.id, b"PONG\r\n"),
            RouteVerb::Pong => self.broker.any(self.id).pong(now),
            RouteVerb::Ok | RouteVerb::Message(_) => {}
            RouteVerb::Subscribe(_) | RouteVerb::Unsubscribe(_) | RouteVerb::Account { .. }
                if !self.state().is_ready() =>
            {
                self.broker.end(self.id, CloseReason::ProtocolViolation);
            }
            RouteVerb::Subscribe(_) if !self.state().is_dialed() => {
                self.end_as_violation("Received RS+ from gateway on inbound connection");
            }
            RouteVerb::Unsubscribe(_) if !self.state().is_dialed() => {
                self.end_as_violation("Received RS- from gateway on inbound connection");
            }
            RouteVerb::Account { .. } if !self.state().is_dialed() => {
                self.end_as_violation("Received A+ or A- from gateway on inbound connection");
            }
            RouteVerb::Subscribe(interest) | RouteVerb::Unsubscribe(interest)
                if !interest.origin.is_empty() =>
            {
                self.broker.end(self.id, CloseReason::ProtocolViolation);
            }
            RouteVerb::Subscribe(interest) => self.subscribe(interest),
            RouteVerb::Unsubscribe(interest) => self.unsubscribe(interest),
            RouteVerb::Account { account, is_wanted } => self.set_account(account, *is_wanted),
        }
    }

    /// Handles an error: the peer closes the connection.
    fn handle_error(&mut self, error: &[u8]) {
        let error = text(error);
        let outputs = &mut self.broker.exchange.outputs;
        outputs.notice(self.id, || format!("Gateway Error '{error}'"));
        self.state_mut().complaint = Some(error);
        self.broker.end(self.id, CloseReason::ParseError);
    }

    /// Begins an intake, which holds the values that the connection's messages share until it sends another
    /// verb.
    fn begin_intake<'a>(&self, chunk: &'a Chunk) -> Intake<'a> {
        let mut intake = self.broker.begin_intake(self.id, chunk);
        intake.origin.echo = false;
        intake.origin.via = Via::Gateway;
        intake.is_admitted = self.state().is_ready() && !self.state().is_dialed();
        intake.is_restricted = false;
        // The server of the publisher has applied its mappings.
        intake.is_mapped = false;
        intake.may_run = intake.is_admitted && !self.broker.exchange.outputs.traces;
        // Each account has its own cached route.
        intake.memo = RouteMemo::default();
        intake
    }

    /// Handles a message. `from` is the offset of its verb in the chunk.
    fn message<'a>(
        &mut self,
        intake: &mut Intake<'a>,
        place: &mut Place<'a>,
        message: &RouteMessage<'a>,
        from: usize,
    ) {
        if message.account != place.name {
            self.broker.exchange.end_run(intake);
            self.broker.enter_account(intake, place, message.account);
        }
        let RouteMessage {
            publish, groups, ..
        } = message;
        let chunk = intake.chunk;
        let requests_trace = publish.header_bytes > 0 && asks_for_trace(chunk, publish, from);
        let is_marked = has_mark(publish);
        let is_special = requests_trace || is_marked || is_measured(publish.reply);
        if place.is_known
            && groups.is_empty()
            && (self.broker.exchange).coalesce(intake, publish, from, is_special)
        {
            return intake.count(publish);
        }
        self.broker.exchange.end_run(intake);
        if !intake.is_admitted || !message.origin.is_empty() {
            return match self.state().phase {
                Phase::Connecting => self.broker.any(self.id).refuse_credentials(),
                _ => self.broker.end(self.id, CloseReason::ProtocolViolation),
            };
        }
        intake.count(publish);
        // Messages of an account that does not exist here have no subscriber.
        if !place.is_known {
            return;
        }
        let account = intake.account;
        let mut arrival = Arrival::new(publish, Some(groups));
        if is_marked {
            match self.broker.unmark(account, publish) {
                Unmarked::Message {
                    publish,
                    mark,
                    is_response,
                } => {
                    arrival.publish = publish;
                    arrival.mark = mark;
                    arrival.groups = (!is_response).then_some(groups);
                }
                Unmarked::Elsewhere => {
                    return self
                        .broker
                        .forward_response(account, publish, (chunk, from));
                }
                Unmarked::Stray => return,
            }
        }
        let traced = requests_trace.then_some(publish);
        (self.broker).deliver_arrival(self.id, intake, &arrival, from, traced);
    }
}
