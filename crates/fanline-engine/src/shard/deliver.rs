//! From one message to everybody who gets it: the hot path.
//!
//! A delivery is three copies into the subscriber's outbox: `MSG <topic> `, which the route
//! holds, `<sid> `, which the subscription holds, and the rest of the message as it came in.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

use slab::Slab;

use super::crossing::{Batch, Crossing, HOPS_MAX, TRACED};
use super::mqtt::is_own_of_mqtt;
use super::run::Waiting;
use super::session::{Session, SessionId};
use super::{Exchange, Pending, Random, Shard};
use crate::auth::AccountId;
use crate::codec::leaf::LEAF_SHARD;
use crate::exchange::router::{
    LEAFS, Member, Route, RouteMemo, ShardSet, SubId, Subscription, Subscriptions,
};
use crate::outbox::{Chunk, Outbox};

/// A message without its topic.
pub(super) struct Message<'a> {
    /// `HMSG <topic> ` when subscribers are to read another topic than the one by which they are
    /// found; else empty.
    pub(super) head: &'a [u8],
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

    /// `HMSG <topic> ` as subscribers read it.
    #[inline]
    pub(super) fn hmsg_head<'a>(&'a self, route: &'a Route) -> &'a [u8] {
        match self.head {
            [] => route.hmsg_head(),
            head => head,
        }
    }

    /// The same without the first letter.
    #[inline]
    pub(super) fn msg_head<'a>(&'a self, route: &'a Route) -> &'a [u8] {
        &self.hmsg_head(route)[1..]
    }

    /// Queues the message for a subscriber that understands its headers, if it has any.
    #[inline]
    pub(super) fn write(&self, out: &mut Outbox, head: &[u8], sid: &[u8]) {
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
        let reply_and_space = match self.reply_bytes {
            0 => &[],
            reply_bytes => &self.args[..=reply_bytes],
        };
        out.append3(head, sid, reply_and_space);
        let mut digits = [0; 24];
        let mut rest = &mut digits[..];
        // A size has twenty digits at the most.
        let _ = write!(rest, "{}\r\n", self.payload_bytes() - self.header_bytes);
        let unused = rest.len();
        out.append(&digits[..digits.len() - unused]);
        match &self.shared {
            Some((chunk, range)) => out.refer(chunk, range.start + self.header_bytes..range.end),
            None => out.append(&self.body[self.header_bytes..]),
        }
    }

    /// `args` as they are for a subscriber that gets no headers, for a trace.
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
pub(super) struct Origin<'a> {
    pub(super) session: Option<u32>,
    pub(super) echo: bool,
    /// The names of the only groups that it is for, parted by blanks; all are when `None`.
    pub(super) groups: Option<&'a [u8]>,
}

impl Origin<'_> {
    /// A message from another shard, or from the server itself.
    pub(super) const ELSEWHERE: Origin<'static> = Origin {
        session: None,
        echo: true,
        groups: None,
    };

    /// Whether a group may have it.
    #[inline]
    fn is_for(self, group: &[u8]) -> bool {
        let is_it = |names: &[u8]| names.split(|b| *b == b' ').any(|name| name == group);
        self.groups.is_none_or(is_it)
    }

    /// Whether a session gets what was published: not when it ends, nor when it is the publisher
    /// and wants no echo.
    #[inline]
    fn reaches(self, id: u32, session: &Session) -> bool {
        session.ending.is_none() && (self.echo || self.session != Some(id))
    }
}

/// The parts of a shard that a fan-out changes.
pub(super) struct FanOut<'a> {
    pub(super) sessions: &'a mut Slab<Session>,
    pub(super) subs: &'a mut Subscriptions,
    pub(super) pending: &'a mut Pending,
    pub(super) origin: Origin<'a>,
}

