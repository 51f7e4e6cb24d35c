//! Messages between accounts: imports, exports, mappings, and service latency.
//!
//! A bridge leads from the subjects of one account to those of another. If the route of a subject includes a
//! bridge, the message is also published in the account at the bridge's far end.

mod latency;
mod mappings;
mod request_info;
mod requests;
mod responder_half;
mod tracing;

use std::time::Duration;

pub(crate) use mappings::Mapped;
pub(crate) use requests::{Request, Requests};
pub(crate) use responder_half::{MeasuredRequest, MeasuredRequests};

use crate::auth::{Access, AccountId};
use crate::codec::nats::args::write_sizes;
use crate::exchange::batch::{Crossing, FROM_ROUTE, TRACED};
use crate::exchange::deliver::Reached;
use crate::exchange::message::{Context, Dispatch, Message, Origin, Via};
use crate::exchange::remote::Remote;
use crate::exchange::router::{
    Bridge, BridgeKind, BridgeTarget, HALVES, Member, RouteMemo, Terms, bridges, halves_of,
    has_measured_services, has_services, replies_of,
};
use crate::exchange::tracing::Traced;
use crate::exchange::{Exchange, Kind};
use latency::Outcome;
use mappings::Mappings;
use request_info::with_info;

/// Largest number of bridges that a message crosses in a row. Accounts behind further bridges do not receive
/// the message.
pub(crate) const BRIDGES_MAX: u8 = 8;

/// State that sessions of all kinds share: an exchange, and the relations between accounts.
pub(crate) struct Broker<K: Kind> {
    pub(crate) exchange: Exchange<K>,
    pub(crate) accounts: Accounts,
}

/// Mappings of accounts, and pending requests between accounts.
#[derive(Default)]
pub(crate) struct Accounts {
    pub(crate) requests: Requests,
    measured: MeasuredRequests,
    /// Mappings by account.
    mappings: Vec<Option<Box<Mappings>>>,
    /// Reused buffer for requests.
    frame: Vec<u8>,
    /// Reused buffer for mapped subjects.
    pub(crate) renamed: Vec<u8>,
}

impl Accounts {
    /// Returns whether an account has subject mappings.
    pub(crate) fn is_mapped(&self, account: AccountId) -> bool {
        let found = self.mappings.get(account.index());
        found.is_some_and(Option::is_some)
    }
}

impl<K: Kind> Broker<K> {
    pub(crate) fn new(exchange: Exchange<K>) -> Self {
        let access = exchange.access.clone();
        let mut broker = Broker {
            exchange,
            accounts: Accounts::default(),
        };
        broker.set_accounts(&access);
        broker
    }

    /// Delivers a message to all subscribers in its account, and in other accounts that import its subject.
    /// Returns whether there was a subscriber.
    #[inline]
    pub(crate) fn dispatch(&mut self, dispatch: &mut Dispatch<'_>, memo: &mut RouteMemo) -> bool {
        match self.exchange.deliver(dispatch, memo) {
            Reached::All(delivered) => delivered,
            Reached::Plain(delivered) => self.dispatch_across(dispatch, *memo) || delivered,
        }
    }

    /// Completes a delivery whose subject also leads to other accounts. So far, the message has reached only
    /// plain subscriptions, and no queue group. If several accounts have members of one queue group, the
    /// members form one group.
    #[cold]
    #[inline(never)]
    fn dispatch_across(&mut self, dispatch: &mut Dispatch<'_>, memo: RouteMemo) -> bool {
        let account = dispatch.account;
        let (local, elsewhere) = self.share_groups(account, memo, dispatch.origin.via);
        let mut delivered = self.exchange.deliver_rest(dispatch, memo, &elsewhere);
        let routers = &self.exchange.routers;
        let has_no_subscriber = routers.has_no_bridged_subscriber(account, memo);
        if !has_no_subscriber && dispatch.context.depth < BRIDGES_MAX {
            delivered |= self.follow_bridges(dispatch, local, memo);
        }
        let trace = dispatch.context.trace.as_deref_mut();
        self.exchange.settle_if_needed(trace);
        delivered
    }

    /// Delivers a message from another shard.
    pub(crate) fn dispatch_crossing(
        &mut self,
        crossing: Crossing<'_>,
        trace: Option<&mut Traced>,
        memo: &mut RouteMemo,
    ) {
        if crossing.hops & TRACED != 0 {
            return self.dispatch_traced(crossing, memo);
        }
        if self.exchange.deliver_crossing(&crossing, trace, memo) {
            self.follow_answer(&crossing);
        }
    }

