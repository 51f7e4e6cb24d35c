//! Delivery of a message to all of its subscribers: the hot path.
//!
//! A delivery makes three copies into the subscriber's outbox: `MSG <subject> ` from the route, `<sid> ` from
//! the subscription, and the rest of the message as received.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use slab::Slab;

use super::Exchange;
use super::batch::{Batch, Crossing, FROM_DEVICE, FROM_ROUTE, HOPS, HOPS_MAX, MAY_LEAVE};
use super::message::{Dispatch, Excluded, Message, Origin, Via};
use super::outputs::Outputs;
use super::remote::{LinkSet, MemberRank, Remote};
use super::router::{
    BridgeKind, Member, Route, RouteMemo, SubId, Subscription, Subscriptions, is_measured,
};
use super::session::{Session, SessionId};
use super::targets::RemoteTargets;
use super::tracing::Traced;
use crate::auth::AccountId;
use crate::outbox::Chunk;
use crate::random::{FastRandom, Ticket};

/// The protocols of a server's connections. The session layer implements this trait; the exchange itself
/// knows only plain NATS clients.
pub(crate) trait Kind: Sized {
    /// State that sessions of these kinds share on one shard.
    type Shared: Default;

    /// Returns the set that a link to another server belongs to; `None` for clients.
    fn links(&self) -> Option<LinkSet>;

    /// Returns whether [`deliver`](Kind::deliver) writes the session's messages. If not, the exchange writes
    /// them.
    /// All subscriptions of such a session must be marked as filtered.
    fn encodes(&self) -> bool;

    /// Returns whether a subscription belongs to the session itself, and was not requested by its client. The
    /// user's permissions do not apply to such a subscription.
    fn is_internal(&self, sid: &[u8]) -> bool;

    /// Queues a message for a subscription of a session for which [`encodes`](Kind::encodes) returns true.
    /// Returns false if the session does not receive it.
    fn deliver(
        fan_out: &mut FanOut<'_, Self>,
        id: SubId,
        route: &Route,
        message: &Message<'_>,
    ) -> bool;

    /// Queues several messages without headers for a subscription of such a session.
    fn deliver_run(
        fan_out: &mut FanOut<'_, Self>,
        id: SubId,
        route: &Route,
        chunk: &Chunk,
        run: &[RunMessage],
    );

    /// Handles a message from another shard for groups that have no member on this shard any more.
    fn redeliver_missed(
        shared: &mut Self::Shared,
        account: AccountId,
        subject: &[u8],
        message: &Message<'_>,
    );

    /// Returns whether a link may receive a message of an account from `origin`. The message is for members of
    /// `group`, or for plain subscriptions if `group` is empty.
    fn may_forward(
        &self,
        origin: Option<&Self>,
        account: AccountId,
        subject: &[u8],
        group: &[u8],
    ) -> bool;

    /// Returns the link of a set that receives a response to a request from another cluster, and the subject of
    /// the response there.
    fn reply_link(
        shared: &Self::Shared,
        set: LinkSet,
        account: AccountId,
        subject: &[u8],
    ) -> Option<(SessionId, Vec<u8>)>;

    /// Returns what precedes the reply subject of a request to another cluster, if that cluster may not know the
    /// interest in it yet; otherwise nothing.
    fn reply_mark(
        shared: &mut Self::Shared,
        account: AccountId,
        reply: &[u8],
        now: Duration,
    ) -> Vec<u8>;

    /// Returns whether a message's line contains its account, if the protocol of the link has it.
    fn names_account(&self) -> bool;

    /// Returns whether a link leads to a hub, for which this server is a leaf node.
    fn is_upstream(&self) -> bool;

    /// Returns the cluster of the leaf nodes whose interest is a subscription with this sid of a link; empty for any
    /// other interest.
    fn cluster_of<'a>(&'a self, sid: &'a [u8]) -> &'a [u8];

    /// Returns whether the other server of a link understands the clusters of leaf nodes.
    fn takes_clusters(&self) -> bool;

    /// Returns whether the other server of a link understands that a message was passed on, and then delivers it to
    /// queue groups only.
    fn takes_passed_on(&self) -> bool;

