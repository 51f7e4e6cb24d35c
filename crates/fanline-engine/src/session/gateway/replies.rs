//! Responses to requests from other clusters.
//!
//! The reply subject of such a request has a [mark](ReplyMark) if this cluster may not know the requester's
//! interest in it yet. Responders receive the reply subject without its mark. For a while, a message to it is a
//! response: it goes to the requester's cluster alone, under the marked subject.

use std::collections::VecDeque;
use std::time::Duration;

use hashbrown::HashMap;

use super::super::{Broker, Exchange};
use super::GatewayConnections;
use crate::auth::AccountId;
use crate::codec::gateway::ReplyMark;
use crate::codec::nats::args::write_args;
use crate::codec::nats::parse::Publish;
use crate::codec::route::Carries;
use crate::exchange::batch::Notification;
use crate::exchange::message::{Dispatch, Message, Via};
use crate::exchange::remote::{GATEWAY_SHARD, LinkSet, Remote};
use crate::exchange::session::SessionId;
use crate::outbox::Chunk;

/// Time in which a response is sent to the requester's cluster without interest.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// Largest number of requests whose responses are recognized. Responses to further ones need interest.
const REPLIES_MAX: usize = 64 * 1024;

const REMOTE: Remote = Remote::Links(LinkSet::Replies);

/// A reply subject without its mark, for the shard that serves gateways.
#[derive(Clone)]
pub(crate) struct MappedReply {
    account: AccountId,
    reply: Box<[u8]>,
    mark: ReplyMark,
    until: Duration,
}

impl Notification for MappedReply {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.reply.len()
    }
}

/// The mark of each reply subject of an account, and the time at which the subject expires.
type Marks = HashMap<Box<[u8]>, (ReplyMark, Duration)>;

/// The reply subjects of requests from other clusters.
#[derive(Default)]
pub(super) struct Replies {
    accounts: HashMap<AccountId, Marks>,
    /// The subjects in the order in which they expire. A subject may have several entries.
    order: VecDeque<(Duration, AccountId, Box<[u8]>)>,
}

impl Replies {
    fn mark_of(&self, account: AccountId, reply: &[u8]) -> Option<ReplyMark> {
        let (mark, _) = self.accounts.get(&account)?.get(reply)?;
        Some(*mark)
    }

    /// Returns when the next subject expires.
    pub(super) fn next_expiry(&self) -> Option<Duration> {
        self.order.front().map(|(until, ..)| *until)
    }

    /// Removes the next expired subject, if it was not used again in the meantime.
    fn pop_expired(&mut self, now: Duration) -> Option<Option<(AccountId, Box<[u8]>)>> {
        let (_, account, reply) = self.order.pop_front_if(|(until, ..)| *until <= now)?;
        let in_account = self.accounts.get_mut(&account);
        let Some(in_account) = in_account else {
            return Some(None);
        };
        let is_expired = |(_, until): &(ReplyMark, Duration)| *until <= now;
        if !in_account.get(&reply).is_some_and(is_expired) {
            return Some(None);
        }
        in_account.remove(&reply);
        if in_account.is_empty() {
            self.accounts.remove(&account);
        }
        Some(Some((account, reply)))
    }
}

/// A message from another server or cluster, after its marks were removed.
pub(crate) enum Unmarked<'a> {
    /// A message that is delivered.
    Message {
        publish: Publish<'a>,
        /// The mark of its reply subject.
        mark: Option<ReplyMark>,
        /// Whether it is a response of another cluster to a request of this server.
        is_response: bool,
    },
    /// A response to a request of another server of the cluster, which has this mark.
    Elsewhere,
    /// A response that does not belong here.
    Stray,
}

