//! Input of routes.

use std::ops::Range;
use std::time::Duration;

use super::super::Broker;
use super::super::Receipt;
use super::super::gateway::Unmarked;
use super::super::publish::asks_for_trace;
use super::RouteSession;
use super::state::Phase;
use crate::auth::AccountId;
use crate::codec::gateway::{ReplyMark, has_mark};
use crate::codec::nats::error::CloseReason;
use crate::codec::nats::parse::Publish;
use crate::codec::route::parse::{RouteMessage, RouteParsed, RouteVerb, parse_route};
use crate::exchange::message::{Context, Dispatch, Message, Origin, Via};
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::router::RouteMemo;
use crate::exchange::run::Intake;
use crate::exchange::session::SessionId;
use crate::exchange::text::text;
use crate::exchange::tracing::Traced;
use crate::outbox::Chunk;

/// Prefix of the reply subjects of messages that a stream delivers.
const STREAM_REPLIES: &[u8] = b"$JS.ACK.";

/// Number of dots in the reply subject of a stream's delivery before the subject that follows it.
const STREAM_REPLY_DOTS: usize = 8;

/// The account of the messages of an intake, by its name in their lines.
#[derive(Default)]
struct Place<'a> {
    name: &'a [u8],
    is_known: bool,
}

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
                    self.broker.exchange.end_run(&intake);
                    self.broker.end_intake(&intake);
                    self.handle(&verb, now);
                    intake = self.begin_intake(chunk);
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

    /// Handles a verb other than a message.
    fn handle(&mut self, verb: &RouteVerb<'_>, now: Duration) {
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
            RouteVerb::Subscribe(interest) => self.subscribe(interest),
            RouteVerb::Unsubscribe(interest) => self.unsubscribe(interest),
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
            self.enter_account(intake, place, message.account);
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
        if place.is_known
            && groups.is_empty()
            && origin.is_empty()
            && (self.broker.exchange).coalesce(intake, publish, from, requests_trace || is_marked)
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
        let mut arrival = Arrival {
            cluster: origin,
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
        let headers = &chunk[from + publish.body.start..][..publish.header_bytes];
        let mut traced = (requests_trace)
            .then(|| self.begin_trace(account, publish, headers))
            .flatten();
        (self.broker).deliver_arrival(self.id, intake, &arrival, from, traced.as_mut());
        if let Some(traced) = traced {
            self.broker.end_trace(traced);
        }
    }

    /// Continues an intake with the messages of another account.
    fn enter_account<'a>(&self, intake: &mut Intake<'a>, place: &mut Place<'a>, name: &'a [u8]) {
        let account = self.broker.routed_account(name);
        *place = Place {
            name,
            is_known: account.is_some(),
        };
        intake.memo = RouteMemo::default();
        intake.account = account.unwrap_or(intake.account);
    }
}

/// A message of another server or cluster.
pub(crate) struct Arrival<'a> {
    pub(crate) publish: Publish<'a>,
    /// Names of the only groups that may receive the message, separated by spaces; `None` allows all.
    pub(crate) groups: Option<&'a [u8]>,
    /// The cluster of the leaf node that has sent the message, if the peer has named it.
    pub(crate) cluster: &'a [u8],
    /// The mark that the reply subject had.
    pub(crate) mark: Option<ReplyMark>,
}

impl<'a> Arrival<'a> {
    pub(crate) fn new(publish: &Publish<'a>, groups: Option<&'a [u8]>) -> Self {
        Arrival {
            publish: publish.clone(),
            groups,
            cluster: b"",
            mark: None,
        }
    }
}

impl Broker {
    /// Returns whether an account has a router. Without one it has no subscriber, because interest creates it.
    fn has_router(&self, account: AccountId) -> bool {
        account.index() < self.exchange.routers.len()
    }

    /// Returns the account of this name, if it has a router.
    pub(crate) fn routed_account(&self, name: &[u8]) -> Option<AccountId> {
        let name = std::str::from_utf8(name).ok()?;
        let account = self.exchange.access.account_id(name);
        account.filter(|account| self.has_router(*account))
    }

    /// Delivers a message of another server or cluster. `from` is the offset of its verb in the chunk.
    pub(crate) fn deliver_arrival(
        &mut self,
        id: SessionId,
        intake: &mut Intake<'_>,
        arrival: &Arrival<'_>,
        from: usize,
        trace: Option<&mut Traced>,
    ) {
        let Intake { account, chunk, .. } = *intake;
        let publish = &arrival.publish;
        let mut message = Message::published(chunk, publish, from);
        let mark = arrival.mark.as_ref();
        message.mark = mark.map_or(&[], ReplyMark::as_bytes);
        let (reply, shown) = split_shown(publish.reply);
        let mut head = Vec::new();
        if !shown.is_empty() {
            head = [b"HMSG ", shown, b" "].concat();
        }
        message.head = &head;
        let mut dispatch = Dispatch {
            account,
            subject: publish.subject,
            message: &message,
            origin: Origin {
                groups: arrival.groups,
                cluster: arrival.cluster,
                ..intake.origin
            },
            context: Context {
                trace,
                ..Context::default()
            },
        };
        let memo = &mut intake.memo;
        if publish.args.is_empty() || !shown.is_empty() {
            // The received arguments cannot be forwarded: subscribers receive another form.
            let publish = Publish {
                reply,
                ..publish.clone()
            };
            self.any(id).dispatch_rewritten(dispatch, &publish, memo);
        } else {
            self.dispatch(&mut dispatch, memo);
        }
    }
}

/// Splits the reply of a stream's delivery into the reply subject and the subject that the subscriber
/// receives. The second part is empty if the subscriber receives the subject of the message. Names in the reply
/// may contain `@`, so only one after all tokens of the reply counts.
fn split_shown(reply: &[u8]) -> (&[u8], &[u8]) {
    if !reply.starts_with(STREAM_REPLIES) {
        return (reply, &[]);
    }
    let mut dots = 0;
    let at = reply.iter().position(|byte| {
        dots += usize::from(*byte == b'.');
        dots >= STREAM_REPLY_DOTS && *byte == b'@'
    });
    match at {
        Some(at) if at + 1 < reply.len() => (&reply[..at], &reply[at + 1..]),
        _ => (reply, &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_subject_follows_all_tokens_of_the_reply() {
        for (reply, expected) in [
            ("in.1@a", ("in.1@a", "")),
            (
                "$JS.ACK.s.c.1.2.3.4.5@a.b",
                ("$JS.ACK.s.c.1.2.3.4.5", "a.b"),
            ),
            (
                "$JS.ACK.s@x.c.1.2.3.4.5@a",
                ("$JS.ACK.s@x.c.1.2.3.4.5", "a"),
            ),
            ("$JS.ACK.s@x.c.1.2.3.4.5", ("$JS.ACK.s@x.c.1.2.3.4.5", "")),
            ("$JS.ACK.s.c.1.2.3.4.5@", ("$JS.ACK.s.c.1.2.3.4.5@", "")),
        ] {
            let (reply, shown) = split_shown(reply.as_bytes());
            let found = (text(reply), text(shown));
            assert_eq!(found, (expected.0.into(), expected.1.into()));
        }
    }
}
