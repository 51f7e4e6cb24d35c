//! Messages of other servers and clusters, from their lines to their delivery.

use super::Broker;
use crate::auth::AccountId;
use crate::codec::gateway::ReplyMark;
use crate::codec::nats::parse::Publish;
use crate::exchange::batch::{HOPS_MAX, MAY_LEAVE};
use crate::exchange::deliver::next_hop;
use crate::exchange::message::{Context, Dispatch, Message, Origin, Via};
use crate::exchange::router::{RouteMemo, is_measured};
use crate::exchange::run::Intake;
use crate::exchange::session::SessionId;
use crate::exchange::tracing::Traced;

/// Prefix of the reply subjects of messages that a stream delivers.
const STREAM_REPLIES: &[u8] = b"$JS.ACK.";

/// Number of dots in the reply subject of a stream's delivery before the subject that follows it.
const STREAM_REPLY_DOTS: usize = 8;

/// The account of the messages of an intake, by its name in their lines.
#[derive(Default)]
pub(super) struct Place<'a> {
    pub(super) name: &'a [u8],
    pub(super) is_known: bool,
}

/// A message of another server or cluster.
pub(super) struct Arrival<'a> {
    pub(super) publish: Publish<'a>,
    /// Names of the only groups that may receive the message, separated by spaces; `None` allows all.
    pub(super) groups: Option<&'a [u8]>,
    /// The cluster of the leaf node that has sent the message, if the peer has named it.
    pub(super) cluster: &'a [u8],
    /// The mark that the reply subject had.
    pub(super) mark: Option<ReplyMark>,
    /// How often other servers have passed the message on, because members of its groups had left.
    pub(super) passed_on: u8,
}

impl<'a> Arrival<'a> {
    pub(super) fn new(publish: &Publish<'a>, groups: Option<&'a [u8]>) -> Self {
        Arrival {
            publish: publish.clone(),
            groups,
            cluster: b"",
            mark: None,
            passed_on: 0,
        }
    }
}

impl Broker {
    /// Returns whether an account has a router. Without one it has no subscriber, because interest creates it.
    pub(super) fn has_router(&self, account: AccountId) -> bool {
        account.index() < self.exchange.routers.len()
    }

    /// Continues an intake with the messages of another account.
    pub(super) fn enter_account<'a>(
        &self,
        intake: &mut Intake<'a>,
        place: &mut Place<'a>,
        name: &'a [u8],
    ) {
        let account = std::str::from_utf8(name).ok();
        let account = account.and_then(|name| self.exchange.access.account_id(name));
        let account = account.filter(|account| self.has_router(*account));
        *place = Place {
            name,
            is_known: account.is_some(),
        };
        intake.memo = RouteMemo::default();
        intake.account = account.unwrap_or(intake.account);
    }

    /// Delivers a message of another server or cluster. `from` is the offset of its verb in the chunk. `traced` is the
    /// message as it was received if it requests a trace.
    pub(super) fn deliver_arrival(
        &mut self,
        id: SessionId,
        intake: &mut Intake<'_>,
        arrival: &Arrival<'_>,
        from: usize,
        traced: Option<&Publish<'_>>,
    ) {
        let Some(received) = traced else {
            return self.dispatch_arrival(id, intake, arrival, from, None);
        };
        let headers = &intake.chunk[from + received.body.start..][..received.header_bytes];
        let mut traced = self.trace_arrival(id, intake.account, received, headers);
        self.dispatch_arrival(id, intake, arrival, from, traced.as_mut());
        if let Some(traced) = traced {
            self.end_trace(traced);
        }
    }

    fn dispatch_arrival(
        &mut self,
        id: SessionId,
        intake: &mut Intake<'_>,
        arrival: &Arrival<'_>,
        from: usize,
        trace: Option<&mut Traced>,
    ) {
        let Intake { account, chunk, .. } = *intake;
        let publish = &arrival.publish;
        if is_measured(publish.reply) {
            self.receive_measured(publish.reply);
        }
        let mut message = Message::published(chunk, publish, from);
        let mark = arrival.mark.as_ref();
        message.mark = mark.map_or(&[], ReplyMark::as_bytes);
        let dispatch = Dispatch {
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
                hops: match intake.origin.via {
                    Via::Route => next_hop(arrival.passed_on.min(HOPS_MAX) | MAY_LEAVE),
                    _ => 0,
                },
                is_passed_on: arrival.passed_on > 0,
                ..Context::default()
            },
        };
        let split = split_shown(publish.reply);
        self.dispatch_received(id, dispatch, publish, split, &mut intake.memo);
    }

    /// Delivers a message of another server. `reply` is its reply subject, and `shown` the subject that subscribers
    /// receive; empty if that is the subject of the message.
    pub(super) fn dispatch_received(
        &mut self,
        id: SessionId,
        mut dispatch: Dispatch<'_>,
        publish: &Publish<'_>,
        (reply, shown): (&[u8], &[u8]),
        memo: &mut RouteMemo,
    ) {
        if shown.is_empty() && !publish.args.is_empty() {
            self.dispatch(&mut dispatch, memo);
            return;
        }
        // The received arguments cannot be forwarded: subscribers receive another form.
        let publish = Publish {
            reply,
            ..publish.clone()
        };
        let head = match shown {
            [] => Vec::new(),
            _ => [b"HMSG ", shown, b" "].concat(),
        };
        let before = dispatch.message;
        let message = Message {
            head: &head,
            shared: (before.shared.as_ref()).map(|(chunk, range)| (*chunk, range.clone())),
            ..*before
        };
        let dispatch = Dispatch {
            message: &message,
            ..dispatch
        };
        self.any(id).dispatch_rewritten(dispatch, &publish, memo);
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
    use crate::exchange::text::text;

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
