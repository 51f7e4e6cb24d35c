//! From one account to another: where a topic's route leads over a bridge, the message is published once
//! more at its other end.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::deliver::{Message, Origin};
use super::latency::Outcome;
pub(super) use super::mappings::Mapped;
use super::mappings::Mappings;
use super::requests::{Request, Requests};
use super::verbs::Intake;
use super::{Exchange, Shard};
use crate::auth::{Access, AccountId};
use crate::codec::nats::args::write_sizes;
use crate::codec::nats::parse::Publish;
use crate::exchange::router::{
    BridgeKind, Exit, RouteMemo, Terms, bridges, has_services, replies_of,
};

/// Over how many bridges one message goes at most. What is behind the last one does not get it.
pub(super) const BRIDGES_MAX: u8 = 8;

/// The header that tells who answers who asks.
const REQUEST_INFO: &str = "Nats-Request-Info: ";

/// What a shard needs to go from account to account.
#[derive(Default)]
pub(super) struct Bridging {
    pub(super) requests: Requests,
    /// By account.
    mappings: Vec<Option<Box<Mappings>>>,
    /// Over how many bridges the message at hand has gone.
    depth: u8,
    /// Groups that have it already, in the accounts where it was before.
    served: Vec<Vec<u8>>,
    /// Where requests are put together.
    frame: Vec<u8>,
    /// Where topics are given other names.
    renamed: Vec<u8>,
}

impl Bridging {
    /// Whether a group has had the message at hand in another account.
    #[inline]
    pub(super) fn is_served(&self, group: &[u8]) -> bool {
        !self.served.is_empty() && self.served.iter().any(|name| name == group)
    }

    /// These groups have had it.
    pub(super) fn note_served(&mut self, groups: impl IntoIterator<Item = Vec<u8>>) {
        self.served.extend(groups);
    }

    /// Whether what is published in an account may have other names.
    pub(super) fn is_mapped(&self, account: AccountId) -> bool {
        let found = self.mappings.get(account.index());
        found.is_some_and(Option::is_some)
    }
}

impl Shard {
    /// The groups of a route that are served here this time, and those that are left to their members in
    /// the accounts that it leads to.
    pub(super) fn share_groups(
        &mut self,
        account: AccountId,
        memo: RouteMemo,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (mut kept, mut left) = (Vec::new(), Vec::new());
        let groups = self.exchange.routers[account].held_route(memo).groups();
        let own: Vec<_> = groups
            .map(|(group, _)| (group.name.as_slice().to_vec(), group.weight))
            .collect();
        if own.is_empty() {
            return (kept, left);
        }
        let mut exits = self.exchange.routers[account].take_exits(memo);
        for (name, weight) in own {
            let streams = exits
                .iter_mut()
                .filter(|exit| exit.kind == BridgeKind::Stream);
            let beyond: u32 = streams
                .map(|exit| self.exchange.routers.weight_of(exit, &name))
                .sum();
            match self.exchange.random.below(weight.saturating_add(beyond)) < weight {
                true => kept.push(name),
                false => left.push(name),
            }
        }
        self.exchange.routers[account].restore_exits(memo, exits);
        (kept, left)
    }

    /// Says what leads from account to account from now on, and which topics have other names.
    pub(super) fn set_accounts(&mut self, access: &Access) {
        let accounts = access.accounts();
        self.set_quotas(access);
        let ways = bridges(access, self.exchange.index);
        for ((id, account), ways) in (0..).map(AccountId).zip(accounts).zip(ways) {
            let router = self.exchange.routers.of(id);
            router.set_bridges(ways);
            let weight = u32::from(has_services(id, account));
            for shard in
                (0..self.exchange.config.shards).filter_map(|shard| u16::try_from(shard).ok())
            {
                if shard != self.exchange.index {
                    router.set_remote(shard, &replies_of(shard), b"", weight);
                }
            }
        }
        let has_jetstream = self.exchange.info.jetstream;
        self.bridging.mappings = (0..)
            .map(AccountId)
            .zip(accounts)
            .map(|(id, account)| {
                // What was configured for the account itself comes first.
                let mut mappings = account.mappings.clone();
                mappings.extend(access.domain_mappings(id, has_jetstream));
                Mappings::new(&mappings)
            })
            .collect();
    }

