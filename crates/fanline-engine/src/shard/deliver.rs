//! From one message to everybody who gets it: the hot path.
//!
//! A delivery is three copies into the subscriber's outbox: `MSG <topic> `, which the route
//! holds, `<sid> `, which the subscription holds, and the rest of the message as it came in.

use std::io::Write;
use std::ops::Range;

use slab::Slab;

use super::crossing::{Batch, Crossing, HOPS_MAX};
use super::session::{Session, SessionId};
use super::{Pending, Shard};
use crate::outbox::{Chunk, Outbox};
use crate::router::{Member, Route, RouteMemo, ShardSet, SubId, Subscriptions};

/// A message without its topic.
pub(super) struct Message<'a> {
    /// Length of the reply topic in `args`, or 0.
    pub(super) reply_bytes: usize,
    /// Bytes of headers at the front of `body`, or 0.
    pub(super) header_bytes: usize,
    /// `[reply ][header_bytes ]total_bytes\r\n`.
    pub(super) args: &'a [u8],
    /// Headers and payload, then CRLF.
    pub(super) body: &'a [u8],
    /// `args` and `body` in one, unless the body is shared.
    pub(super) tail: &'a [u8],
    /// Where the body lies when it is too large to be copied for each subscriber.
    pub(super) shared: Option<(&'a Chunk, Range<usize>)>,
}

impl Message<'_> {
    pub(super) fn payload_bytes(&self) -> usize {
        self.body.len() - 2
    }

    /// Queues the message for a subscriber that understands its headers, if it has any.
    #[inline]
    fn write(&self, out: &mut Outbox, head: &[u8], sid: &[u8]) {
        match &self.shared {
            None => out.append3(head, sid, self.tail),
            Some((chunk, range)) => {
                out.append3(head, sid, self.args);
                out.refer(chunk, range.clone());
            }
        }
    }

    /// Queues the message without its headers.
    fn write_stripped(&self, out: &mut Outbox, head: &[u8], sid: &[u8]) {
        out.append3(head, sid, &self.stripped_args());
        match &self.shared {
            Some((chunk, range)) => out.refer(chunk, range.start + self.header_bytes..range.end),
            None => out.append(&self.body[self.header_bytes..]),
        }
    }

    /// `args` as they are for a subscriber that gets no headers.
    pub(super) fn stripped_args(&self) -> Vec<u8> {
        let mut args = Vec::with_capacity(self.args.len());
        if self.reply_bytes > 0 {
            args.extend_from_slice(&self.args[..=self.reply_bytes]);
        }
        let _ = write!(args, "{}\r\n", self.payload_bytes() - self.header_bytes);
        args
    }
}

/// Who published, as far as a delivery cares.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    pub(super) session: Option<u32>,
    pub(super) echo: bool,
}

impl Origin {
    /// A message from another shard, or from the server itself.
    pub(super) const ELSEWHERE: Origin = Origin {
        session: None,
        echo: true,
    };
}

/// The parts of a shard that a fan-out changes.
struct FanOut<'a> {
    sessions: &'a mut Slab<Session>,
    subs: &'a mut Subscriptions,
    pending: &'a mut Pending,
    origin: Origin,
}

impl FanOut<'_> {
    /// Queues the message for one subscription; false when it cannot get it.
    #[inline]
    fn deliver(&mut self, id: SubId, route: &Route, message: &Message<'_>) -> bool {
        let sub = self.subs.get_mut(id);
        let session = &mut self.sessions[sub.session() as usize];
        if session.ending.is_some()
            || (!self.origin.echo && self.origin.session == Some(sub.session()))
        {
            return false;
        }
        if !session.is_dirty {
            self.pending.mark_dirty(sub.session(), session);
        }
        let before = session.out.pending_bytes();
        let mut payload_bytes = message.payload_bytes();
        if message.header_bytes == 0 {
            message.write(&mut session.out, route.msg_head(), sub.sid_and_space());
        } else if session.takes_headers {
            message.write(&mut session.out, route.hmsg_head(), sub.sid_and_space());
        } else {
            message.write_stripped(&mut session.out, route.msg_head(), sub.sid_and_space());
            payload_bytes -= message.header_bytes;
        }
        session.out_msgs += 1;
        session.out_bytes += payload_bytes as u64;
        let after = session.out.pending_bytes();
        self.pending.produced_bytes += after - before;
        if after > self.pending.congested_bytes {
            self.pending.note_congested(sub.session(), after);
        }
        if self.pending.traces {
            let takes_headers = session.takes_headers;
            self.pending
                .trace_delivery(sub, route, message, takes_headers);
        }
        if sub.count() {
            self.pending.spent.push(id);
        }
        true
    }

    /// Delivers to one of these members, starting at a random one; those that cannot get it are
    /// passed over. Returns the other shard when the message has to go there.
    fn deliver_to_one(
        &mut self,
        members: &[Member],
        route: &Route,
        message: &Message<'_>,
        mut ticket: u32,
    ) -> Picked {
        let holds_ticket = |member: &Member| match ticket.checked_sub(member.weight()) {
            Some(rest) => {
                ticket = rest;
                false
            }
            None => true,
        };
        let start = members.iter().position(holds_ticket).unwrap_or(0);
        for member in members[start..].iter().chain(&members[..start]) {
            match *member {
                Member::Remote { shard, .. } => return Picked::Remote(shard),
                Member::Local(id) if self.deliver(id, route, message) => return Picked::Delivered,
                Member::Local(_) => {}
            }
        }
        Picked::Nobody
    }
}

enum Picked {
    Delivered,
    Remote(u16),
    Nobody,
}

