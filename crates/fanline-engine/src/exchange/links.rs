//! Links, which are connections to other servers: their interest, and delivery of each message at most once
//! per link.

use std::collections::BTreeMap;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use slab::Slab;

use super::Exchange;
use super::batch::{HOPS, MAY_LEAVE, Notification};
use super::deliver::{Kind, RunMessage, next_hop};
use super::message::{Context, Dispatch, Excluded, Message, Origin, Via};
use super::remote::{LinkHead, LinkSet, Remote, RemoteSet};
use super::router::{Member, RouteMemo, Routers, SubId, Subscription, Subscriptions};
use super::run::Intake;
use super::session::{Session, SessionId};
use super::tracing::Onward;
use crate::auth::AccountId;
use crate::codec::gateway::ReplyMark;
use crate::codec::route;
use crate::headers::Block;
use crate::random::FastRandom;
use crate::trace::HOP;

/// Interest of all links in one set, and the link selection for the current message.
#[derive(Default)]
pub(crate) struct Links {
    /// Interest of the links, by account.
    pub(crate) routers: Routers,
    /// Route of the last message, by account.
    memos: Vec<RouteMemo>,
    /// Number of the current message, and the links selected for it.
    message: u64,
    picked: Vec<Picked>,
    /// For each session, the number of the last message that selected it, and its index in `picked`.
    marks: Vec<(u64, usize)>,
    /// Buffers for the start of a message's first line, and for the whole line.
    start: Vec<u8>,
    line: Vec<u8>,
    /// The subject of a response from another cluster or to one; empty for other messages, which keep their
    /// subject.
    renamed: Vec<u8>,
}

/// The state of each link set.
#[derive(Default)]
pub(crate) struct LinkSets([Links; LinkSet::ALL.len()]);

impl Index<LinkSet> for LinkSets {
    type Output = Links;

    fn index(&self, set: LinkSet) -> &Links {
        &self.0[set.index()]
    }
}

impl IndexMut<LinkSet> for LinkSets {
    fn index_mut(&mut self, set: LinkSet) -> &mut Links {
        &mut self.0[set.index()]
    }
}

/// The weights of a filter at the leaf nodes for which this server is the hub, for shards that serve routes.
#[derive(Clone)]
pub(crate) struct WeightBelow {
    pub(crate) account: AccountId,
    pub(crate) filter: Box<[u8]>,
    pub(crate) queue: Box<[u8]>,
    pub(crate) weights: ClusterWeights,
}

/// Weights by the cluster of leaf nodes, in the order of the clusters.
pub(crate) type ClusterWeights = Vec<(Box<[u8]>, u32)>;

impl Notification for WeightBelow {
    fn bytes(&self) -> usize {
        let of_cluster =
            |(cluster, _): &(Box<[u8]>, u32)| size_of::<(Box<[u8]>, u32)>() + cluster.len();
        let weights: usize = self.weights.iter().map(of_cluster).sum();
        size_of::<Self>() + self.filter.len() + self.queue.len() + weights
    }
}

/// A link that receives the current message.
struct Picked {
    session: u32,
    /// Names of groups, each followed by a space. One member of each group behind the link receives the
    /// message.
    groups: Vec<u8>,
}

impl Links {
    /// Returns the number of subscriptions of links that match a subject and have no queue group.
    pub(super) fn width(&mut self, account: AccountId, subject: &[u8]) -> usize {
        let mut memo = RouteMemo::default();
        self.routers
            .of(account)
            .route(subject, &mut memo)
            .plain
            .len()
    }

    /// Starts the selection of links for a message. Returns the cached route of the previous message in the
    /// same account.
    fn begin_message(&mut self, account: AccountId) -> RouteMemo {
        self.message += 1;
        self.picked.clear();
        if self.memos.len() <= account.index() {
            self.memos.resize(account.index() + 1, RouteMemo::default());
        }
        self.memos[account.index()]
    }