    /// Returns the account of a subscription with this sid, for a link that carries several accounts. Any other
    /// session has subscriptions in its own account only.
    fn account_of(&self, sid: &[u8]) -> Option<AccountId>;

    /// Returns the link's name in traces, if the other server continues them.
    fn traced_as(&self) -> Option<&str>;

    /// Sends pending changes of interest to the links of a set. The interest of a requester in its reply
    /// subject must reach the other server before the request. Otherwise the reply is lost.
    fn announce_interest(exchange: &mut Exchange<Self>, links: LinkSet);
}

/// A message in a run of messages that are delivered together: the bytes that follow the sid in each
/// delivery, as a range of the chunk.
pub(crate) struct RunMessage {
    pub(crate) tail: Range<usize>,
    pub(crate) payload_bytes: u64,
}

/// Which subscribers a delivery has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// All subscribers received the message. The value is whether there was any.
    All(bool),
    /// Only plain subscriptions received the message. The value is true if there was at least one. The
    /// subject also has destinations in other accounts, so the caller completes the delivery with
    /// [`Exchange::deliver_rest`].
    Plain(bool),
}

/// The parts of an exchange that a delivery changes, and its inputs.
pub(crate) struct FanOut<'a, K: Kind> {
    pub(crate) sessions: &'a mut Slab<Session<K>>,
    pub(crate) subs: &'a mut Subscriptions,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) shared: &'a mut K::Shared,
    pub(super) account: AccountId,
    pub(super) subject: &'a [u8],
    pub(crate) origin: Origin<'a>,
    pub(crate) is_from_device: bool,
    pub(super) served: Option<&'a Vec<Vec<u8>>>,
    pub(super) trace: Option<&'a mut Traced>,
    /// Whether deliveries are recorded, in the trace of this message or in the protocol trace.
    pub(super) watches: bool,
}

impl<'a, K: Kind> FanOut<'a, K> {
    #[inline]
    pub(super) fn new(
        sessions: &'a mut Slab<Session<K>>,
        subs: &'a mut Subscriptions,
        outputs: &'a mut Outputs,
        shared: &'a mut K::Shared,
        dispatch: &'a mut Dispatch<'_>,
    ) -> Self {
        let context = &mut dispatch.context;
        FanOut {
            sessions,
            subs,
            watches: outputs.traces || context.trace.is_some(),
            outputs,
            shared,
            account: dispatch.account,
            subject: dispatch.subject,
            origin: dispatch.origin,
            is_from_device: context.is_from_device,
            served: context.served.as_deref(),
            trace: context.trace.as_deref_mut(),
        }
    }

    /// Creates the delivery of messages from another shard that exclude no publisher and are not traced.
    pub(super) fn of_others(
        sessions: &'a mut Slab<Session<K>>,
        subs: &'a mut Subscriptions,
        outputs: &'a mut Outputs,
        shared: &'a mut K::Shared,
        (account, subject): (AccountId, &'a [u8]),
    ) -> Self {
        FanOut {
            sessions,
            subs,
            outputs,
            shared,
            account,
            subject,
            origin: Origin::ELSEWHERE,
            is_from_device: false,
            served: None,
            trace: None,
            watches: false,
        }
    }

    /// Queues the message for one subscription. Returns false if the subscription cannot receive it.
    #[inline]
    pub(super) fn deliver(&mut self, id: SubId, route: &Route, message: &Message<'_>) -> bool {
        if self.watches
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
            if session.kind.encodes() {
                return K::deliver(self, id, route, message);
            }
        }
        if message.reply_bytes > 0
            && let Some(restriction) = &mut session.restriction
        {
            restriction.record_reply(message.reply(), self.outputs.now);
        }
        self.outputs.mark_dirty(sub.session(), session);
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
        self.outputs.count_produced(sub.session(), session, before);
        if sub.count() {
            self.outputs.spent.push(id);
        }
        true
    }