    /// Gives a topic of an account its other name, if it has one.
    pub(super) fn rename(
        &mut self,
        account: AccountId,
        topic: &[u8],
        renamed: &mut Vec<u8>,
    ) -> Mapped {
        let found = self.bridging.mappings.get(account.index());
        match found {
            Some(Some(mappings)) => mappings.apply(topic, &mut self.exchange.random, renamed),
            _ => Mapped::Unchanged,
        }
    }

    /// Takes a message whose topic may have another name.
    #[cold]
    pub(super) fn publish_mapped(
        &mut self,
        intake: &mut Intake<'_>,
        publish: &Publish<'_>,
        from: usize,
    ) {
        let mut renamed = std::mem::take(&mut self.bridging.renamed);
        match self.rename(intake.account, publish.topic, &mut renamed) {
            Mapped::Unchanged => self.publish_as(intake, publish, from),
            Mapped::Renamed => {
                self.trace_mapping(&renamed);
                let publish = Publish {
                    topic: &renamed,
                    ..publish.clone()
                };
                self.publish_as(intake, &publish, from);
            }
            Mapped::Lost => intake.count(publish),
        }
        self.bridging.renamed = renamed;
    }

    /// Publishes a message at the other end of each bridge that its route leads over. Returns whether
    /// anybody is there.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_bridges(
        &mut self,
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        origin: Origin<'_>,
        memo: RouteMemo,
    ) -> bool {
        if self.bridging.depth == BRIDGES_MAX {
            return false;
        }
        self.bridging.depth += 1;
        // In another account nothing is kept of what a device has published in this one.
        let bits = std::mem::take(&mut self.exchange.pending.origin_bits);
        let mut exits = self.exchange.routers[account].take_exits(memo);
        let mut delivered = false;
        for exit in &mut exits {
            let is_heard = match exit.kind {
                BridgeKind::Stream => {
                    self.trace_export(account, exit, topic);
                    let is_heard = self.pass_on(exit, message);
                    self.trace_return();
                    is_heard
                }
                // Another message begins, with groups of its own.
                BridgeKind::Service(terms) => {
                    self.trace_import(exit, topic);
                    let is_heard = self
                        .without_served(|shard| shard.ask(account, exit, terms, message, origin));
                    self.trace_return();
                    is_heard
                }
                BridgeKind::Replies => {
                    self.without_served(|shard| shard.pass_answer(account, topic, message, origin))
                }
            };
            let may_be_skipped = match exit.kind {
                BridgeKind::Stream => true,
                // It is reported each time that nobody is there.
                BridgeKind::Service(terms) => terms.measured.is_none(),
                BridgeKind::Replies => false,
            };
            if !is_heard && may_be_skipped {
                self.exchange.routers.note_unheard(exit);
            }
            delivered |= is_heard;
        }
        self.exchange.routers[account].put_exits(memo, topic, exits);
        self.bridging.depth -= 1;
        self.exchange.pending.origin_bits = bits;
        if self.bridging.depth == 0 {
            self.forget_served();
        }
        delivered
    }

    /// The message at hand is done with.
    pub(super) fn forget_served(&mut self) {
        self.bridging.served.clear();
    }

    fn without_served(&mut self, act: impl FnOnce(&mut Shard) -> bool) -> bool {
        let served = std::mem::take(&mut self.bridging.served);
        let delivered = act(self);
        self.bridging.served = served;
        delivered
    }

    /// Publishes a message as it is in the account of an exit.
    fn pass_on(&mut self, exit: &mut Exit, message: &Message<'_>) -> bool {
        let delivered = self.fan_out(
            exit.account,
            &exit.topic,
            message,
            Origin::ELSEWHERE,
            &mut exit.memo,
        );
        let groups = self.exchange.routers.groups_of(exit);
        self.bridging.note_served(groups);
        delivered
    }

    /// The same for a message that another shard has passed on: all that was left for here is to see
    /// whether it is an answer.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_answers(
        &mut self,
        account: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        memo: RouteMemo,
    ) {
        let route = self.exchange.routers[account].held_route(memo);
        let is_answer = |exit: &Exit| exit.kind == BridgeKind::Replies;
        if route.exits().iter().any(is_answer) {
            self.pass_answer(account, topic, message, Origin::ELSEWHERE);
        }
    }

    /// Publishes a request in the account that answers it, with a reply that leads back.
    fn ask(
        &mut self,
        importer: AccountId,
        exit: &mut Exit,
        terms: Terms,
        message: &Message<'_>,
        origin: Origin<'_>,
    ) -> bool {
        let exporter = exit.account;
        let measure = self.measure((importer, exporter), terms, message, origin);
        let mut measure = measure.map(Box::new);
        let mut frame = std::mem::take(&mut self.bridging.frame);
        frame.clear();
        let reply = &message.args[..message.reply_bytes];
        let mut waiting = None;
        if !reply.is_empty() {
            let request = Request {
                importer,
                exporter,
                reply,
                terms,
            };
            let requests = &mut self.bridging.requests;
            let (key, now) = (self.exchange.secrets.number(), self.exchange.pending.now);
            let at = requests.expect(request, measure.take(), key, now);
            requests.write_topic(at, self.exchange.index, &mut frame);
            waiting = Some(at);
        }
        let reply_bytes = frame.len();
        let (headers, payload) = message.body.split_at(message.header_bytes);
        let mut info = self.request_info(importer, terms.share, origin);
        if exporter == AccountId::SYSTEM && terms.share {
            info = info.and_then(|info| self.with_rights(&info, origin));
        }
        let headers = with_info(headers, info.as_deref());
        if !frame.is_empty() {
            frame.push(b' ');
        }
        write_sizes(&mut frame, headers.len(), headers.len() + payload.len() - 2);
        let args_bytes = frame.len();
        frame.extend_from_slice(&headers);
        frame.extend_from_slice(payload);
        let request = Message {
            head: &[],
            reply_bytes,
            header_bytes: headers.len(),
            args: &frame[..args_bytes],
            body: &frame[args_bytes..],
            tail: &frame,
            shared: None,
        };
        let Exit { topic, memo, .. } = exit;
        let delivered = self.fan_out(exporter, topic, &request, Origin::ELSEWHERE, memo);
        self.bridging.frame = frame;
        let mut outcome = Outcome::NoReply;
        if let Some(at) = waiting.filter(|_| !delivered) {
            let forgotten = self.bridging.requests.forget(at);
            measure = forgotten.and_then(|waiting| waiting.measure);
            outcome = Outcome::Unserved;
        }
        if let Some(measure) = measure {
            self.report(exporter, &measure, outcome, Origin::ELSEWHERE);
        }
        delivered
    }

    /// Gives an answer to who has asked.
    fn pass_answer(
        &mut self,
        exporter: AccountId,
        topic: &[u8],
        message: &Message<'_>,
        origin: Origin<'_>,
    ) -> bool {
        let requests = &mut self.bridging.requests;
        let Some(at) = requests.find(topic, exporter) else {
            return false;
        };
        let Some(waiting) = requests.answered(at) else {
            return false;
        };
        let importer = waiting.importer;
        let mut memo = waiting.memo;
        let is_last = waiting.ends_with(message.payload_bytes());
        let reply = std::mem::take(&mut waiting.reply);
        let measure = waiting.measure.take();
        if is_last {
            requests.forget(at);
        }
        let delivered = self.fan_out(importer, &reply, message, Origin::ELSEWHERE, &mut memo);
        if !is_last && let Some(waiting) = self.bridging.requests.answered(at) {
            waiting.reply = reply;
            waiting.memo = memo;
        }
        if let Some(measure) = measure {
            self.report(exporter, &measure, Outcome::Answered, origin);
        }
        delivered
    }

    /// Who asks, as JSON; nothing when it is nobody of this shard.
    pub(super) fn request_info(
        &self,
        account: AccountId,
        is_detailed: bool,
        origin: Origin<'_>,
    ) -> Option<String> {
        let session = self.exchange.sessions.get(origin.session? as usize)?;
        let account = self.exchange.access.account(account)?;
        let mut info = RequestInfo {
            acc: &account.name,
            rtt: session.rtt.map(|rtt| rtt.as_nanos()),
            ..RequestInfo::default()
        };
        if is_detailed {
            info = RequestInfo {
                host: Some(&session.peer.ip),
                id: Some(session.cid),
                user: Some(session.user()),
                name: Some(&session.options.name),
                lang: Some(&session.options.lang),
                ver: Some(&session.options.version),
                server: Some(&self.exchange.info.server_id),
                kind: Some("Client"),
                client_type: Some("nats"),
                ..info
            };
        }
        serde_json::to_string(&info).ok()
    }

    /// The same with what concerns the server alone, which tells it to nobody else: what he who asks may do,
    /// for how long, and how his token calls him.
    fn with_rights(&self, info: &str, origin: Origin<'_>) -> Option<String> {
        let session = self.exchange.sessions.get(origin.session? as usize)?;
        let mut info: Value = serde_json::from_str(info).ok()?;
        if let Some(tag) = session.grant.tag() {
            info["user_name"] = tag.into();
        }
        if let Some(rights) = &session.grant.rights {
            info["permissions"] = rights.shown();
        }
        if let Some(at) = session.expires_at {
            let left = at.saturating_sub(self.exchange.pending.now).as_nanos();
            info["expires"] = u64::try_from(left).unwrap_or(u64::MAX).into();
        }
        Some(info.to_string())
    }

    /// Forgets the requests whose time is over.
    pub(super) fn expire_requests(&mut self, now: Duration) {
        let Shard {
            bridging,
            exchange: Exchange { routers, .. },
            ..
        } = self;
        bridging.requests.expire(now, |account, reply| {
            let route = routers.of(account).route(reply, &mut RouteMemo::default());
            !route.is_empty()
        });
        for (exporter, measure, outcome) in self.bridging.requests.take_unanswered() {
            self.report(exporter, &measure, outcome, Origin::ELSEWHERE);
        }
    }
}