    /// Selects a link. Returns its index in `picked`.
    fn pick(&mut self, session: u32) -> usize {
        let at = session as usize;
        if self.marks.len() <= at {
            self.marks.resize(at + 1, (0, 0));
        }
        let (message, index) = &mut self.marks[at];
        if std::mem::replace(message, self.message) != self.message {
            *index = self.picked.len();
            self.picked.push(Picked {
                session,
                groups: Vec::new(),
            });
        }
        *index
    }
}

impl<K: Kind> Exchange<K> {
    /// Delivers a message to the targeted links, except to its origin. Returns whether a link received it.
    #[inline(never)]
    pub(super) fn deliver_to_links(&mut self, dispatch: &mut Dispatch<'_>) -> bool {
        let mut delivered = false;
        let mut missed = Vec::new();
        while let Some((set, is_plain, groups)) = self.targets.take_links() {
            // An account that was removed has no name for the other server.
            if self.access.account(dispatch.account).is_none() {
                continue;
            }
            K::announce_interest(self, set);
            // If the plain subscriptions of links receive the message now, it was not passed on.
            let passed_on = match is_plain {
                true => 0,
                false => dispatch.context.hops & HOPS,
            };
            missed.extend(self.pick_links(set, dispatch, is_plain, (&groups, passed_on)));
            if passed_on > 0 {
                self.mark_passed_on(set, passed_on);
            }
            delivered |= self.queue_for_links(set, dispatch);
        }
        if !missed.is_empty() {
            delivered |= self.deliver_missed(dispatch, &missed);
        }
        delivered
    }

    /// Delivers a message to groups whose members behind the chosen routes have just left, or may not receive it, such
    /// as leaf nodes of the cluster that it comes from. Members on this server or at other leaf nodes receive it. Returns
    /// whether there were any.
    #[cold]
    fn deliver_missed(&mut self, dispatch: &Dispatch<'_>, groups: &[u8]) -> bool {
        let Dispatch {
            account,
            subject,
            message,
            origin,
            ref context,
        } = *dispatch;
        if ReplyMark::split(message.reply()).is_some() {
            // A message of another cluster in the form for routes, which clients do not understand.
            return false;
        }
        let publisher = origin.session.filter(|_| !origin.echo);
        let publisher = publisher.and_then(|session| {
            let publisher = self.sessions.get(session as usize)?;
            let cid = publisher.cid;
            (publisher.kind.links().is_none()).then_some(Excluded { session, cid })
        });
        let excluded = context.excluded.or(publisher);
        let mut missed = Dispatch {
            origin: Origin {
                cluster: origin.cluster,
                ..excluded.map_or(Origin::ELSEWHERE, |it| self.origin_of(it))
            },
            context: Context {
                is_from_device: context.is_from_device,
                // No route may receive it, so it is not passed on to routes again.
                hops: next_hop(context.hops) & !MAY_LEAVE,
                excluded,
                ..Context::default()
            },
            ..Dispatch::own(account, subject, message)
        };
        let is_taken = self.deliver_to_groups_alone(&mut missed, groups);
        if !is_taken {
            K::redeliver_missed(&mut self.shared, account, subject, message);
        }
        is_taken
    }

