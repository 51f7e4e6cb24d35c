//! What goes to leafs: each link once.

use slab::Slab;

use super::super::deliver::Message;
use super::super::run::Waiting;
use super::super::session::{Session, SessionId};
use super::super::tracing::Onward;
use super::super::verbs::Intake;
use super::super::{Exchange, Pending, Random, Shard};
use super::{Leafs, Picked};
use crate::auth::AccountId;
use crate::codec::leaf::write_head;
use crate::exchange::router::{Member, Route, Subscription};
use crate::outbox::Outbox;
use crate::trace::HOP;

impl Shard {
    /// Gives the message at hand to the leafs that the crossings were set for, but not to the one that it
    /// came from. Returns whether there was any.
    #[inline(never)]
    pub(in crate::shard) fn give_to_leafs(
        &mut self,
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        from: Option<u32>,
    ) -> bool {
        let (is_plain, groups) = self.exchange.crossings.take_leafs();
        // An answer finds its way only if it is known who waits for it.
        self.tell_leafs();
        let Shard {
            leafs,
            exchange:
                Exchange {
                    subs,
                    sessions,
                    pending,
                    random,
                    ..
                },
            ..
        } = self;
        let Leafs {
            routers,
            seats,
            message: number,
            picked,
            line,
            ..
        } = leafs;
        let Some(seat) = seats.get_mut(&account) else {
            return false;
        };
        *number += 1;
        picked.clear();
        let route = routers.of(account).route(topic, &mut seat.memo);
        if is_plain {
            for id in &route.plain {
                let session = subs.get(*id).session();
                if reaches(sessions, session, from, topic, b"") {
                    pick(sessions, picked, session, *number);
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
                reaches(sessions, session, from, topic, name)
            };
            let members = members.iter().filter_map(|member| match member {
                Member::Local(id) => Some(subs.get(*id)),
                Member::Remote { .. } => None,
            });
            let chosen = by_weight(members.filter(may_have), random);
            if let Some(session) = chosen.map(|sub| sub.session()) {
                let at = pick(sessions, picked, session, *number);
                picked[at].groups.extend_from_slice(name);
                picked[at].groups.push(b' ');
            }
        }
        for one in picked.iter() {
            queue(one, sessions, pending, route, message, line);
        }
        !picked.is_empty()
    }

    /// Gives messages that were put aside to all leafs that want them without a queue, but not to the one
    /// that they came from.
    pub(in crate::shard) fn give_run_to_leafs(&mut self, intake: &Intake<'_>, run: &[Waiting]) {
        self.tell_leafs();
        let Shard {
            leafs,
            exchange:
                Exchange {
                    routers,
                    subs,
                    sessions,
                    pending,
                    ..
                },
            ..
        } = self;
        let Some(seat) = leafs.seats.get_mut(&intake.account) else {
            return;
        };
        let topic = routers[intake.account].held_route(intake.memo).topic();
        let wanted = leafs.routers.of(intake.account);
        let route = wanted.route(topic, &mut seat.memo);
        leafs.message += 1;
        leafs.picked.clear();
        for id in &route.plain {
            let session = subs.get(*id).session();
            if reaches(sessions, session, intake.origin.session, topic, b"") {
                pick(sessions, &mut leafs.picked, session, leafs.message);
            }
        }
        for one in &leafs.picked {
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
    }
}

/// Queues the message for a leaf that was picked.
fn queue(
    picked: &Picked,
    sessions: &mut Slab<Session>,
    pending: &mut Pending,
    route: &Route,
    message: &Message<'_>,
    line: &mut Vec<u8>,
) {
    let Picked {
        session: id,
        groups,
    } = picked;
    let session = &mut sessions[*id as usize];
    let onward = match pending.watches {
        true => pending.watch_leaf(session),
        false => Onward::AsItCame,
    };
    if matches!(onward, Onward::Not) {
        return;
    }
    pending.mark_dirty(*id, session);
    let before = session.out.pending_bytes();
    let takes_headers = session.takes_headers;
    let out = &mut session.out;
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
    pending.count_produced(*id, session, before);
    if pending.traces {
        pending.trace_sent(SessionId::from_index(*id as usize), line);
    }
}

/// One of the members of a group, by weight.
fn by_weight<'a>(
    mut members: impl Iterator<Item = &'a Subscription> + Clone,
    random: &mut Random,
) -> Option<&'a Subscription> {
    let weights = members.clone().map(Subscription::weight);
    let mut ticket = random.below(weights.fold(0, u32::saturating_add));
    members.find(|member| match ticket.checked_sub(member.weight()) {
        Some(rest) => {
            ticket = rest;
            false
        }
        None => true,
    })
}

/// Whether a leaf may get a message.
fn reaches(
    sessions: &Slab<Session>,
    id: u32,
    from: Option<u32>,
    topic: &[u8],
    queue: &[u8],
) -> bool {
    let session = &sessions[id as usize];
    let leaf = session.leaf.as_ref();
    let origin = from.and_then(|from| sessions.get(from as usize)?.leaf.as_ref());
    from != Some(id)
        && session.ending.is_none()
        && leaf.is_some_and(|leaf| {
            !leaf.is_held()
                && origin.is_none_or(|origin| !origin.is_beside(leaf))
                && (leaf.rules.is_empty() || leaf.rules.may_give(topic, queue))
        })
}

/// Takes note of a leaf; returns where it is among those picked.
fn pick(sessions: &mut Slab<Session>, picked: &mut Vec<Picked>, id: u32, number: u64) -> usize {
    let Some(leaf) = &mut sessions[id as usize].leaf else {
        return 0;
    };
    if std::mem::replace(&mut leaf.picked_for, number) != number {
        leaf.picked_at = picked.len();
        picked.push(Picked {
            session: id,
            groups: Vec::new(),
        });
    }
    leaf.picked_at
}

/// Queues a message for a leaf.
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
    write_head(line, route.topic(), &reply, groups, header_bytes, total);
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
    for (at, line) in headers.split_inclusive(|b| *b == b'\n').enumerate() {
        let value = line.strip_prefix(HOP.as_bytes());
        // The new hop begins with that over which it came.
        if !value.is_some_and(|value| value.starts_with(b":")) {
            body.extend_from_slice(line);
        }
        if at == 0 {
            body.extend_from_slice(format!("{HOP}: {hop}\r\n").as_bytes());
        }
    }
    let header_bytes = body.len();
    body.extend_from_slice(rest);
    (body, header_bytes)
}