/// Who asks, in nats-server's words.
#[derive(Default, Serialize)]
struct RequestInfo<'a> {
    #[serde(skip_serializing_if = "is_empty")]
    host: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    acc: &'a str,
    #[serde(skip_serializing_if = "is_empty")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    lang: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    ver: Option<&'a str>,
    /// In nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt: Option<u128>,
    #[serde(skip_serializing_if = "is_empty")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    kind: Option<&'a str>,
    #[serde(skip_serializing_if = "is_empty")]
    client_type: Option<&'a str>,
}

#[allow(
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    reason = "serde asks for a reference"
)]
fn is_empty(text: &Option<&str>) -> bool {
    text.is_none_or(str::is_empty)
}

/// The same headers with who asks; what the asker says of himself does not count.
fn with_info(headers: &[u8], info: Option<&str>) -> Vec<u8> {
    let Some(info) = info else {
        return headers.to_vec();
    };
    let mut lines = headers.split_inclusive(|b| *b == b'\n');
    let mut made = lines.next().unwrap_or(b"NATS/1.0\r\n").to_vec();
    for line in lines {
        let is_end = line.trim_ascii_end().is_empty();
        let name = line.get(..REQUEST_INFO.len() - 1).unwrap_or_default();
        let is_info = name.eq_ignore_ascii_case(REQUEST_INFO.trim_end().as_bytes());
        if !is_end && !is_info {
            made.extend_from_slice(line);
        }
    }
    made.extend_from_slice(REQUEST_INFO.as_bytes());
    made.extend_from_slice(info.as_bytes());
    made.extend_from_slice(b"\r\n\r\n");
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_told_once() {
        let check = |headers: &str, expected: &str| {
            let made = with_info(headers.as_bytes(), Some("{}"));
            assert_eq!(String::from_utf8(made).unwrap(), expected);
        };
        check("", "NATS/1.0\r\nNats-Request-Info: {}\r\n\r\n");
        check(
            "NATS/1.0\r\nA: b\r\nnats-request-info: me\r\nC: d\r\n\r\n",
            "NATS/1.0\r\nA: b\r\nC: d\r\nNats-Request-Info: {}\r\n\r\n",
        );
        assert_eq!(with_info(b"", None), b"");
    }
}