impl Broker {
    /// Removes the marks of a message. Responders may publish to its reply subject from now on.
    #[cold]
    pub(crate) fn unmark<'a>(&mut self, account: AccountId, publish: &Publish<'a>) -> Unmarked<'a> {
        let own = self.exchange.own_mark();
        let mut publish = publish.clone();
        let mut is_response = false;
        if let Some((mark, subject)) = ReplyMark::split(publish.subject) {
            if mark.cluster() != own.cluster() {
                return Unmarked::Stray;
            }
            if mark.server() != own.server() {
                return Unmarked::Elsewhere;
            }
            publish.subject = subject;
            is_response = true;
        }
        let marked = ReplyMark::split(publish.reply);
        if let Some((mark, reply)) = marked {
            publish.reply = reply;
            // The received arguments contain the mark.
            publish.args = 0..0;
            if mark.cluster() != own.cluster() {
                self.exchange.map_reply(account, reply, mark);
            }
        }
        Unmarked::Message {
            publish,
            mark: marked.map(|(mark, _)| mark),
            is_response,
        }
    }

    /// Passes a response from another cluster to the server of the requester.
    #[cold]
    pub(super) fn forward_response(
        &mut self,
        account: AccountId,
        publish: &Publish<'_>,
        (chunk, from): (&Chunk, usize),
    ) {
        let exchange = &mut self.exchange;
        let Some(settings) = exchange.config.routes.clone() else {
            return;
        };
        let name = exchange.access.name_of(account);
        let carries = match settings.slot_of(name) {
            Some(slot) => Carries::Slot(slot),
            None => Carries::Account(String::from_utf8_lossy(name).into_owned()),
        };
        let body = &chunk[from + publish.body.start..from + publish.body.end];
        let mut frame = Vec::new();
        write_args(
            &mut frame,
            publish.reply,
            publish.header_bytes,
            publish.payload_bytes(),
        );
        let args_bytes = frame.len();
        frame.extend_from_slice(body);
        let message = Message::framed(
            &frame,
            args_bytes,
            publish.reply.len(),
            publish.header_bytes,
        );
        let mut dispatch = Dispatch::own(account, publish.subject, &message);
        dispatch.origin.via = Via::Gateway;
        exchange.deliver_to_set(LinkSet::Routes(carries.lane()), &mut dispatch);
    }
}

impl Exchange {
    /// Returns the mark of this server.
    pub(super) fn own_mark(&mut self) -> ReplyMark {
        let (config, info) = (&self.config, &self.info);
        let own = &mut self.shared.gateways.own_mark;
        *own.get_or_insert_with(|| {
            let name = config.gateways.as_ref().map_or("", |own| &own.name);
            ReplyMark::of(name, &info.server_id)
        })
    }

    /// Lets responders publish to the reply subject of a request from another cluster.
    fn map_reply(&mut self, account: AccountId, reply: &[u8], mark: ReplyMark) {
        let until = self.outputs.now + ANSWERED_WITHIN;
        let mapped = MappedReply {
            account,
            reply: reply.into(),
            mark,
            until,
        };
        if self.index == GATEWAY_SHARD {
            return self.record_reply(mapped);
        }
        // The responder's shard must know the interest before the request.
        self.set_reply_interest(account, reply, 1);
        self.outgoing[usize::from(GATEWAY_SHARD)].push_notification(mapped);
    }

    /// Sets the interest in the responses to a request, on all shards.
    fn set_reply_interest(&mut self, account: AccountId, reply: &[u8], weight: u32) {
        let router = self.routers.changing(account);
        router.set_remote(REMOTE, reply, b"", weight);
        self.announce(REMOTE, account, reply, b"", weight);
    }

    /// Records a reply subject on the shard that serves gateways.
    pub(crate) fn record_reply(&mut self, mapped: MappedReply) {
        let MappedReply {
            account,
            reply,
            mark,
            until,
        } = mapped;
        let replies = &mut self.shared.gateways.replies;
        if replies.order.len() >= REPLIES_MAX {
            let is_known = replies.mark_of(account, &reply).is_some();
            if !is_known {
                self.set_reply_interest(account, &reply, 0);
            }
            return;
        }
        let in_account = replies.accounts.entry(account).or_default();
        in_account.insert(reply.clone(), (mark, until));
        replies.order.push_back((until, account, reply.clone()));
        self.set_reply_interest(account, &reply, 1);
    }

    /// Removes expired reply subjects.
    pub(crate) fn expire_replies(&mut self, now: Duration) {
        let is_due = |at: Duration| at <= now;
        if !(self.shared.gateways.next_expiry()).is_some_and(is_due) {
            return;
        }
        while let Some(expired) = self.shared.gateways.replies.pop_expired(now) {
            if let Some((account, reply)) = expired {
                self.set_reply_interest(account, &reply, 0);
            }
        }
        self.announce_to_links();
    }
}

impl GatewayConnections {
    /// Returns the connection that receives a response, and the response's subject there.
    pub(crate) fn reply_link(
        &self,
        account: AccountId,
        reply: &[u8],
    ) -> Option<(SessionId, Vec<u8>)> {
        let mark = self.replies.mark_of(account, reply)?;
        let mut outbound = self.outbound.iter();
        let link = outbound.find(|link| link.hash == mark.cluster())?;
        Some((link.id, [mark.as_bytes(), reply].concat()))
    }

    /// Returns the mark of a request's reply subject, if other clusters may not know the interest in it.
    pub(crate) fn reply_mark(
        &mut self,
        account: AccountId,
        reply: &[u8],
        now: Duration,
    ) -> Option<ReplyMark> {
        let own = self.own_mark?;
        let is_recent = self.recent.matches(account, reply, now);
        is_recent.then_some(own)
    }
}