impl FanOut<'_> {
    /// Queues the message for one subscription; false when it cannot get it.
    #[inline]
    fn deliver(&mut self, id: SubId, route: &Route, message: &Message<'_>) -> bool {
        if self.pending.watches
            && let Some(delivered) = self.watch(id, route, message)
        {
            return delivered;
        }
        let sub = self.subs.get_mut(id);
        let session = &mut self.sessions[sub.session() as usize];
        if !self.origin.reaches(sub.session(), session) {
            return false;
        }
        if sub.is_filtered() {
            if !passes(session, sub, route, message.head) {
                return false;
            }
            if session.mqtt.is_some() {
                return self.deliver_mqtt(id, route, message);
            }
        }
        if message.reply_bytes > 0
            && let Some(restriction) = &mut session.restriction
        {
            restriction.note_reply(&message.args[..message.reply_bytes], self.pending.now);
        }
        self.pending.mark_dirty(sub.session(), session);
        let before = session.out.pending_bytes();
        let mut payload_bytes = message.payload_bytes();
        if message.header_bytes == 0 {
            message.write(
                &mut session.out,
                message.msg_head(route),
                sub.sid_and_space(),
            );
        } else if session.takes_headers {
            message.write(
                &mut session.out,
                message.hmsg_head(route),
                sub.sid_and_space(),
            );
        } else {
            message.write_stripped(
                &mut session.out,
                message.msg_head(route),
                sub.sid_and_space(),
            );
            payload_bytes -= message.header_bytes;
        }
        session.out_msgs += 1;
        session.out_bytes += payload_bytes as u64;
        self.pending.count_produced(sub.session(), session, before);
        if sub.count() {
            self.pending.spent.push(id);
        }
        true
    }

    /// Whether a subscription gets a message at all.
    pub(super) fn may_deliver(&self, id: SubId, route: &Route, message: &Message<'_>) -> bool {
        let sub = self.subs.get(id);
        let session = &self.sessions[sub.session() as usize];
        self.origin.reaches(sub.session(), session)
            && (!sub.is_filtered() || passes(session, sub, route, message.head))
    }

    /// What a message begins to cross with.
    #[inline]
    fn first_hop(&mut self, account: AccountId, crossings: &mut RemoteTargets) -> u8 {
        let bits = self.pending.origin_bits;
        match self.pending.watches {
            false => bits,
            true => bits | self.pending.watch_crossing(account, crossings),
        }
    }

    /// Queues several messages without headers for one subscription, until it has had all that it
    /// wants.
    #[inline]
    pub(super) fn deliver_run(&mut self, id: SubId, route: &Route, chunk: &Chunk, run: &[Waiting]) {
        let sub = self.subs.get_mut(id);
        let session = &mut self.sessions[sub.session() as usize];
        if !self.origin.reaches(sub.session(), session) {
            return;
        }
        if sub.is_filtered() {
            if !passes(session, sub, route, &[]) {
                return;
            }
            if session.mqtt.is_some() {
                return self.deliver_run_mqtt(id, route, chunk, run);
            }
        }
        self.pending.mark_dirty(sub.session(), session);
        let before = session.out.pending_bytes();
        for waiting in run {
            let tail = &chunk[waiting.tail.clone()];
            session
                .out
                .append3(route.msg_head(), sub.sid_and_space(), tail);
            session.out_msgs += 1;
            session.out_bytes += waiting.payload_bytes;
            if sub.count() {
                self.pending.spent.push(id);
                break;
            }
        }
        self.pending.count_produced(sub.session(), session, before);
    }

    /// Delivers to one member of each group; those on other shards are noted in `crossings`.
    #[inline]
    fn deliver_to_groups(
        &mut self,
        route: &Route,
        message: &Message<'_>,
        random: &mut Random,
        crossings: &mut RemoteTargets,
        is_served: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let mut delivered = false;
        for (group, members) in route.groups() {
            let name = group.name.as_slice();
            if is_served(name) {
                continue;
            }
            let ticket = random.below(group.weight);
            match self.deliver_to_one(members, route, message, ticket) {
                Picked::Delivered => delivered = true,
                Picked::Remote(shard) => crossings.add_group(shard, name),
                Picked::Nobody => {}
            }
        }
        delivered
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

/// Whether a client may have a message that its subscription matches: neither the topic by which it
/// is found may be denied to it, nor the one that it is shown, if that is another.
fn passes(session: &Session, sub: &Subscription, route: &Route, head: &[u8]) -> bool {
    let Some(restriction) = &session.restriction else {
        return true;
    };
    if session.mqtt.is_some() && is_own_of_mqtt(sub.sid()) {
        return true;
    }
    let topic = |head: &[u8]| {
        let head = head.strip_prefix(b"HMSG ").unwrap_or_default();
        let topic = head.strip_suffix(b" ").unwrap_or_default();
        restriction.may_receive(topic, sub.queue())
    };
    topic(route.hmsg_head()) && (head.is_empty() || topic(head))
}

enum Picked {
    Delivered,
    Remote(u16),
    Nobody,
}

impl Shard {
    /// Gives a message to everybody in an account who wants it, on this shard and beyond. Returns
    /// whether there was anybody.
    #[inline]
    pub(super) fn fan_out(
        &mut self,
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        origin: Origin<'_>,
        memo: &mut RouteMemo,
    ) -> bool {
        let Shard {
            bridging,
            exchange:
                Exchange {
                    routers,
                    subs,
                    sessions,
                    pending,
                    random,
                    outgoing,
                    crossings,
                    ..
                },
            ..
        } = self;
        let route = routers[account].route(topic, memo);
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
        if route.has_exits() {
            delivered |= self.fan_out_across(account, topic, message, origin, *memo);
        } else if route.leads_on() {
            crossings.set_plain(route.plain_remote);
            let is_served = |group: &[u8]| bridging.is_served(group) || !origin.is_for(group);
            delivered |= fan_out.deliver_to_groups(route, message, random, crossings, is_served);
            let hops = fan_out.first_hop(account, crossings);
            delivered |= crossings.post(outgoing, account, topic, message, hops);
            if crossings.has_leafs() {
                delivered |= self.give_to_leafs(account, topic, message, origin.session);
            }
        }
        self.settle_if_needed();
        delivered
    }

    /// The part of a fan-out beyond plain subscriptions, for a topic that leads to other accounts. A
    /// group that has members in several of them is one group.
    #[cold]
    #[inline(never)]
    fn fan_out_across(
        &mut self,
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        origin: Origin<'_>,
        memo: RouteMemo,
    ) -> bool {
        let (kept, left) = self.share_groups(account, memo);
        let Shard {
            bridging,
            exchange:
                Exchange {
                    routers,
                    subs,
                    sessions,
                    pending,
                    random,
                    outgoing,
                    crossings,
                    ..
                },
            ..
        } = self;
        let route = routers[account].held_route(memo);
        let mut fan_out = FanOut {
            sessions,
            subs,
            pending,
            origin,
        };
        crossings.set_plain(route.plain_remote);
        let is_left = |group: &[u8]| left.iter().any(|name| name == group);
        let is_served =
            |group: &[u8]| is_left(group) || bridging.is_served(group) || !origin.is_for(group);
        let mut delivered = fan_out.deliver_to_groups(route, message, random, crossings, is_served);
        let hops = fan_out.first_hop(account, crossings);
        delivered |= crossings.post(outgoing, account, topic, message, hops);
        if crossings.has_leafs() {
            delivered |= self.give_to_leafs(account, topic, message, origin.session);
        }
        if !self.exchange.routers.is_dead_end(account, memo) {
            self.bridging.note_served(kept);
            delivered |= self.follow_bridges(account, topic, message, origin, memo);
        }
        delivered
    }

    #[inline]
    pub(super) fn settle_if_needed(&mut self) {
        if !self.exchange.pending.spent.is_empty() || self.exchange.pending.overflowed {
            self.settle_fan_out();
        }
    }

    /// Delivers what another shard passed on: to plain subscriptions here, and to one member here
    /// of each group it was passed on for. When a group's last member here has just left, the
    /// message goes on to where there is one.
    pub(super) fn fan_out_crossing(&mut self, crossing: Crossing<'_>, memo: &mut RouteMemo) {
        if crossing.hops & TRACED != 0 {
            return self.receive_traced(crossing, memo);
        }
        let Crossing {
            account,
            topic,
            message,
            plain,
            groups,
            hops,
            is_for_leafs,
        } = crossing;
        if is_for_leafs {
            self.exchange.crossings.set_leafs(plain, groups);
            self.give_to_leafs(account, topic, &message, None);
            return self.settle_fan_out();
        }
        let hops = self.exchange.pending.take_origin(hops);
        let Shard {
            exchange:
                Exchange {
                    routers,
                    subs,
                    sessions,
                    pending,
                    random,
                    outgoing,
                    crossings,
                    ..
                },
            ..
        } = self;
        let route = routers.of(account).route(topic, memo);
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
        let names = Names::new(groups);
        let mut is_taken = groups.is_empty();
        for (group, members) in route.groups() {
            let name = group.name.as_slice();
            if !names.contain(name) {
                continue;
            }
            let (local, remote) = split_members(members);
            let ticket = random.below(u32::try_from(local.len()).unwrap_or(u32::MAX));
            let picked = fan_out.deliver_to_one(local, route, &message, ticket);
            is_taken |= matches!(picked, Picked::Delivered);
            // Nor back to the leaf that it may have come from.
            if let (Picked::Nobody, Some(Member::Remote { shard, .. })) = (picked, remote.first())
                && *shard != LEAFS
                && hops < HOPS_MAX
            {
                crossings.add_group(*shard, name);
                is_taken = true;
            }
        }
        if !is_taken {
            fan_out.pending.mqtt.note_missed(account, topic, &message);
        }
        let has_exits = plain && route.has_exits();
        let first = fan_out.first_hop(account, crossings);
        crossings.post(outgoing, account, topic, &message, first | (hops + 1));
        self.exchange.pending.origin_bits = 0;
        if has_exits {
            self.follow_answers(account, topic, &message, *memo);
        }
        self.settle_fan_out();
    }

    /// Ends the subscriptions that had their last message, and the sessions that have too much
    /// waiting.
    fn settle_fan_out(&mut self) {
        self.name_traced();
        while let Some(id) = self.exchange.pending.spent.pop() {
            self.drop_subscription(id);
        }
        if std::mem::take(&mut self.exchange.pending.overflowed) {
            self.end_overflowed();
        }
    }

    fn end_overflowed(&mut self) {
        let limits = &self.exchange.config.limits;
        let has_too_much = |id: &SessionId| {
            // One that was written to may have gone since.
            self.exchange
                .sessions
                .get(id.index())
                .is_some_and(|session| {
                    let most = limits.pending_bytes_max_of(session.leaf.is_some());
                    session.out.pending_bytes() > most
                })
        };
        let dirty = self.exchange.pending.dirty.iter().copied();
        let over: Vec<SessionId> = dirty.filter(has_too_much).collect();
        for id in over {
            self.end(id, crate::CloseReason::SlowConsumerPendingBytes);
        }
    }
}

/// The members of a group here, which come first, and those on other shards.
fn split_members(members: &[Member]) -> (&[Member], &[Member]) {
    let is_remote = |member: &Member| matches!(member, Member::Remote { .. });
    let locals = members.iter().position(is_remote);
    members.split_at(locals.unwrap_or(members.len()))
}

/// The names of groups as they cross, to be looked up.
enum Names<'a> {
    Few(&'a [u8]),
    Many(HashSet<&'a [u8]>),
}

impl<'a> Names<'a> {
    fn new(names: &'a [u8]) -> Self {
        /// Up to here a walk over the names is quicker than a table.
        const FEW_BYTES: usize = 64;
        match names.len() > FEW_BYTES {
            true => Names::Many(names.split(|b| *b == b' ').collect()),
            false => Names::Few(names),
        }
    }

    fn contain(&self, name: &[u8]) -> bool {
        match self {
            Names::Few(names) => names.split(|b| *b == b' ').any(|n| n == name),
            Names::Many(names) => names.contains(name),
        }
    }
}

/// The other shards that get the message at hand. Its room is used again for the next one.
#[derive(Default)]
pub(super) struct RemoteTargets {
    plain: ShardSet,
    with_groups: ShardSet,
    /// For each shard, the names of the groups, each ended by a space.
    names: Vec<Vec<u8>>,
    /// The leafs are served here: what is for them waits to be given to them.
    serves_leafs: bool,
    /// Whether something waits for them, and whether all who want it without a queue get it.
    for_leafs: Option<bool>,
}

impl RemoteTargets {
    /// Those of a shard that serves the leafs, or does not.
    pub(super) fn new(serves_leafs: bool) -> Self {
        RemoteTargets {
            serves_leafs,
            ..RemoteTargets::default()
        }
    }

    /// Whether the message is for leafs of this shard, too.
    #[inline]
    pub(super) fn has_leafs(&self) -> bool {
        self.for_leafs.is_some()
    }

    /// Whether the leafs are served here.
    pub(super) fn serves_leafs(&self) -> bool {
        self.serves_leafs
    }

    /// Another shard says that the message is for leafs.
    pub(super) fn set_leafs(&mut self, plain: bool, groups: &[u8]) {
        self.for_leafs = Some(plain);
        let at = usize::from(LEAFS);
        if self.names.len() <= at {
            self.names.resize_with(at + 1, Vec::new);
        }
        self.names[at].clear();
        self.names[at].extend_from_slice(groups);
    }

    /// Whether all leafs who want it without a queue get it, and of which groups one member each.
    pub(super) fn take_leafs(&mut self) -> (bool, Vec<u8>) {
        let plain = self.for_leafs.take().unwrap_or_default();
        let names = self.names.get_mut(usize::from(LEAFS));
        (plain, names.map(std::mem::take).unwrap_or_default())
    }

    /// Every shard in the set gets the message for its plain subscriptions.
    pub(super) fn set_plain(&mut self, shards: ShardSet) {
        self.plain = shards;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.with_groups.is_empty()
    }

    /// Those that would get it.
    pub(super) fn shards(&self) -> impl Iterator<Item = u16> + use<> {
        let mut all = self.with_groups;
        all.add(self.plain);
        all.iter()
    }

    /// Nobody gets it.
    pub(super) fn clear(&mut self) {
        self.plain = ShardSet::default();
        for shard in std::mem::take(&mut self.with_groups).iter() {
            if let Some(names) = self.names.get_mut(usize::from(shard)) {
                names.clear();
            }
        }
    }

    pub(super) fn add_group(&mut self, shard: u16, name: &[u8]) {
        let at = usize::from(shard);
        if self.names.len() <= at {
            self.names.resize_with(at + 1, Vec::new);
        }
        self.names[at].extend_from_slice(name);
        self.names[at].push(b' ');
        self.with_groups.set(shard, true);
    }

    /// Puts the message into the batch of each shard once. Returns whether there was any.
    pub(super) fn post(
        &mut self,
        outgoing: &mut [Batch],
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        hops: u8,
    ) -> bool {
        /// Room for names that is kept.
        const NAMES_BYTES: usize = 4096;
        let plain = std::mem::take(&mut self.plain);
        let mut all = std::mem::take(&mut self.with_groups);
        all.add(plain);
        if self.serves_leafs && all.contains(LEAFS) {
            self.for_leafs = Some(plain.contains(LEAFS));
            all.set(LEAFS, false);
        }
        for shard in all.iter() {
            let at = usize::from(shard);
            let to = match shard {
                LEAFS => usize::from(LEAF_SHARD),
                _ => at,
            };
            let groups = self.names.get(at).map_or(&[][..], Vec::as_slice);
            let shared = message.shared.as_ref();
            let message = Message {
                shared: shared.map(|(chunk, range)| (*chunk, range.clone())),
                ..*message
            };
            let plain = plain.contains(shard);
            outgoing[to].push_message(&Crossing {
                account,
                topic,
                message,
                plain,
                groups,
                hops,
                is_for_leafs: shard == LEAFS,
            });
            if let Some(names) = self.names.get_mut(at) {
                names.clear();
                names.shrink_to(NAMES_BYTES);
            }
        }
        !all.is_empty()
    }
}