    /// Traces an upcoming delivery. Returns `Some` with the result if the caller must not deliver.
    #[cold]
    #[inline(never)]
    fn watch(&mut self, id: SubId, route: &Route, message: &Message<'_>) -> Option<bool> {
        let sub = self.subs.get(id);
        let session = &self.sessions[sub.session() as usize];
        let is_delivered = self.origin.reaches(sub.session(), session)
            && (!sub.is_filtered() || passes(session, sub, route, message.head));
        if !is_delivered {
            return Some(false);
        }
        if let Some(trace) = &mut self.trace {
            trace.record_delivery(id, sub, session);
            if trace.is_only() {
                return Some(true);
            }
        }
        if self.outputs.traces {
            let takes_headers = session.takes_headers;
            self.outputs
                .trace_delivery(sub, route, message, takes_headers);
        }
        None
    }

    /// Delivers a message to one member on this shard of each of its groups. If a group has none, adds the next receiver
    /// of the message to the targets, which receive it with `hops`. Returns whether there was any.
    fn deliver_to_groups(
        &mut self,
        route: &Route,
        message: &Message<'_>,
        (groups, hops): (&[u8], u8),
        random: &mut FastRandom,
        targets: &mut RemoteTargets,
    ) -> bool {
        let names = Names::new(groups);
        let may_go_on = hops & HOPS <= HOPS_MAX;
        let (may_leave, has_cluster) = (hops & MAY_LEAVE != 0, !self.origin.cluster.is_empty());
        let mut is_taken = false;
        for (group, members) in route.groups() {
            let name = group.name.as_slice();
            if !names.contain(name) {
                continue;
            }
            let (local, remote) = split_members(members);
            let ticket = random.ticket(u32::try_from(local.len()).unwrap_or(u32::MAX));
            match self.deliver_to_one(local, route, message, ticket) {
                Picked::Nobody if may_go_on => {
                    if let Some(next) = next_of_group(remote, may_leave, has_cluster) {
                        targets.add_group(next, name);
                        is_taken = true;
                    }
                }
                picked => is_taken |= matches!(picked, Picked::Delivered),
            }
        }
        is_taken
    }

    /// Returns the initial `hops` of a message that crosses to other shards.
    #[inline]
    fn first_hop(&mut self, targets: &mut RemoteTargets) -> u8 {
        let bits = origin_bits(self.is_from_device, self.origin.via, self.subject);
        match &mut self.trace {
            None => bits,
            Some(trace) => bits | targets.trace(self.account, trace),
        }
    }

    /// Returns the initial bits of `hops` of a message for groups, which tell whether it may be passed on to another
    /// server: a message of another server was passed on then. A message of a leaf node needs the name of its cluster,
    /// so that it does not come back.
    fn passing(&self) -> u8 {
        let is_of_link = || {
            let session = self.origin.session.map(|id| self.sessions.get(id as usize));
            session
                .flatten()
                .is_some_and(|it| it.kind.links().is_some())
        };
        match self.origin.via {
            Via::Route => MAY_LEAVE | 1,
            Via::Own if !self.origin.cluster.is_empty() || !is_of_link() => MAY_LEAVE,
            Via::Own | Via::Hub | Via::Import | Via::Gateway => 0,
        }
    }

    /// Returns the publisher if it does not receive its own messages. A link needs no such mark: no message
    /// that comes back from another shard is for a link.
    #[inline]
    fn excluded(&self) -> Option<Excluded> {
        if self.origin.echo {
            return None;
        }
        let session = self.origin.session?;
        let publisher = self.sessions.get(session as usize)?;
        let cid = publisher.cid;
        (publisher.kind.links().is_none()).then_some(Excluded { session, cid })
    }