    /// Selects the links that receive a message: each link with plain subscriptions, and for each group one
    /// link that has a member. Returns the names of the groups of which no route may receive it, each followed by a
    /// space: their members have just left, or all are leaf nodes of the cluster that it comes from.
    fn pick_links(
        &mut self,
        set: LinkSet,
        dispatch: &Dispatch<'_>,
        is_plain: bool,
        (groups, passed_on): (&[u8], u8),
    ) -> Vec<u8> {
        let Exchange {
            subs,
            sessions,
            random,
            links,
            shared,
            ..
        } = self;
        let (account, subject) = (dispatch.account, dispatch.subject);
        let (from, cluster) = (dispatch.origin.session, dispatch.origin.cluster);
        let links = &mut links[set];
        let mut memo = links.begin_message(account);
        links.renamed.clear();
        if set == LinkSet::Replies || is_marked_for(set, subject) {
            if let Some((session, renamed)) = K::reply_link(shared, set, account, subject) {
                links.pick(session.0);
                links.renamed = renamed;
            }
            return Vec::new();
        }
        let mut routers = std::mem::take(&mut links.routers);
        let mut missed = Vec::new();
        let route = routers.of(account).route(subject, &mut memo);
        if is_plain {
            for id in &route.plain {
                let sub = subs.get(*id);
                let session = sub.session();
                if reaches(sessions, session, from, (account, subject), b"")
                    && is_elsewhere(sessions, sub, cluster)
                {
                    links.pick(session);
                }
            }
        }
        let names = || groups.split(|b| *b == b' ').filter(|name| !name.is_empty());
        let is_route = matches!(set, LinkSet::Routes(_));
        let mut found = 0;
        for (group, members) in route.groups() {
            let name = group.name.as_slice();
            if groups.is_empty() || !names().any(|wanted| wanted == name) {
                continue;
            }
            found += 1;
            let to = (set, dispatch, (passed_on > 0).then_some(&*route.plain));
            let chosen = choose_member((sessions, subs), members, to, name, random);
            let picked = match chosen {
                Some(session) => {
                    let at = links.pick(session);
                    &mut links.picked[at].groups
                }
                None if !is_route => continue,
                None => &mut missed,
            };
            picked.extend_from_slice(name);
            picked.push(b' ');
        }
        if is_route && found < names().count() {
            let is_here = |name: &[u8]| route.groups().any(|(it, _)| it.name.as_slice() == name);
            for name in names().filter(|name| !is_here(name)) {
                missed.extend_from_slice(name);
                missed.push(b' ');
            }
        }
        links.memos[account.index()] = memo;
        links.routers = routers;
        missed
    }

    /// Lets the selected links show how often a message was passed on, if the other servers understand it.
    #[cold]
    fn mark_passed_on(&mut self, set: LinkSet, times: u8) {
        for one in &mut self.links[set].picked {
            let kind = &self.sessions[one.session as usize].kind;
            if !one.groups.is_empty() && kind.takes_passed_on() {
                one.groups = route::passed_on(&one.groups, times);
            }
        }
    }

    /// Queues a message for the selected links. Returns whether there were any.
    fn queue_for_links(&mut self, set: LinkSet, dispatch: &mut Dispatch<'_>) -> bool {
        let Exchange {
            sessions,
            outputs,
            links,
            access,
            shared,
            ..
        } = self;
        let Links {
            picked,
            start,
            line,
            renamed,
            ..
        } = &mut links[set];
        if picked.is_empty() {
            return false;
        }
        let message = dispatch.message;
        let marked = marked_reply::<K>(set, shared, dispatch, outputs.now);
        let is_marked = !marked.is_empty();
        let mut head = LinkHead {
            subject: first_of(renamed, dispatch.subject),
            reply: first_of(&marked, message.reply()),
            ..head_of(dispatch, access.name_of(dispatch.account))
        };
        let account = head.account;
        start.clear();
        for one in picked.iter() {
            let session = &mut sessions[one.session as usize];
            begin_line(set, start, &mut head, account, session.kind.names_account());
            let onward = onward_to(session, set, dispatch);
            if matches!(onward, Onward::Not) {
                continue;
            }
            outputs.mark_dirty(one.session, session);
            let before = session.out.pending_bytes();
            let takes_clusters = session.kind.takes_clusters();
            let cluster = dispatch.origin.cluster_if(takes_clusters);
            let is_usual = matches!(onward, Onward::AsItCame)
                && cluster.is_empty()
                && !is_marked
                && message.head.is_empty()
                && one.groups.is_empty()
                && (session.takes_headers || message.header_bytes == 0);
            match is_usual {
                true => message.write(&mut session.out, start, b""),
                false => {
                    let head = LinkHead {
                        cluster,
                        groups: &one.groups,
                        ..head
                    };
                    write_changed(session, set, head, message, onward, line);
                }
            }
            session.out_msgs += 1;
            session.out_bytes += message.payload_bytes() as u64;
            outputs.count_produced(one.session, session, before);
            if outputs.traces {
                if is_usual {
                    line.clear();
                    line.extend_from_slice(start);
                    line.extend_from_slice(message.args);
                }
                outputs.trace_sent(SessionId(one.session), line);
            }
        }
        true
    }