impl Shard {
    /// Gives a message to everybody who wants it, on this shard and beyond. Returns whether there
    /// was anybody.
    #[inline]
    pub(super) fn fan_out(
        &mut self,
        topic: &[u8],
        message: &Message<'_>,
        origin: Origin,
        memo: &mut RouteMemo,
    ) -> bool {
        let Shard {
            router,
            sessions,
            pending,
            random,
            outgoing,
            ..
        } = self;
        let (route, subs) = router.route_and_subs(topic, memo);
        let mut fan_out = FanOut {
            sessions,
            subs,
            pending,
            origin,
        };
        let mut delivered = false;
        for id in &route.plain {
            delivered |= fan_out.deliver(*id, route, message);
        }
        if route.has_groups() || !route.plain_remote.is_empty() {
            let mut remote = RemoteTargets {
                plain: route.plain_remote,
                ..Default::default()
            };
            for (group, members) in route.groups() {
                let ticket = random.below(group.weight);
                match fan_out.deliver_to_one(members, route, message, ticket) {
                    Picked::Delivered => delivered = true,
                    Picked::Remote(shard) => remote.add_group(shard, group.name.as_slice()),
                    Picked::Nobody => {}
                }
            }
            delivered |= remote.post(outgoing, topic, message, 0);
        }
        if !self.pending.spent.is_empty() || self.pending.overflowed {
            self.settle_fan_out();
        }
        delivered
    }

    /// Delivers what another shard passed on: to plain subscriptions here, and to one member here
    /// of each group it was passed on for. When a group's last member here has just left, the
    /// message goes on to where there is one.
    pub(super) fn fan_out_crossing(&mut self, crossing: Crossing<'_>) {
        let mut memo = RouteMemo::default();
        let Crossing {
            topic,
            message,
            plain,
            groups,
            hops,
        } = crossing;
        let Shard {
            router,
            sessions,
            pending,
            random,
            outgoing,
            ..
        } = self;
        let (route, subs) = router.route_and_subs(topic, &mut memo);
        let mut fan_out = FanOut {
            sessions,
            subs,
            pending,
            origin: Origin::ELSEWHERE,
        };
        if plain {
            for id in &route.plain {
                fan_out.deliver(*id, route, &message);
            }
        }
        let mut remote = RemoteTargets::default();
        for name in groups.split(|b| *b == b' ').filter(|name| !name.is_empty()) {
            let Some((_, members)) = route.groups().find(|(g, _)| g.name.as_slice() == name) else {
                continue;
            };
            let is_local = |member: &Member| matches!(member, Member::Local(_));
            let first_remote = members
                .iter()
                .position(|m| !is_local(m))
                .unwrap_or(members.len());
            let local = u32::try_from(first_remote).unwrap_or(u32::MAX);
            let ticket = random.below(local);
            match fan_out.deliver_to_one(&members[..first_remote], route, &message, ticket) {
                Picked::Nobody => {
                    let elsewhere = members[first_remote..].iter().find_map(|m| match m {
                        Member::Remote { shard, .. } => Some(*shard),
                        Member::Local(_) => None,
                    });
                    if let Some(shard) = elsewhere.filter(|_| hops < HOPS_MAX) {
                        remote.add_group(shard, name);
                    }
                }
                Picked::Delivered | Picked::Remote(_) => {}
            }
        }
        remote.post(outgoing, topic, &message, hops + 1);
        self.settle_fan_out();
    }

    /// Ends the subscriptions that had their last message, and the sessions that have too much
    /// waiting.
    fn settle_fan_out(&mut self) {
        while let Some(id) = self.pending.spent.pop() {
            self.drop_subscription(id);
        }
        if std::mem::take(&mut self.pending.overflowed) {
            self.end_overflowed();
        }
    }

    fn end_overflowed(&mut self) {
        let limit = self.config.limits.pending_bytes_max;
        let over: Vec<SessionId> = (self.pending.dirty.iter().copied())
            .filter(|id| self.sessions[id.index()].out.pending_bytes() > limit)
            .collect();
        for id in over {
            self.end(id, crate::CloseReason::SlowConsumerPendingBytes);
        }
    }
}

/// The other shards that get a message.
#[derive(Default)]
struct RemoteTargets {
    plain: ShardSet,
    groups: Vec<(u16, Vec<u8>)>,
}

impl RemoteTargets {
    fn add_group(&mut self, shard: u16, name: &[u8]) {
        let at = self
            .groups
            .iter()
            .position(|(s, _)| *s == shard)
            .unwrap_or_else(|| {
                self.groups.push((shard, Vec::new()));
                self.groups.len() - 1
            });
        self.groups[at].1.extend_from_slice(name);
        self.groups[at].1.push(b' ');
    }

    /// Puts the message into the batch of each shard once. Returns whether there was any.
    fn post(self, outgoing: &mut [Batch], topic: &[u8], message: &Message<'_>, hops: u8) -> bool {
        let mut put = |shard: u16, plain: bool, groups: &[u8]| {
            let message = Message {
                shared: message
                    .shared
                    .as_ref()
                    .map(|(chunk, range)| (*chunk, range.clone())),
                ..*message
            };
            let crossing = Crossing {
                topic,
                message,
                plain,
                groups,
                hops,
            };
            outgoing[usize::from(shard)].push_message(&crossing);
        };
        for (shard, groups) in &self.groups {
            put(*shard, self.plain.contains(*shard), groups);
        }
        let with_groups = |shard| self.groups.iter().any(|(s, _)| *s == shard);
        for shard in self.plain.iter().filter(|shard| !with_groups(*shard)) {
            put(shard, true, b"");
        }
        !self.plain.is_empty() || !self.groups.is_empty()
    }
}