    /// Queues several messages without headers for one subscription, up to its limit.
    #[inline]
    pub(super) fn deliver_run(
        &mut self,
        id: SubId,
        route: &Route,
        chunk: &Chunk,
        run: &[RunMessage],
    ) {
        let sub = self.subs.get_mut(id);
        let session = &mut self.sessions[sub.session() as usize];
        if !self.origin.reaches(sub.session(), session) {
            return;
        }
        if sub.is_filtered() {
            if !passes(session, sub, route, &[]) {
                return;
            }
            if session.kind.encodes() {
                return K::deliver_run(self, id, route, chunk, run);
            }
        }
        self.outputs.mark_dirty(sub.session(), session);
        let before = session.out.pending_bytes();
        for message in run {
            let tail = &chunk[message.tail.clone()];
            session
                .out
                .append3(route.msg_head(), sub.sid_and_space(), tail);
            session.out_msgs += 1;
            session.out_bytes += message.payload_bytes;
            if sub.count() {
                self.outputs.spent.push(id);
                break;
            }
        }
        self.outputs.count_produced(sub.session(), session, before);
    }

    /// Delivers to one member of each group, and to remotes (other shards and links to other servers). Groups
    /// in `elsewhere` receive the message in another account.
    #[inline]
    fn deliver_beyond(
        &mut self,
        route: &Route,
        message: &Message<'_>,
        random: &mut FastRandom,
        targets: &mut RemoteTargets,
        outgoing: &mut [Batch],
        elsewhere: &[Vec<u8>],
    ) -> bool {
        targets.set_plain(route.plain_remote.reached(self.origin.via.excluded()));
        let mut delivered = false;
        for (group, members) in route.groups() {
            let name = group.name.as_slice();
            let is_it = |other: &Vec<u8>| other == name;
            let is_served = self.served.is_some_and(|served| served.iter().any(is_it));
            if is_served || elsewhere.iter().any(is_it) || !self.origin.is_for(name) {
                continue;
            }
            let picked = match self.origin.via {
                Via::Own => {
                    let ticket = random.ticket(group.weight);
                    self.deliver_to_one(members, route, message, ticket)
                }
                // Another cluster has no member here either, or it would have none in this one.
                Via::Gateway if members.iter().any(|member| member.is_beyond()) => Picked::Nobody,
                Via::Gateway => {
                    let ticket = random.ticket(group.weight);
                    self.deliver_to_one(members, route, message, ticket)
                }
                Via::Route | Via::Hub | Via::Import => {
                    self.deliver_to_nearest(members, route, message, random)
                }
            };
            match picked {
                Picked::Delivered => delivered = true,
                Picked::Remote(remote) => targets.add_group(remote, name),
                Picked::Nobody => {}
            }
        }
        let (mut hops, excluded) = (self.first_hop(targets), self.excluded());
        if route.has_groups() {
            hops |= self.passing();
        }
        let from = (excluded, self.origin.cluster);
        let to = (self.account, self.subject);
        delivered | targets.post(outgoing, to, message, hops, from)
    }

    /// Delivers to one member of a message that may not go to the whole cluster: a member on this server, or a
    /// leaf node. If there is none, a message from a route goes to another server of the cluster, because the
    /// member that its sender knew of has just left.
    #[cold]
    fn deliver_to_nearest(
        &mut self,
        members: &[Member],
        route: &Route,
        message: &Message<'_>,
        random: &mut FastRandom,
    ) -> Picked {
        let of_rank = |rank: MemberRank| members.partition_point(|member| member.rank() < rank);
        let (cluster, leaf) = (of_rank(MemberRank::Cluster), of_rank(MemberRank::Leaf));
        let parts = [
            &members[..cluster],
            &members[leaf..of_rank(MemberRank::Beyond)],
            &members[cluster..leaf],
        ];
        let count = if self.origin.via == Via::Route { 3 } else { 2 };
        for part in parts.into_iter().take(count) {
            let weights = part.iter().map(|member| member.weight());
            let ticket = random.ticket(weights.fold(0, u32::saturating_add));
            match self.deliver_to_one(part, route, message, ticket) {
                Picked::Nobody => {}
                picked => return picked,
            }
        }
        Picked::Nobody
    }