    /// Delivers a run of messages to all links with a matching subscription without a queue group, except to
    /// their origin.
    pub(super) fn deliver_run_to_links(
        &mut self,
        set: LinkSet,
        intake: &Intake<'_>,
        run: &[RunMessage],
    ) {
        K::announce_interest(self, set);
        let Exchange {
            routers,
            subs,
            sessions,
            outputs,
            links,
            access,
            ..
        } = self;
        let account = intake.account;
        let subject = routers[account].route_of(intake.memo).subject();
        let links = &mut links[set];
        let mut memo = links.begin_message(account);
        let mut wanted = std::mem::take(&mut links.routers);
        for id in &wanted.of(account).route(subject, &mut memo).plain {
            let session = subs.get(*id).session();
            let from = intake.origin.session;
            if reaches(sessions, session, from, (account, subject), b"") {
                links.pick(session);
            }
        }
        links.memos[account.index()] = memo;
        links.routers = wanted;
        links.start.clear();
        let name = access.name_of(account);
        let mut head = LinkHead {
            cluster: b"",
            account: name,
            subject,
            reply: b"",
            groups: b"",
            header_bytes: 0,
            total_bytes: 0,
        };
        let Links { picked, start, .. } = links;
        for one in picked.iter() {
            let session = &mut sessions[one.session as usize];
            begin_line(set, start, &mut head, name, session.kind.names_account());
            outputs.mark_dirty(one.session, session);
            let before = session.out.pending_bytes();
            for message in run {
                let tail = &intake.chunk[message.tail.clone()];
                session.out.append3(start, b"", tail);
                session.out_msgs += 1;
                session.out_bytes += message.payload_bytes;
            }
            outputs.count_produced(one.session, session, before);
        }
    }

    /// Delivers a message to the links of one set alone.
    #[cold]
    pub(crate) fn deliver_to_set(&mut self, set: LinkSet, dispatch: &mut Dispatch<'_>) {
        let mut only = RemoteSet::default();
        only.set(Remote::Links(set), true);
        self.targets.set_plain(only);
        let to = (dispatch.account, dispatch.subject);
        let from = (None, dispatch.origin.cluster);
        (self.targets).post(&mut self.outgoing, to, dispatch.message, 0, from);
        if self.targets.has_links() {
            self.deliver_to_links(dispatch);
        }
        self.settle_if_needed(None);
    }

    /// Announces the combined interest of a link set in a filter to the other shards. `count` is the number of the
    /// links' subscriptions that the router has reported for the change.
    pub(crate) fn announce_links_interest(
        &mut self,
        set: LinkSet,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
        count: Option<u32>,
    ) {
        match set {
            LinkSet::Leafs => self.report_below(account, filter, queue),
            LinkSet::Routes(lane) => self.report_beyond(lane, account, filter, queue),
            LinkSet::Gateways | LinkSet::Replies => {}
        }
        let weight = match (queue, count) {
            ([], Some(count)) => count.min(1),
            _ => self.weight_at_links(set, account, filter, queue),
        };
        let remote = Remote::Links(set);
        let router = self.routers.changing(account);
        // The total interest is unchanged. But if a second link now has this interest, the first link must be
        // notified: until now it has received no announcement, because the interest was only its own.
        if !router.set_remote(remote, filter, queue, weight) {
            return router.record_remote_change(remote, filter, queue);
        }
        self.interest_changes += 1;
        self.announce(remote, account, filter, queue, weight);
    }

