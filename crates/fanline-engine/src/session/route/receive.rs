//! Input of routes.

use std::ops::Range;
use std::time::Duration;

use super::super::Receipt;
use super::super::arrival::{Arrival, Place};
use super::super::gateway::Unmarked;
use super::super::publish::asks_for_trace;
use super::RouteSession;
use super::interest::NamedAccount;
use super::state::Phase;
use crate::codec::gateway::has_mark;
use crate::codec::nats::error::CloseReason;
use crate::codec::route::parse::{RouteMessage, RouteParsed, RouteVerb, parse_route};
use crate::codec::route::split_passed_on;
use crate::exchange::message::Via;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::router::{RouteMemo, is_measured};
use crate::exchange::run::Intake;
use crate::exchange::text::text;
use crate::outbox::Chunk;

impl RouteSession<'_> {
    /// Handles input; see [`Shard::receive`](crate::Shard::receive).
    pub(crate) fn receive(&mut self, chunk: &Chunk, range: Range<usize>, now: Duration) -> Receipt {
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        let rtt_before = self.session().rtt;
        self.broker.begin_input(self.id, now);
        let mut intake = self.begin_intake(chunk);
        let mut place = self.begin_place(&mut intake);
        let rights = self.state().rights.clone();
        let mut named = NamedAccount::default();
        while receipt.consumed < input.len() {
            if self.session().ending.is_some() {
                receipt.consumed = input.len();
                break;
            }
            let rest = &input[receipt.consumed..];
            let from = range.start + receipt.consumed;
            match parse_route(rest, self.state().dedicated_to.is_some()) {
                RouteParsed::Verb(RouteVerb::Message(message), taken)
                    if (rights.as_ref())
                        .is_some_and(|rights| !rights.may_publish(message.publish.subject)) =>
                {
                    intake.count(&message.publish);
                    receipt.consumed += taken;
                }
                RouteParsed::Verb(RouteVerb::Message(message), taken) => {
                    self.message(&mut intake, &mut place, &message, from);
                    receipt.consumed += taken;
                }
                RouteParsed::Verb(verb, taken) => {
                    // Interest changes nothing in an intake without messages, and may be millions of lines.
                    let stays = intake.msgs == 0 && self.is_interest(&verb);
                    if !stays {
                        self.broker.exchange.end_run(&intake);
                        self.broker.end_intake(&intake);
                    }
                    self.handle(&verb, &mut named, now);
                    if !stays {
                        intake = self.begin_intake(chunk);
                    }
                    place = self.begin_place(&mut intake);
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
        receipt.was_measured = self.session().rtt != rtt_before;
        receipt
    }

    /// Returns whether a verb is interest that the peer may announce now.
    fn is_interest(&self, verb: &RouteVerb<'_>) -> bool {
        matches!(verb, RouteVerb::Subscribe(_) | RouteVerb::Unsubscribe(_))
            && self.state().is_ready()
    }

    /// Handles a verb other than a message. `named` belongs to the same input.
    fn handle<'a>(&mut self, verb: &RouteVerb<'a>, named: &mut NamedAccount<'a>, now: Duration) {
        if self.state().phase == Phase::Connecting && !matches!(verb, RouteVerb::Connect(_)) {
            return self.broker.any(self.id).refuse_credentials();
        }
        match verb {
            RouteVerb::Connect(json) => self.connect(json),
            RouteVerb::Info(json) => self.info(json),
            RouteVerb::Error(error) => self.handle_error(error),
            RouteVerb::Ping => self.broker.exchange.send(self.id, b"PONG\r\n"),
            RouteVerb::Pong => {
                self.broker.any(self.id).pong(now);
                self.prove();
            }
            RouteVerb::Ok | RouteVerb::Account { .. } | RouteVerb::Message(_) => {}
            RouteVerb::Subscribe(_) | RouteVerb::Unsubscribe(_) if !self.state().is_ready() => {
                self.broker.end(self.id, CloseReason::ProtocolViolation);
            }
            RouteVerb::Subscribe(interest) => self.subscribe(interest, named),
            RouteVerb::Unsubscribe(interest) => self.unsubscribe(interest, named),
        }
    }

    /// Handles an error: the peer closes the connection.
    fn handle_error(&mut self, error: &[u8]) {
        let error = text(error);
        let outputs = &mut self.broker.exchange.outputs;
        outputs.notice(self.id, || format!("Route Error '{error}'"));
        self.state_mut().complaint = Some(error);
        self.broker.end(self.id, CloseReason::ParseError);
    }

    /// Begins an intake, which holds the values that the connection's messages share until it sends another
    /// verb.
    fn begin_intake<'a>(&self, chunk: &'a Chunk) -> Intake<'a> {
        let mut intake = self.broker.begin_intake(self.id, chunk);
        intake.origin.echo = false;
        intake.origin.via = Via::Route;
        intake.is_admitted = self.state().is_ready();
        intake.is_restricted = false;
        // The server of the publisher has applied its mappings.
        intake.is_mapped = false;
        intake.may_run = intake.is_admitted && !self.broker.exchange.outputs.traces;
        // Each account has its own cached route.
        intake.memo = RouteMemo::default();
        intake
    }

    /// Begins with the messages of the account of a dedicated route, or of no account.
    fn begin_place(&self, intake: &mut Intake<'_>) -> Place<'static> {
        let account = self.state().dedicated_to;
        intake.account = account.unwrap_or(intake.account);
        Place {
            name: b"",
            is_known: account.is_some_and(|account| self.broker.has_router(account)),
        }
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
            origin,
            publish,
            groups,
            ..
        } = message;
        let chunk = intake.chunk;
        let requests_trace = publish.header_bytes > 0 && asks_for_trace(chunk, publish, from);
        let is_marked = self.broker.exchange.config.gateways.is_some() && has_mark(publish);
        let is_special = requests_trace || is_marked || is_measured(publish.reply);
        if place.is_known
            && groups.is_empty()
            && origin.is_empty()
            && (self.broker.exchange).coalesce(intake, publish, from, is_special)
        {
            return intake.count(publish);
        }
        self.broker.exchange.end_run(intake);
        if !intake.is_admitted {
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
        let (groups, passed_on) = match self.state().info.passed_on {
            true => split_passed_on(groups),
            false => (*groups, 0),
        };
        let mut arrival = Arrival {
            cluster: origin,
            passed_on,
            ..Arrival::new(publish, Some(groups))
        };
        if is_marked {
            // Without another mark, because no route leads on.
            match self.broker.unmark(account, publish) {
                Unmarked::Message {
                    publish,
                    is_response,
                    ..
                } => {
                    arrival.publish = publish;
                    arrival.groups = (!is_response).then_some(groups);
                }
                Unmarked::Elsewhere | Unmarked::Stray => return,
            }
        }
        let traced = requests_trace.then_some(publish);
        (self.broker).deliver_arrival(self.id, intake, &arrival, from, traced);
    }
}
