//! Messages between accounts: imports, exports, mappings, and service latency.
//!
//! If a subject's route leads over a bridge, the message is published again at the other end.

mod latency;
mod mappings;
mod request_info;
mod requests;
mod tracing;

use std::time::Duration;

pub(crate) use mappings::Mapped;
pub(crate) use requests::{Request, Requests};

use crate::auth::{Access, AccountId};
use crate::codec::nats::args::write_sizes;
use crate::exchange::batch::{Crossing, TRACED};
use crate::exchange::deliver::Reached;
use crate::exchange::message::{Context, Dispatch, Message, Origin};
use crate::exchange::remote::Remote;
use crate::exchange::router::{
    BridgeKind, Exit, RouteMemo, Terms, bridges, has_services, replies_of,
};
use crate::exchange::tracing::Traced;
use crate::exchange::{Exchange, Kind};
use latency::Outcome;
use mappings::Mappings;
use request_info::with_info;

/// Most bridges that a message crosses. Accounts behind the last one do not receive it.
pub(crate) const BRIDGES_MAX: u8 = 8;

/// State that sessions of all kinds share: an exchange, and the connections between accounts.
pub(crate) struct Broker<K: Kind> {
    pub(crate) exchange: Exchange<K>,
    pub(crate) accounts: Accounts,
}

/// Connections between accounts, and pending requests over them.
#[derive(Default)]
pub(crate) struct Accounts {
    pub(crate) requests: Requests,
    /// Mappings by account.
    mappings: Vec<Option<Box<Mappings>>>,
    /// A buffer for requests.
    frame: Vec<u8>,
    /// A buffer for mapped subjects.
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

    /// Delivers a message to all subscribers in its account, and in the accounts that its subject leads to.
    /// Returns whether there was any.
    #[inline]
    pub(crate) fn dispatch(&mut self, dispatch: &mut Dispatch<'_>, memo: &mut RouteMemo) -> bool {
        match self.exchange.deliver(dispatch, memo) {
            Reached::All(delivered) => delivered,
            Reached::Plain(delivered) => self.dispatch_across(dispatch, *memo) || delivered,
        }
    }