    /// Delivers to one member. Starts at a random member and skips those that cannot receive the message.
    /// Returns the remote if the member is not on this shard.
    fn deliver_to_one(
        &mut self,
        members: &[Member],
        route: &Route,
        message: &Message<'_>,
        mut ticket: Ticket,
    ) -> Picked {
        let holds_ticket = |member: &Member| ticket.is_held_by(member.weight());
        let start = members.iter().position(holds_ticket).unwrap_or(0);
        for member in members[start..].iter().chain(&members[..start]) {
            match *member {
                Member::Remote { remote, .. } => return Picked::Remote(remote),
                Member::Local(id) if self.deliver(id, route, message) => return Picked::Delivered,
                Member::Local(_) => {}
            }
        }
        Picked::Nobody
    }
}

/// Returns whether a client may receive a message that matches its subscription. Permissions must allow the
/// matched subject. If the client receives another subject, permissions must allow that subject too.
fn passes<K: Kind>(session: &Session<K>, sub: &Subscription, route: &Route, head: &[u8]) -> bool {
    let Some(restriction) = &session.restriction else {
        return true;
    };
    if session.kind.is_internal(sub.sid()) {
        return true;
    }
    let subject = |head: &[u8]| {
        let head = head.strip_prefix(b"HMSG ").unwrap_or_default();
        let subject = head.strip_suffix(b" ").unwrap_or_default();
        restriction.may_receive(subject, sub.queue())
    };
    subject(route.hmsg_head()) && (head.is_empty() || subject(head))
}

enum Picked {
    Delivered,
    Remote(Remote),
    Nobody,
}

