//! Links to other servers: what they want, and what is delivered to them, each link once.

use slab::Slab;

use super::Exchange;
use super::deliver::{Kind, Waiting};
use super::message::{Dispatch, Message};
use super::outputs::Outputs;
use super::router::{LEAFS, Member, Route, RouteMemo, Routers, SubId, Subscription};
use super::run::Intake;
use super::session::{Session, SessionId};
use super::tracing::{Onward, Traced};
use crate::auth::AccountId;
use crate::codec::leaf::write_head;
use crate::headers::Block;
use crate::outbox::Outbox;
use crate::random::FastRandom;
use crate::trace::HOP;

/// What links want, and the message that is being delivered to them.
#[derive(Default)]
pub(crate) struct Links {
    /// What each link wants, by account.
    pub(crate) routers: Routers,
    /// Where the last message went, by account.
    memos: Vec<RouteMemo>,
    /// The number of the message, and the links that get it.
    message: u64,
    picked: Vec<Picked>,
    /// By session: the last message for which it was picked, and where in the list.
    marks: Vec<(u64, usize)>,
    /// A line that is put together.
    line: Vec<u8>,
}

/// A link that gets the message.
struct Picked {
    session: u32,
    /// The groups of which one member there gets it, each ended by a space.
    groups: Vec<u8>,
}

impl Links {
    /// How many subscriptions of links match a subject without a queue.
    pub(super) fn width(&mut self, account: AccountId, subject: &[u8]) -> usize {
        let mut memo = RouteMemo::default();
        self.routers
            .of(account)
            .route(subject, &mut memo)
            .plain
            .len()
    }

    fn begin_message(&mut self, account: AccountId) {
        self.message += 1;
        self.picked.clear();
        if self.memos.len() <= account.index() {
            self.memos.resize(account.index() + 1, RouteMemo::default());
        }
    }

    /// Picks a link; returns where it is among those picked.
    fn pick(&mut self, session: u32) -> usize {
        let at = session as usize;
        if self.marks.len() <= at {
            self.marks.resize(at + 1, (0, 0));
        }
        let (message, place) = &mut self.marks[at];
        if std::mem::replace(message, self.message) != self.message {
            *place = self.picked.len();
            self.picked.push(Picked {
                session,
                groups: Vec::new(),
            });
        }
        *place
    }
}

impl<K: Kind> Exchange<K> {
    /// Delivers a message to the links that the targets were set for, but not to the one that it came from.
    /// Returns whether there was any.
    #[inline(never)]
    pub(super) fn deliver_to_links(&mut self, dispatch: &mut Dispatch<'_>) -> bool {
        let (is_plain, groups) = self.targets.take_leafs();
        K::announce_interest(self);
        let Exchange {
            subs,
            sessions,
            pending,
            random,
            links,
            ..
        } = self;
        let (account, subject) = (dispatch.account, dispatch.subject);
        let from = dispatch.origin.session;
        links.begin_message(account);
        let mut memo = links.memos[account.index()];
        let mut routers = std::mem::take(&mut links.routers);
        let route = routers.of(account).route(subject, &mut memo);
        if is_plain {
            for id in &route.plain {
                let session = subs.get(*id).session();
                if reaches(sessions, session, from, subject, b"") {
                    links.pick(session);
                }
            }
        }
        let names = || groups.split(|b| *b == b' ').filter(|name| !name.is_empty());
        for (group, members) in route.groups() {
            let name = group.name.as_slice();
            if groups.is_empty() || !names().any(|wanted| wanted == name) {
                continue;
            }
            let may_have = |sub: &&Subscription| {
                let session = sub.session();
                reaches(sessions, session, from, subject, name)
            };
            let members = members.iter().filter_map(|member| match member {
                Member::Local(id) => Some(subs.get(*id)),
                Member::Remote { .. } => None,
            });
            let chosen = by_weight(members.filter(may_have), random);
            if let Some(session) = chosen.map(Subscription::session) {
                let at = links.pick(session);
                links.picked[at].groups.extend_from_slice(name);
                links.picked[at].groups.push(b' ');
            }
        }
        for one in &links.picked {
            let session = &mut sessions[one.session as usize];
            let trace = dispatch.context.trace.as_deref_mut();
            let line = &mut links.line;
            queue(one, session, pending, route, dispatch.message, trace, line);
        }
        links.memos[account.index()] = memo;
        links.routers = routers;
        !links.picked.is_empty()
    }