    /// Delivers the rest of a message, beyond plain subscriptions, to a subject that leads to other accounts.
    /// Members of a group in several accounts form one group.
    #[cold]
    #[inline(never)]
    fn dispatch_across(&mut self, dispatch: &mut Dispatch<'_>, memo: RouteMemo) -> bool {
        let account = dispatch.account;
        let (kept, left) = self.share_groups(account, memo);
        let mut delivered = self.exchange.deliver_rest(dispatch, memo, &left);
        let is_dead_end = self.exchange.routers.is_dead_end(account, memo);
        if !is_dead_end && dispatch.context.depth < BRIDGES_MAX {
            delivered |= self.follow_bridges(dispatch, kept, memo);
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

    /// Publishes an event of the server in an account, with headers or none. `depth` is the number of imports
    /// that led to it.
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

    /// Divides the groups of a route for one message: those that are served here, and those that are left to
    /// their members in other accounts.
    fn share_groups(
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

    /// Replaces the connections between accounts, and the mappings.
    pub(crate) fn set_accounts(&mut self, access: &Access) {
        let accounts = access.accounts();
        self.exchange.set_quotas(access);
        let ways = bridges(access, self.exchange.index);
        for ((id, account), ways) in (0..).map(AccountId).zip(accounts).zip(ways) {
            let router = self.exchange.routers.of(id);
            router.set_bridges(ways);
            let weight = u32::from(has_services(id, account));
            for shard in
                (0..self.exchange.config.shards).filter_map(|shard| u16::try_from(shard).ok())
            {
                if shard != self.exchange.index {
                    router.set_remote(Remote::Shard(shard), &replies_of(shard), b"", weight);
                }
            }
        }
        let has_jetstream = self.exchange.info.jetstream;
        self.accounts.mappings = (0..)
            .map(AccountId)
            .zip(accounts)
            .map(|(id, account)| {
                // Mappings that are configured for the account itself come first.
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

    /// Publishes a message at the other end of each bridge of its route. Returns whether there is any
    /// subscriber. `kept` are the groups that are served already.
    fn follow_bridges(
        &mut self,
        dispatch: &mut Dispatch<'_>,
        kept: Vec<Vec<u8>>,
        memo: RouteMemo,
    ) -> bool {
        let (account, subject) = (dispatch.account, dispatch.subject);
        let (message, origin) = (dispatch.message, dispatch.origin);
        let depth = dispatch.context.depth + 1;
        let mut own = Vec::new();
        let served = dispatch.context.served.as_deref_mut();
        let served = served.unwrap_or(&mut own);
        served.extend(kept);
        let mut trace = dispatch.context.trace.as_deref_mut();
        let mut exits = self.exchange.routers[account].take_exits(memo);
        let mut delivered = false;
        for exit in &mut exits {
            if let Some(trace) = trace.as_deref_mut() {
                self.trace_exit(trace, account, exit, subject);
            }
            // MQTT state is per account: another account treats the message as a plain one.
            let mut context = Context {
                depth,
                trace: trace.as_deref_mut(),
                ..Context::default()
            };
            let is_heard = match exit.kind {
                BridgeKind::Stream => {
                    context.served = Some(&mut *served);
                    self.pass_on(exit, message, context)
                }
                // A request is a new message, with groups of its own.
                BridgeKind::Service(terms) => {
                    self.request(account, exit, terms, (message, origin), context)
                }
                BridgeKind::Replies => {
                    self.pass_answer(account, subject, (message, origin), context)
                }
            };
            if exit.kind != BridgeKind::Replies
                && let Some(trace) = trace.as_deref_mut()
            {
                trace.return_home();
            }
            let may_be_skipped = match exit.kind {
                BridgeKind::Stream => true,
                // A missing responder is reported for each request.
                BridgeKind::Service(terms) => terms.measured.is_none(),
                BridgeKind::Replies => false,
            };
            if !is_heard && may_be_skipped {
                self.exchange.routers.note_no_subscriber(exit);
            }
            delivered |= is_heard;
        }
        self.exchange.routers[account].put_exits(memo, subject, exits);
        delivered
    }

    /// Publishes an unchanged message in the account of an exit.
    fn pass_on(&mut self, exit: &mut Exit, message: &Message<'_>, context: Context<'_>) -> bool {
        let mut dispatch = Dispatch {
            context,
            ..Dispatch::own(exit.account, &exit.subject, message)
        };
        let delivered = self.dispatch(&mut dispatch, &mut exit.memo);
        let groups = self
            .exchange
            .routers
            .groups_of(exit.account, &exit.subject, &mut exit.memo);
        if let Some(served) = dispatch.context.served {
            served.extend(groups);
        }
        delivered
    }

    /// Delivers a response from another shard to its requester. That shard has handled all other exits of the
    /// route.
    #[cold]
    #[inline(never)]
    fn follow_answer(&mut self, crossing: &Crossing<'_>) {
        let message = (&crossing.message, Origin::ELSEWHERE);
        self.pass_answer(
            crossing.account,
            crossing.subject,
            message,
            Context::default(),
        );
    }

    /// Publishes a request in the account that answers it, with a reply subject that leads back.
    fn request(
        &mut self,
        importer: AccountId,
        exit: &mut Exit,
        terms: Terms,
        (message, origin): (&Message<'_>, Origin<'_>),
        context: Context<'_>,
    ) -> bool {
        let exporter = exit.account;
        let measure = self.measure((importer, exporter), terms, message, origin);
        let mut measure = measure.map(Box::new);
        let mut frame = std::mem::take(&mut self.accounts.frame);
        frame.clear();
        let reply = message.reply();
        let mut waiting = None;
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
                // With no pending request, no earlier end of a subscription matters.
                self.exchange.unsubscribed_at = None;
            }
            let at = requests.expect(request, measure.take(), key, now);
            requests.write_subject(at, self.exchange.index, &mut frame);
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
        let request = Message::framed(&frame, args_bytes, reply_bytes, headers.len());
        let mut dispatch = Dispatch {
            context,
            ..Dispatch::own(exporter, &exit.subject, &request)
        };
        let delivered = self.dispatch(&mut dispatch, &mut exit.memo);
        let depth = dispatch.context.depth;
        self.accounts.frame = frame;
        let mut outcome = Outcome::NoReply;
        if let Some(at) = waiting.filter(|_| !delivered) {
            let removed = self.accounts.requests.remove(at);
            measure = removed.and_then(|waiting| waiting.measure);
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
        let requests = &mut self.accounts.requests;
        let Some(at) = requests.find(subject, exporter) else {
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
            requests.remove(at);
        }
        let mut dispatch = Dispatch {
            context,
            ..Dispatch::own(importer, &reply, message)
        };
        let delivered = self.dispatch(&mut dispatch, &mut memo);
        let depth = dispatch.context.depth;
        if !is_last && let Some(waiting) = self.accounts.requests.answered(at) {
            waiting.reply = reply;
            waiting.memo = memo;
        }
        if let Some(measure) = measure {
            self.report(exporter, &measure, Outcome::Answered, origin, depth);
        }
        delivered
    }

    /// Returns when [`expire_requests`](Self::expire_requests) is to be called next.
    pub(crate) fn next_request_timeout(&self) -> Option<Duration> {
        self.accounts
            .requests
            .next_timeout(self.exchange.unsubscribed_at)
    }

    /// Removes requests that timed out, and requests whose requesters are not subscribed any more.
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