    /// Returns the combined weight of a filter at the links of a set. This shard must serve the set.
    fn weight_at_links(
        &mut self,
        set: LinkSet,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
    ) -> u32 {
        let members = self.links[set].routers.of(account).members(filter, queue);
        match queue {
            [] => u32::from(!members.is_empty()),
            _ => members.iter().fold(0, |sum: u32, member| {
                sum.saturating_add(self.subs.get(*member).weight())
            }),
        }
    }

    /// Returns the weights of a filter at the leaf nodes for which this server is the hub. This shard must serve
    /// leaf nodes.
    pub(crate) fn weights_below(
        &self,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
    ) -> ClusterWeights {
        self.weights_of(LinkSet::Leafs, account, filter, queue)
    }

    /// Returns the weights of a filter at the links of a set, without hubs. This shard must serve the set.
    pub(super) fn weights_of(
        &self,
        set: LinkSet,
        account: AccountId,
        filter: &[u8],
        queue: &[u8],
    ) -> ClusterWeights {
        let router = self.links[set].routers.get(account);
        let members = router.map_or(&[][..], |router| router.members(filter, queue));
        let mut weights = BTreeMap::<&[u8], u32>::new();
        for sub in members.iter().map(|member| self.subs.get(*member)) {
            let kind = &self.sessions[sub.session() as usize].kind;
            if kind.is_upstream() {
                continue;
            }
            let weight = weights.entry(kind.cluster_of(sub.sid())).or_default();
            *weight = match queue {
                [] => 1,
                _ => weight.saturating_add(sub.weight()),
            };
        }
        let weights = weights.into_iter();
        weights
            .map(|(cluster, weight)| (cluster.into(), weight))
            .collect()
    }

    /// Reports the weight of a filter at leaf nodes to the other shards that serve routes, which announce it.
    fn report_below(&mut self, account: AccountId, filter: &[u8], queue: &[u8]) {
        let lane_shards = usize::from(self.targets.lane_shards());
        if lane_shards < 2 || self.config.routes.is_none() {
            return;
        }
        let report = WeightBelow {
            account,
            filter: filter.into(),
            queue: queue.into(),
            weights: self.weights_below(account, filter, queue),
        };
        let others = self.outgoing.iter_mut().enumerate().take(lane_shards);
        for (_, batch) in others.filter(|(shard, _)| *shard != usize::from(self.index)) {
            batch.push_notification(report.clone());
        }
    }

    /// Removes a subscription of a link. Returns its account and filter.
    pub(crate) fn drop_link_subscription(
        &mut self,
        set: LinkSet,
        id: SubId,
    ) -> (AccountId, Vec<u8>) {
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        session.uncount_subscription(sub.queue());
        let account = session.kind.account_of(sub.sid());
        let account = account.unwrap_or(session.account);
        let queue = sub.queue().to_vec();
        let router = self.links[set].routers.of(account);
        let filter = router.filter_of(sub);
        let mut left = None;
        router.unsubscribe(&mut self.subs, id, |_, _, count| left = Some(count));
        self.record_unsubscribed();
        self.announce_links_interest(set, account, &filter, &queue, left);
        (account, filter)
    }
}

/// Returns the first line of a message in its usual form.
fn head_of<'a>(dispatch: &Dispatch<'a>, account: &'a [u8]) -> LinkHead<'a> {
    let message = dispatch.message;
    LinkHead {
        cluster: b"",
        account,
        subject: dispatch.subject,
        reply: message.reply(),
        groups: b"",
        header_bytes: message.header_bytes,
        total_bytes: message.payload_bytes(),
    }
}

/// Records in the trace of a message that it crosses a link. Returns how it is sent.
#[inline]
fn onward_to<K: Kind>(session: &Session<K>, set: LinkSet, dispatch: &mut Dispatch<'_>) -> Onward {
    match dispatch.context.trace.as_deref_mut() {
        Some(trace) => {
            let traced_as = session.kind.traced_as();
            trace.record_link(session, set, dispatch.account, traced_as)
        }
        None => Onward::AsItCame,
    }
}