    /// Delivers messages of a run to all links that want them without a queue, but not to the one that they came
    /// from.
    pub(super) fn deliver_run_to_links(&mut self, intake: &Intake<'_>, run: &[Waiting]) {
        K::announce_interest(self);
        let Exchange {
            routers,
            subs,
            sessions,
            pending,
            links,
            ..
        } = self;
        let account = intake.account;
        let subject = routers[account].held_route(intake.memo).subject();
        links.begin_message(account);
        let mut memo = links.memos[account.index()];
        let mut wanted = std::mem::take(&mut links.routers);
        let route = wanted.of(account).route(subject, &mut memo);
        for id in &route.plain {
            let session = subs.get(*id).session();
            if reaches(sessions, session, intake.origin.session, subject, b"") {
                links.pick(session);
            }
        }
        for one in &links.picked {
            let session = &mut sessions[one.session as usize];
            pending.mark_dirty(one.session, session);
            let before = session.out.pending_bytes();
            for waiting in run {
                let tail = &intake.chunk[waiting.tail.clone()];
                session.out.append3(b"L", route.msg_head(), tail);
                session.out_msgs += 1;
                session.out_bytes += waiting.payload_bytes;
            }
            pending.count_produced(one.session, session, before);
        }
        links.memos[account.index()] = memo;
        links.routers = wanted;
    }

    /// Announces what the links together want under a filter now.
    pub(crate) fn note_links_interest(&mut self, account: AccountId, filter: &[u8], queue: &[u8]) {
        let members = self.links.routers.of(account).members(filter, queue);
        let weight = match queue {
            [] => u32::from(!members.is_empty()),
            _ => members.iter().fold(0, |sum: u32, member| {
                sum.saturating_add(self.subs.get(*member).weight())
            }),
        };
        let router = self.routers.of(account);
        // A second link that wants the same is news to the first, and to nobody else.
        if router.leafs_weight(filter, queue) == weight {
            return router.note_news(filter, queue);
        }
        router.set_remote(LEAFS, filter, queue, weight);
        self.interest_changes += 1;
        self.announce(LEAFS, account, filter, queue, weight);
    }

    /// Ends a subscription of a link. Returns its account and filter.
    pub(crate) fn drop_link_subscription(&mut self, id: SubId) -> (AccountId, Vec<u8>) {
        let sub = self.subs.get(id);
        let session = &mut self.sessions[sub.session() as usize];
        session.subscriptions = session.subscriptions.saturating_sub(1);
        let account = session.account;
        let queue = sub.queue().to_vec();
        let router = self.links.routers.of(account);
        let filter = router.filter_of(sub);
        router.unsubscribe(&mut self.subs, id, |_, _, _| {});
        self.note_unsubscribed();
        self.note_links_interest(account, &filter, &queue);
        (account, filter)
    }
}