impl<K: Kind> Exchange<K> {
    /// Delivers a message to all subscribers of its account, on this shard and elsewhere. If the subject has
    /// destinations in other accounts, delivers to plain subscriptions only; the caller does the rest.
    #[inline]
    pub(crate) fn deliver(&mut self, dispatch: &mut Dispatch<'_>, memo: &mut RouteMemo) -> Reached {
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            random,
            outgoing,
            targets,
            ..
        } = self;
        let (account, subject, message) = (dispatch.account, dispatch.subject, dispatch.message);
        let router = &mut routers[account];
        // Most subjects of the server itself, such as those of acknowledgements, are used once.
        let route = match subject.first() {
            Some(b'$') => router.route_once(subject, memo),
            _ => router.route(subject, memo),
        };
        if route.plain.is_empty()
            && let Some(Remote::Shard(shard)) = route.only_remote()
            && dispatch.context.trace.is_none()
        {
            let is_from_device = dispatch.context.is_from_device;
            let hops = origin_bits(is_from_device, dispatch.origin.via, subject);
            let batch = &mut outgoing[usize::from(shard)];
            batch.push_message(&Crossing::plain(account, subject, message, hops));
            return Reached::All(true);
        }
        let mut fan_out = FanOut::<K>::new(sessions, subs, outputs, shared, dispatch);
        let mut delivered = false;
        for id in &route.plain {
            delivered |= fan_out.deliver(*id, route, message);
        }
        if route.has_bridge_targets() {
            return Reached::Plain(delivered);
        }
        if route.has_other_targets() {
            delivered |= fan_out.deliver_beyond(route, message, random, targets, outgoing, &[]);
            if targets.has_links() {
                delivered |= self.deliver_to_links(dispatch);
            }
        }
        self.settle_if_needed(dispatch.context.trace.as_deref_mut());
        Reached::All(delivered)
    }

    /// Completes a delivery that [`deliver`](Self::deliver) began. Groups in `elsewhere` receive the message
    /// in another account.
    pub(crate) fn deliver_rest(
        &mut self,
        dispatch: &mut Dispatch<'_>,
        memo: RouteMemo,
        elsewhere: &[Vec<u8>],
    ) -> bool {
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            random,
            outgoing,
            targets,
            ..
        } = self;
        let message = dispatch.message;
        let route = routers[dispatch.account].route_of(memo);
        let mut fan_out = FanOut::<K>::new(sessions, subs, outputs, shared, dispatch);
        let mut delivered =
            fan_out.deliver_beyond(route, message, random, targets, outgoing, elsewhere);
        if targets.has_links() {
            delivered |= self.deliver_to_links(dispatch);
        }
        delivered
    }

    /// Delivers a message from another shard to plain subscriptions of this shard, and to one local member of
    /// each of its groups. If a group's last local member has just left, passes the message on to another
    /// shard or another server with members. Returns whether the subject has destinations in other accounts.
    pub(crate) fn deliver_crossing(
        &mut self,
        crossing: &Crossing<'_>,
        trace: Option<&mut Traced>,
        memo: &mut RouteMemo,
    ) -> bool {
        let Crossing {
            account,
            subject,
            ref message,
            plain,
            groups,
            hops,
            links,
            excluded,
            cluster,
        } = *crossing;
        let mut dispatch = Dispatch::own(account, subject, message);
        dispatch.context.is_from_device = hops & FROM_DEVICE != 0;
        dispatch.context.trace = trace;
        if let Some(links) = links {
            self.targets.add_links(links, plain, groups);
            dispatch.origin.cluster = cluster;
            dispatch.context.hops = hops & (HOPS | MAY_LEAVE);
            dispatch.context.excluded = excluded;
            self.deliver_to_links(&mut dispatch);
            self.settle(dispatch.context.trace);
            return false;
        }
        dispatch.origin = excluded.map_or(Origin::ELSEWHERE, |it| self.origin_of(it));
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            ..
        } = self;
        let route = routers.of(account).route_once(subject, memo);
        let mut fan_out = FanOut::<K>::new(sessions, subs, outputs, shared, &mut dispatch);
        if plain {
            for id in &route.plain {
                fan_out.deliver(*id, route, message);
            }
        }
        // The route ends with a subscription that has reached its limit.
        let mut bridge_targets = route.bridge_targets().iter();
        let is_answer = plain && bridge_targets.any(|target| target.kind == BridgeKind::Replies);
        if !groups.is_empty() {
            dispatch.origin.cluster = cluster;
            dispatch.context.hops = next_hop(hops);
            dispatch.context.excluded = excluded;
            if !self.deliver_to_members(&mut dispatch, *memo, groups) {
                K::redeliver_missed(&mut self.shared, account, subject, message);
            }
        }
        self.settle_if_needed(dispatch.context.trace);
        is_answer
    }

    /// Delivers a message that another server has passed on: to one member of each of its groups.
    #[cold]
    pub(crate) fn deliver_passed_on(&mut self, dispatch: &mut Dispatch<'_>) -> bool {
        let groups = dispatch.origin.groups.unwrap_or_default();
        self.deliver_to_groups_alone(dispatch, groups)
    }

    /// Delivers a message to one member of each of these groups, on this server or where it is passed on. Returns whether
    /// there was any receiver.
    pub(super) fn deliver_to_groups_alone(
        &mut self,
        dispatch: &mut Dispatch<'_>,
        groups: &[u8],
    ) -> bool {
        let mut memo = RouteMemo::default();
        let router = self.routers.of(dispatch.account);
        router.route_once(dispatch.subject, &mut memo);
        let is_taken = self.deliver_to_members(dispatch, memo, groups);
        self.settle_if_needed(dispatch.context.trace.as_deref_mut());
        is_taken
    }

    /// Delivers a message to one local member of each of its groups. If a group has none, passes the message on. Returns
    /// whether there was any receiver.
    fn deliver_to_members(
        &mut self,
        dispatch: &mut Dispatch<'_>,
        memo: RouteMemo,
        groups: &[u8],
    ) -> bool {
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            shared,
            random,
            outgoing,
            targets,
            ..
        } = self;
        let (account, subject, message) = (dispatch.account, dispatch.subject, dispatch.message);
        let (hops, excluded) = (dispatch.context.hops, dispatch.context.excluded);
        let cluster = dispatch.origin.cluster;
        let route = routers[account].route_of(memo);
        let mut fan_out = FanOut::<K>::new(sessions, subs, outputs, shared, dispatch);
        let is_taken = fan_out.deliver_to_groups(route, message, (groups, hops), random, targets);
        let onward = fan_out.first_hop(targets) | hops;
        let from = (excluded, cluster);
        targets.post(outgoing, (account, subject), message, onward, from);
        if targets.has_links() {
            self.deliver_to_links(dispatch);
        }
        is_taken
    }

    /// Returns the origin of a message from another shard that its publisher may not receive.
    #[cold]
    pub(super) fn origin_of(&self, excluded: Excluded) -> Origin<'static> {
        let Excluded { session, cid } = excluded;
        let found = self.sessions.get(session as usize);
        match found.is_some_and(|publisher| publisher.cid == cid) {
            true => Origin {
                session: Some(session),
                echo: false,
                groups: None,
                via: Via::Own,
                cluster: b"",
            },
            false => Origin::ELSEWHERE,
        }
    }

    /// Removes subscriptions that have reached their limit, and ends sessions with too many pending bytes.
    #[inline]
    pub(crate) fn settle_if_needed(&mut self, trace: Option<&mut Traced>) {
        if !self.outputs.spent.is_empty() || self.outputs.overflowed {
            self.settle(trace);
        }
    }

    pub(crate) fn settle(&mut self, trace: Option<&mut Traced>) {
        if let Some(trace) = trace {
            self.name_subscriptions(trace);
        }
        while let Some(id) = self.outputs.spent.pop() {
            self.drop_subscription(id);
        }
        if std::mem::take(&mut self.outputs.overflowed) {
            self.end_overflowed();
        }
    }

    fn end_overflowed(&mut self) {
        let limits = &self.config.limits;
        let has_too_much = |id: &SessionId| {
            // A session that received output may have been removed in the meantime.
            self.sessions.get(id.index()).is_some_and(|session| {
                let most = limits.pending_bytes_max_of(session.kind.links().is_some());
                session.out.pending_bytes() > most
            })
        };
        let dirty = self.outputs.dirty.iter().copied();
        let over: Vec<SessionId> = dirty.filter(has_too_much).collect();
        for id in over {
            self.overrun(id);
        }
    }
}