    /// Publishes an event of the server in an account; `headers` may be empty. A message caused the event;
    /// `depth` is the number of imports that the message has crossed.
    fn publish_event(
        &mut self,
        account: AccountId,
        subject: &[u8],
        headers: &[u8],
        payload: &[u8],
        depth: u8,
    ) {
        let mut frame = Vec::new();
        write_sizes(&mut frame, headers.len(), headers.len() + payload.len());
        let args_bytes = frame.len();
        for part in [headers, payload, b"\r\n"] {
            frame.extend_from_slice(part);
        }
        let message = Message::framed(&frame, args_bytes, 0, headers.len());
        let mut dispatch = Dispatch::own(account, subject, &message);
        dispatch.context.depth = depth;
        self.dispatch(&mut dispatch, &mut RouteMemo::default());
    }

    /// Decides for each queue group of a route whether the message goes to a member in this account or to a
    /// member in another account. Returns the names of the groups in this account, then the names of the
    /// others.
    fn share_groups(
        &mut self,
        account: AccountId,
        memo: RouteMemo,
        via: Via,
    ) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let (mut local, mut elsewhere) = (Vec::new(), Vec::new());
        let groups = self.exchange.routers[account].route_of(memo).groups();
        let own: Vec<_> = groups
            .map(|(group, members)| {
                // A message from a route goes to another server only if there is no member on this one.
                let weight = match via {
                    Via::Route => Member::weight_near(members),
                    Via::Gateway if members.iter().any(|member| member.is_beyond()) => 0,
                    Via::Own | Via::Hub | Via::Import | Via::Gateway => group.weight,
                };
                (group.name.as_slice().to_vec(), weight)
            })
            .collect();
        if own.is_empty() {
            return (local, elsewhere);
        }
        let mut targets = self.exchange.routers[account].take_bridge_targets(memo);
        for (name, weight) in own {
            let streams = targets
                .iter_mut()
                .filter(|target| target.kind == BridgeKind::Stream);
            let beyond: u32 = streams
                .map(|target| self.exchange.routers.weight_of(target, &name))
                .sum();
            let draw = self.exchange.random.below(weight.saturating_add(beyond));
            match beyond == 0 || draw < weight {
                true => local.push(name),
                false => elsewhere.push(name),
            }
        }
        self.exchange.routers[account].restore_bridge_targets(memo, targets);
        (local, elsewhere)
    }

    /// Replaces the bridges between accounts, the quotas, and the mappings.
    pub(crate) fn set_accounts(&mut self, access: &Access) {
        let accounts = access.accounts();
        self.exchange.set_quotas(access);
        let token = self.exchange.reply_token().to_owned();
        let uses_peers = self.exchange.has_peers() && !self.exchange.info.jetstream;
        let replies = replies_of(&token, self.exchange.index);
        let mut all_bridges = bridges(access, &replies, uses_peers);
        self.exchange.awaits_halves = !token.is_empty() && has_measured_services(access);
        if self.exchange.awaits_halves {
            let filter = halves_of(&token, self.exchange.index);
            let bridge = Bridge::replies(AccountId::SYSTEM, filter);
            all_bridges[AccountId::SYSTEM.index()].push(bridge);
        }
        for ((id, account), bridges) in (0..).map(AccountId).zip(accounts).zip(all_bridges) {
            let router = self.exchange.routers.changing(id);
            router.set_bridges(bridges);
            let shards = 0..self.exchange.config.shards;
            let shards = shards.filter_map(|shard| u16::try_from(shard).ok());
            for shard in shards.filter(|shard| *shard != self.exchange.index) {
                let remote = Remote::Shard(shard);
                // In a cluster, the other servers learn of reply subjects, so only those in use are announced.
                if token.is_empty() {
                    let weight = u32::from(has_services(id, account));
                    router.set_remote(remote, &replies_of(&token, shard), b"", weight);
                } else if id == AccountId::SYSTEM {
                    let weight = u32::from(self.exchange.awaits_halves);
                    router.set_remote(remote, &halves_of(&token, shard), b"", weight);
                }
            }
        }
        let has_jetstream = self.exchange.info.jetstream;
        self.accounts.mappings = (0..)
            .map(AccountId)
            .zip(accounts)
            .map(|(id, account)| {
                // Mappings configured for the account precede those of domains.
                let mut mappings = account.mappings.clone();
                mappings.extend(access.domain_mappings(id, has_jetstream));
                Mappings::new(&mappings)
            })
            .collect();
    }

    /// Maps a subject of an account.
    pub(crate) fn rename(
        &mut self,
        account: AccountId,
        subject: &[u8],
        renamed: &mut Vec<u8>,
    ) -> Mapped {
        let found = self.accounts.mappings.get(account.index());
        match found {
            Some(Some(mappings)) => mappings.apply(subject, &mut self.exchange.random, renamed),
            _ => Mapped::Unchanged,
        }
    }

    /// Publishes a message at the far end of each bridge in its route. Returns whether there is any
    /// subscriber. The groups in `local` have already received the message.
    fn follow_bridges(
        &mut self,
        dispatch: &mut Dispatch<'_>,
        local: Vec<Vec<u8>>,
        memo: RouteMemo,
    ) -> bool {
        let (account, subject) = (dispatch.account, dispatch.subject);
        let (message, origin) = (dispatch.message, dispatch.origin);
        let depth = dispatch.context.depth + 1;
        let mut own = Vec::new();
        let served = dispatch.context.served.as_deref_mut();
        let served = served.unwrap_or(&mut own);
        served.extend(local);
        let mut trace = dispatch.context.trace.as_deref_mut();
        let mut targets = self.exchange.routers[account].take_bridge_targets(memo);
        let mut delivered = false;
        for target in &mut targets {
            if let Some(trace) = trace.as_deref_mut() {
                self.trace_bridge(trace, account, target, subject);
            }
            // MQTT state is per account, so in other accounts the message is handled like a message of a NATS
            // client.
            let mut context = Context {
                depth,
                trace: trace.as_deref_mut(),
                ..Context::default()
            };
            let has_subscriber = match target.kind {
                BridgeKind::Stream => {
                    context.served = Some(&mut *served);
                    self.pass_on(target, (message, origin), context)
                }
                // A request is a new message, so it also goes to groups that have already received the
                // original message.
                BridgeKind::Service(_) if origin.via.has_chosen_groups() => continue,
                BridgeKind::Service(terms) => {
                    self.request(account, target, terms, (message, origin), context)
                }
                BridgeKind::Replies => {
                    self.pass_answer(account, subject, (message, origin), context)
                }
            };
            if target.kind != BridgeKind::Replies
                && let Some(trace) = trace.as_deref_mut()
            {
                trace.leave_account();
            }
            let may_be_skipped = match target.kind {
                BridgeKind::Stream => true,
                // The latency report needs every request, even without a responder.
                BridgeKind::Service(terms) => terms.measured.is_none(),
                BridgeKind::Replies => false,
            };
            if !has_subscriber && may_be_skipped {
                self.exchange.routers.record_no_subscriber(target);
            }
            delivered |= has_subscriber;
        }
        self.exchange.routers[account].put_bridge_targets(memo, subject, targets);
        delivered
    }

    /// Publishes an unchanged message in the account at the far end of a bridge.
    fn pass_on(
        &mut self,
        target: &mut BridgeTarget,
        (message, origin): (&Message<'_>, Origin<'_>),
        context: Context<'_>,
    ) -> bool {
        let own = Dispatch::own(target.account, &target.subject, message);
        let mut dispatch = Dispatch {
            origin: Origin {
                via: Via::Import,
                // The server of the publisher has chosen the groups.
                groups: origin.groups.filter(|_| origin.via.has_chosen_groups()),
                ..own.origin
            },
            context,
            ..own
        };
        let delivered = self.dispatch(&mut dispatch, &mut target.memo);
        let groups =
            self.exchange
                .routers
                .groups_of(target.account, &target.subject, &mut target.memo);
        if let Some(served) = dispatch.context.served {
            served.extend(groups);
        }
        delivered
    }

    /// Delivers a response from another shard to its requester. The other shard has handled all other bridges
    /// of the route.
    #[cold]
    #[inline(never)]
    fn follow_answer(&mut self, crossing: &Crossing<'_>) {
        let via = match crossing.hops & FROM_ROUTE {
            0 => Via::Own,
            _ => Via::Route,
        };
        let message = (
            &crossing.message,
            Origin {
                via,
                ..Origin::ELSEWHERE
            },
        );
        self.pass_answer(
            crossing.account,
            crossing.subject,
            message,
            Context::default(),
        );
    }

    /// Publishes a request in the responder's account, with a reply subject that leads back to this shard.
    fn request(
        &mut self,
        importer: AccountId,
        target: &mut BridgeTarget,
        terms: Terms,
        (message, origin): (&Message<'_>, Origin<'_>),
        context: Context<'_>,
    ) -> bool {
        let exporter = target.account;
        let measure = self.measure((importer, exporter), terms, message, origin);
        let mut measure = measure.map(Box::new);
        let mut frame = std::mem::take(&mut self.accounts.frame);
        frame.clear();
        let reply = message.reply();
        let mut pending = None;
        if !reply.is_empty() {
            let request = Request {
                importer,
                exporter,
                reply,
                terms,
            };
            let (key, now) = (self.exchange.secrets.number(), self.exchange.outputs.now);
            let requests = &mut self.accounts.requests;
            if requests.is_empty() {
                // Without pending requests, subscriptions that ended earlier do not matter.
                self.exchange.unsubscribed_at = None;
            }
            let at = requests.expect(request, measure.take(), key, now);
            self.exchange.announce_replies(exporter);
            let place = (self.exchange.reply_token(), self.exchange.index);
            requests.write_subject(at, place, &mut frame);
            pending = Some(at);
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
        let request = Message::framed(&frame, args_bytes, reply_bytes, headers.len());
        let mut dispatch = Dispatch {
            context,
            ..Dispatch::own(exporter, &target.subject, &request)
        };
        let delivered = self.dispatch(&mut dispatch, &mut target.memo);
        let depth = dispatch.context.depth;
        self.accounts.frame = frame;
        let mut outcome = Outcome::NoReply;
        if let Some(at) = pending.filter(|_| !delivered) {
            let removed = self.accounts.requests.remove(at);
            measure = removed.and_then(|pending| pending.measure);
            outcome = Outcome::Unserved;
        }
        if let Some(measure) = measure {
            self.report(exporter, &measure, outcome, Origin::ELSEWHERE, depth);
        }
        delivered
    }

    /// Delivers a response to its requester.
    fn pass_answer(
        &mut self,
        exporter: AccountId,
        subject: &[u8],
        (message, origin): (&Message<'_>, Origin<'_>),
        context: Context<'_>,
    ) -> bool {
        if subject.starts_with(HALVES.as_bytes()) {
            return self.take_half(message, context.depth);
        }
        let requests = &mut self.accounts.requests;
        let Some(at) = requests.find(subject, exporter) else {
            return false;
        };
        let Some(pending) = requests.answered(at) else {
            return false;
        };
        let importer = pending.importer;
        let mut memo = pending.memo;
        let is_last = pending.ends_with(message.payload_bytes());
        let reply = std::mem::take(&mut pending.reply);
        let measure = pending.measure.take();
        let key = pending.key();
        if is_last {
            requests.remove(at);
        }
        let mut dispatch = Dispatch {
            context,
            ..Dispatch::own(importer, &reply, message)
        };
        let delivered = self.dispatch(&mut dispatch, &mut memo);
        let depth = dispatch.context.depth;
        if !is_last && let Some(pending) = self.accounts.requests.answered(at) {
            pending.reply = reply;
            pending.memo = memo;
        }
        if let Some(mut measure) = measure {
            let now = self.exchange.outputs.now;
            measure.answered_at = Some(now);
            let comes_from_peer = matches!(origin.via, Via::Route | Via::Gateway);
            let requests = &mut self.accounts.requests;
            let is_complete = !comes_from_peer || measure.half.is_some();
            let measure = match is_complete {
                true => Some(measure),
                false => requests.await_half(key, exporter, measure, now),
            };
            if let Some(measure) = measure {
                self.report(exporter, &measure, Outcome::Answered, origin, depth);
            }
        }
        delivered
    }

    /// Returns the time at which the caller must call [`expire_requests`](Self::expire_requests) next.
    pub(crate) fn next_request_timeout(&self) -> Option<Duration> {
        self.accounts
            .requests
            .next_timeout(self.exchange.unsubscribed_at)
    }

    /// Removes requests that have timed out, and requests whose requester has unsubscribed from its reply
    /// subject.
    pub(crate) fn expire_requests(&mut self, now: Duration) {
        let Broker { accounts, exchange } = self;
        let routers = &mut exchange.routers;
        let unsubscribed_at = &mut exchange.unsubscribed_at;
        accounts
            .requests
            .expire(now, unsubscribed_at, |account, reply| {
                let route = routers.of(account).route(reply, &mut RouteMemo::default());
                !route.is_empty()
            });
        for (exporter, measure, outcome) in self.accounts.requests.take_unanswered() {
            self.report(exporter, &measure, outcome, Origin::ELSEWHERE, 0);
        }
    }
}