/// Queues the message for a link that was picked.
fn queue<K: Kind>(
    picked: &Picked,
    session: &mut Session<K>,
    pending: &mut Outputs,
    route: &Route,
    message: &Message<'_>,
    trace: Option<&mut Traced>,
    line: &mut Vec<u8>,
) {
    let onward = match trace {
        Some(trace) => trace.note_link(session, session.kind.traced_as()),
        None => Onward::AsItCame,
    };
    if matches!(onward, Onward::Not) {
        return;
    }
    pending.mark_dirty(picked.session, session);
    let before = session.out.pending_bytes();
    let takes_headers = session.takes_headers;
    let out = &mut session.out;
    let groups = &picked.groups;
    match onward {
        Onward::AsItCame | Onward::Not => {
            write(out, route, message, groups, takes_headers, line);
        }
        Onward::Over(hop) => {
            let (body, header_bytes) = with_hop(message, &hop);
            let message = Message {
                header_bytes,
                body: &body,
                tail: &[],
                shared: None,
                ..*message
            };
            write_anew(out, route, &message, groups, takes_headers, line);
        }
    }
    session.out_msgs += 1;
    session.out_bytes += message.payload_bytes() as u64;
    pending.count_produced(picked.session, session, before);
    if pending.traces {
        pending.trace_sent(SessionId(picked.session), line);
    }
}

/// One of the members of a group, by weight.
fn by_weight<'a>(
    mut members: impl Iterator<Item = &'a Subscription> + Clone,
    random: &mut FastRandom,
) -> Option<&'a Subscription> {
    let weights = members.clone().map(Subscription::weight);
    let mut ticket = random.ticket(weights.fold(0, u32::saturating_add));
    members.find(|member| ticket.is_held_by(member.weight()))
}

/// Whether a link may get a message.
fn reaches<K: Kind>(
    sessions: &Slab<Session<K>>,
    id: u32,
    from: Option<u32>,
    subject: &[u8],
    group: &[u8],
) -> bool {
    let session = &sessions[id as usize];
    let origin = from.and_then(|from| sessions.get(from as usize));
    from != Some(id)
        && session.ending.is_none()
        && (session.kind).may_forward(origin.map(|origin| &origin.kind), subject, group)
}

/// Queues a message for a link.
fn write(
    out: &mut Outbox,
    route: &Route,
    message: &Message<'_>,
    groups: &[u8],
    takes_headers: bool,
    line: &mut Vec<u8>,
) {
    let is_usual = message.head.is_empty()
        && groups.is_empty()
        && (takes_headers || message.header_bytes == 0);
    if is_usual {
        match message.header_bytes {
            0 => {
                out.append(b"L");
                message.write(out, route.msg_head(), b"");
            }
            _ => message.write(out, route.hmsg_head(), b""),
        }
        return;
    }
    write_anew(out, route, message, groups, takes_headers, line);
}

/// The same for one that does not go on in the form in which it came.
fn write_anew(
    out: &mut Outbox,
    route: &Route,
    message: &Message<'_>,
    groups: &[u8],
    takes_headers: bool,
    line: &mut Vec<u8>,
) {
    line.clear();
    let mut reply = message.args[..message.reply_bytes].to_vec();
    let shown = message.head.strip_prefix(b"HMSG ").unwrap_or_default();
    if !shown.is_empty() && !reply.is_empty() {
        reply.push(b'@');
        reply.extend_from_slice(shown.trim_ascii_end());
    }
    let skipped = match takes_headers {
        true => 0,
        false => message.header_bytes,
    };
    let (header_bytes, total) = (
        message.header_bytes - skipped,
        message.payload_bytes() - skipped,
    );
    write_head(line, route.subject(), &reply, groups, header_bytes, total);
    out.append(line);
    match &message.shared {
        Some((chunk, range)) => out.refer(chunk, range.start + skipped..range.end),
        None => out.append(&message.body[skipped..]),
    }
}

/// The headers of a message, with the hop over which it goes, and what follows them; how long the headers are.
fn with_hop(message: &Message<'_>, hop: &str) -> (Vec<u8>, usize) {
    let (headers, rest) = message.body.split_at(message.header_bytes);
    let mut body = Vec::with_capacity(message.body.len() + HOP.len() + hop.len() + 4);
    let block = Block::like(&mut body, headers).add(HOP, hop.as_bytes());
    // The new hop begins with that over which it came.
    let block = block.copy(headers, |name| name != HOP.as_bytes());
    let header_bytes = block.end().len();
    body.extend_from_slice(rest);
    (body, header_bytes)
}