/// Returns the reply subject of a message with the mark that precedes it on the links of a set; empty without one.
#[inline]
fn marked_reply<K: Kind>(
    set: LinkSet,
    shared: &mut K::Shared,
    dispatch: &Dispatch<'_>,
    now: Duration,
) -> Vec<u8> {
    let reply = dispatch.message.reply();
    let mark = match set {
        _ if reply.is_empty() => Vec::new(),
        LinkSet::Routes(_) => dispatch.message.mark.to_vec(),
        LinkSet::Gateways => K::reply_mark(shared, dispatch.account, reply, now),
        LinkSet::Leafs | LinkSet::Replies => Vec::new(),
    };
    match mark.is_empty() {
        true => mark,
        false => [&mark, reply].concat(),
    }
}

/// Returns the first text, unless it is empty, otherwise the second one.
fn first_of<'a>(one: &'a [u8], other: &'a [u8]) -> &'a [u8] {
    if one.is_empty() { other } else { one }
}

/// Writes the start of a message's line, unless it is there already. `account` is its account, which the lines
/// of some links contain.
fn begin_line<'a>(
    set: LinkSet,
    start: &mut Vec<u8>,
    head: &mut LinkHead<'a>,
    account: &'a [u8],
    is_named: bool,
) {
    let named = if is_named { account } else { b"" };
    if start.is_empty() || head.account != named {
        head.account = named;
        start.clear();
        set.write_start(start, head);
    }
}

/// Returns whether a subscription is not that of leaf nodes of this cluster.
fn is_elsewhere<K: Kind>(sessions: &Slab<Session<K>>, sub: &Subscription, cluster: &[u8]) -> bool {
    let kind = &sessions[sub.session() as usize].kind;
    cluster.is_empty() || kind.cluster_of(sub.sid()) != cluster
}

/// Selects the link that receives a message for the group `name` with these members; `None` if no link may. `received`
/// are the plain subscriptions of all links that match its subject, if the message was passed on.
fn choose_member<K: Kind>(
    (sessions, subs): (&Slab<Session<K>>, &Subscriptions),
    members: &[Member],
    (set, dispatch, received): (LinkSet, &Dispatch<'_>, Option<&[SubId]>),
    name: &[u8],
    random: &mut FastRandom,
) -> Option<u32> {
    let (origin, to) = (dispatch.origin, (dispatch.account, dispatch.subject));
    let is_elsewhere = |sub: &&Subscription| is_elsewhere(sessions, sub, origin.cluster);
    let members = members.iter().filter_map(|member| match member {
        Member::Local(id) => Some(subs.get(*id)),
        Member::Remote { .. } => None,
    });
    let members = members.filter(is_elsewhere);
    let may_have = |sub: &&Subscription| reaches(sessions, sub.session(), origin.session, to, name);
    // Most servers would deliver a message that was passed on to their plain subscriptions again.
    let takes_it = |sub: &&Subscription| {
        let is_same = |id: &SubId| subs.get(*id).session() == sub.session();
        received.is_none_or(|received| {
            let kind = &sessions[sub.session() as usize].kind;
            kind.takes_passed_on() || !received.iter().any(is_same)
        })
    };
    let usual = members.clone().filter(may_have).filter(takes_it);
    if set == LinkSet::Gateways {
        return nearest(usual, sessions).map(Subscription::session);
    }
    let is_route = matches!(set, LinkSet::Routes(_));
    // A leaf node behind a peer is chosen only if no client there is a member.
    let is_direct = |sub: &&Subscription| {
        let kind = &sessions[sub.session() as usize].kind;
        is_route && kind.cluster_of(sub.sid()).is_empty()
    };
    let chosen = by_weight(usual.clone().filter(is_direct), random);
    let chosen = chosen.or_else(|| by_weight(usual, random));
    // A message from a route comes here only if this server's last member has left. Then the remaining members may
    // be at the sender itself.
    let is_open = |sub: &&Subscription| sessions[sub.session() as usize].ending.is_none();
    let chosen = chosen.or_else(|| match origin.via {
        Via::Route if is_route => by_weight(members.filter(is_open), random),
        _ => None,
    });
    chosen.map(Subscription::session)
}

/// Selects one member of a group, with a probability in proportion to its weight.
fn by_weight<'a>(
    mut members: impl Iterator<Item = &'a Subscription> + Clone,
    random: &mut FastRandom,
) -> Option<&'a Subscription> {
    let weights = members.clone().map(Subscription::weight);
    let mut ticket = random.ticket(weights.fold(0, u32::saturating_add));
    members.find(|member| ticket.is_held_by(member.weight()))
}