/// Returns the bits of [`Crossing::hops`] that describe the publisher of a message. Only JetStream distinguishes
/// messages from routes, and only requests; and service latency, which needs to know where a response comes from. Other
/// messages remain simple ones, which form runs.
#[inline]
fn origin_bits(is_from_device: bool, via: Via, subject: &[u8]) -> u8 {
    let device = if is_from_device { FROM_DEVICE } else { 0 };
    match via {
        Via::Route if subject.starts_with(b"$JS.") && !subject.starts_with(b"$JS.ACK.") => {
            device | FROM_ROUTE
        }
        Via::Route | Via::Gateway if is_measured(subject) => device | FROM_ROUTE,
        _ => device,
    }
}

/// Returns the bits of [`Crossing::hops`] with which a message is passed on that came with `hops`.
pub(crate) fn next_hop(hops: u8) -> u8 {
    (hops & MAY_LEAVE) | ((hops & HOPS) + 1).min(HOPS)
}

/// Returns where a message for a group without a member on this shard is passed on to: another shard, or another server
/// if it may leave this one. A leaf node never receives it, because it may have come from there. An exception is a
/// message of a leaf node's cluster, which its own leaf nodes do not receive: it goes to other ones.
fn next_of_group(members: &[Member], may_leave: bool, has_cluster: bool) -> Option<Remote> {
    members.iter().find_map(|member| match *member {
        Member::Remote { remote, .. } => match member.rank() {
            MemberRank::Shard | MemberRank::Server => Some(remote),
            MemberRank::Cluster => may_leave.then_some(remote),
            MemberRank::Leaf => has_cluster.then_some(remote),
            MemberRank::Beyond => None,
        },
        Member::Local(_) => None,
    })
}

/// Splits members into local members, which come first, and members on remotes.
fn split_members(members: &[Member]) -> (&[Member], &[Member]) {
    let is_remote = |member: &Member| matches!(member, Member::Remote { .. });
    let locals = members.iter().position(is_remote);
    members.split_at(locals.unwrap_or(members.len()))
}

/// The group names of a message from another shard.
enum Names<'a> {
    Few(&'a [u8]),
    Many(HashSet<&'a [u8]>),
}

impl<'a> Names<'a> {
    fn new(names: &'a [u8]) -> Self {
        /// Length of all names in bytes, up to which a linear search is faster than a hash table.
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