/// Selects the member that answers pings first.
fn nearest<'a, K: Kind>(
    members: impl Iterator<Item = &'a Subscription>,
    sessions: &Slab<Session<K>>,
) -> Option<&'a Subscription> {
    members.min_by_key(|member| {
        let rtt = sessions[member.session() as usize].rtt;
        rtt.unwrap_or(Duration::MAX)
    })
}

/// Returns whether a subject is that of a response from another cluster, for a server that a route leads to.
#[inline]
fn is_marked_for(set: LinkSet, subject: &[u8]) -> bool {
    matches!(set, LinkSet::Routes(_)) && ReplyMark::split(subject).is_some()
}

/// Returns whether a link may receive a message.
fn reaches<K: Kind>(
    sessions: &Slab<Session<K>>,
    id: u32,
    from: Option<u32>,
    (account, subject): (AccountId, &[u8]),
    group: &[u8],
) -> bool {
    let session = &sessions[id as usize];
    let origin = from.and_then(|from| sessions.get(from as usize));
    from != Some(id)
        && session.ending.is_none()
        && (session.kind).may_forward(origin.map(|origin| &origin.kind), account, subject, group)
}

/// Queues a message for a link in a form that differs from the received one.
fn write_changed<K: Kind>(
    session: &mut Session<K>,
    set: LinkSet,
    head: LinkHead<'_>,
    message: &Message<'_>,
    onward: Onward,
    line: &mut Vec<u8>,
) {
    let mut reply = head.reply.to_vec();
    let shown = message.head.strip_prefix(b"HMSG ").unwrap_or_default();
    if !shown.is_empty() && !reply.is_empty() {
        reply.push(b'@');
        reply.extend_from_slice(shown.trim_ascii_end());
    }
    let mut anew = Vec::new();
    let (body, header_bytes, shared) = match onward {
        Onward::Over(hop) => {
            let header_bytes = write_with_hop(message, &hop, &mut anew);
            (&anew[..], header_bytes, None)
        }
        Onward::AsItCame | Onward::Not => {
            (message.body, message.header_bytes, message.shared.as_ref())
        }
    };
    let skipped = match session.takes_headers {
        true => 0,
        false => header_bytes,
    };
    let head = LinkHead {
        reply: &reply,
        header_bytes: header_bytes - skipped,
        total_bytes: body.len() - 2 - skipped,
        ..head
    };
    line.clear();
    set.write_head(line, &head);
    session.out.append(line);
    match shared {
        Some((chunk, range)) => session.out.refer(chunk, range.start + skipped..range.end),
        None => session.out.append(&body[skipped..]),
    }
}

/// Writes the headers with the trace's hop to the other server, then the rest of the body. Returns the length
/// of the headers.
fn write_with_hop(message: &Message<'_>, hop: &str, body: &mut Vec<u8>) -> usize {
    let (headers, rest) = message.body.split_at(message.header_bytes);
    body.reserve(message.body.len() + HOP.len() + hop.len() + 4);
    let block = Block::like(body, headers).add(HOP, hop.as_bytes());
    // The new hop contains the earlier hops, so it replaces their header.
    let block = block.copy(headers, |name| name != HOP.as_bytes());
    let header_bytes = block.end().len();
    body.extend_from_slice(rest);
    header_bytes
}
