//! The JetStream service: a shard without connections. The other shards treat it as one more shard, with
//! interest in the subjects of streams.

mod requests;

use std::any::Any;
use std::time::Duration;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::{SHARDS_MAX, ShardConfig};
use crate::accounts::{BRIDGES_MAX, Requests};
use crate::auth::{Access, AccountId, overlap};
use crate::exchange::announce;
use crate::exchange::batch::{
    Batch, BatchCursor, BatchEntry, Crossing, FROM_ROUTE, Notification, TRACED, Target, Unframed,
};
use crate::exchange::remote::{LinkSet, Remote};
use crate::exchange::router::{
    BridgeKind, Listening, Member, REPLIES, Route, RouteMemo, Router, Routers, bridges,
    has_services, listening, replies_of,
};
use crate::exchange::targets::RemoteTargets;
use crate::jetstream::{
    ACK_PREFIX, Handler, Message, Now, Outcome, Port, Ports, is_for_delegates, is_of_service,
};
use crate::random::{FastRandom, Purpose, Random, Seed};
use crate::session::Receipt;
use crate::session::mqtt::{Connections, Context, RegistryMessage, ServicePorts, SessionRegistry};
use crate::subject::is_literal_subject;

/// Largest number of bytes in the outgoing batches before the caller must pass them on.
const PRODUCED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Largest number of messages of a run that the handler receives in one call. Between calls, the size of the
/// outgoing batches is checked.
const RUN_MAX: usize = 256;

/// The JetStream service: a shard without connections.
///
/// # Order of calls
///
/// Call [`apply`](Self::apply) for a batch of a shard, and [`handle_timeout`](Self::handle_timeout) at
/// [`next_timeout`](Self::next_timeout). After each, call [`settle`](Self::settle) and pass on each batch of
/// [`announcements`](Self::announcements), then each batch of [`outgoing`](Self::outgoing). The batch at the
/// service's own index is for itself: apply it before waiting for anything.
pub struct JetStreamService<H> {
    handler: H,
    mqtt: SessionRegistry,
    markers: Markers,
    ports: ShardPorts,
}

/// The markers of other servers, with the links over which they are known. Two servers may have the same one, while one
/// takes over a stream from the other.
#[derive(Default)]
struct Markers(HashMap<(AccountId, Vec<u8>), Vec<Remote>>);

impl Markers {
    /// Notes whether a marker is known over some links. Returns whether it is known over any.
    fn set(&mut self, account: AccountId, filter: &[u8], from: Remote, is_there: bool) -> bool {
        let key = (account, filter.to_vec());
        let known = self.0.entry(key.clone()).or_default();
        known.retain(|links| *links != from);
        known.extend(is_there.then_some(from));
        if known.is_empty() {
            self.0.remove(&key);
            return false;
        }
        true
    }
}

/// What the handler of the JetStream service uses to reach the other shards.
struct ShardPorts {
    index: u16,
    /// The account of the current call.
    account: AccountId,
    /// Interest of all shards, including this one.
    routers: Routers,
    /// Imports of streams. Deliver subjects of consumers may have subscribers in the importing accounts.
    listening: Vec<Listening>,
    /// Number of the handler's subscriptions to each filter of each account.
    filters: HashMap<(AccountId, Vec<u8>), u32>,
    outgoing: Vec<Batch>,
    /// Changes of interest, which all shards must know before they receive anything else.
    announcements: Vec<Batch>,
    crossings: RemoteTargets,
    /// Pending requests to other accounts.
    requests: Requests,
    /// Connections of MQTT clients, to which answers are sent.
    mqtt: Connections,
    /// Time of the last call, since the server's start.
    now: Duration,
    random: FastRandom,
    /// The route of the last message, and its account. Consumers deliver many messages in a row to one subject.
    memo: (AccountId, RouteMemo),
    /// The only shard that received the last posted message; `None` if there were other recipients.
    last_shard: Option<u16>,
    /// Generator of reply subjects for requests to other accounts.
    secrets: Random,
    produced_bytes: usize,
}

impl<H: Handler> JetStreamService<H> {
    /// Returns a JetStream service with this index among the shards. `make` creates its handler.
    ///
    /// # Panics
    ///
    /// If there are more than [`SHARDS_MAX`] shards, or `index` is not one of them.
    pub fn new(
        index: u16,
        config: &ShardConfig,
        seed: impl Into<Seed>,
        make: impl FnOnce(&mut dyn Ports) -> H,
    ) -> Self {
        assert!(config.shards <= SHARDS_MAX && usize::from(index) < config.shards);
        let mut secrets = Random::new(seed.into(), Purpose::Shard);
        let mut ports = ShardPorts {
            index,
            account: AccountId::GLOBAL,
            routers: Routers::default(),
            listening: Vec::new(),
            filters: HashMap::new(),
            outgoing: (0..config.shards).map(|_| Batch::default()).collect(),
            announcements: (0..config.shards).map(|_| Batch::default()).collect(),
            crossings: RemoteTargets::new(None, config),
            requests: Requests::default(),
            mqtt: Connections::default(),
            now: Duration::ZERO,
            random: FastRandom::new(secrets.number()),
            memo: (AccountId::GLOBAL, RouteMemo::default()),
            last_shard: None,
            secrets,
            produced_bytes: 0,
        };
        JetStreamService {
            handler: make(&mut ports),
            mqtt: SessionRegistry::new(&config.limits.mqtt),
            markers: Markers::default(),
            ports,
        }
    }

    /// Calls the handler directly, for example after a disk operation has finished.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut H, &mut dyn Ports) -> R) -> R {
        act(&mut self.handler, &mut self.ports)
    }

    /// Sets the imports and exports of accounts.
    pub fn set_accounts(&mut self, access: &Access) {
        self.ports.set_accounts(access);
    }

    /// Returns the handler.
    pub fn handler(&self) -> &H {
        &self.handler
    }

    /// Applies a batch of a shard, starting at `cursor`. If the receipt has
    /// [`must_flush`](Receipt::must_flush), the batch is not finished: settle, pass on the batches, then call
    /// again.
    pub fn apply(&mut self, batch: &Batch, cursor: &mut BatchCursor, now: Now) -> Receipt {
        let mut receipt = Receipt::default();
        self.ports.produced_bytes = 0;
        self.ports.now = now.since_start;
        while let Some(entry) = batch.read(cursor) {
            match entry {
                BatchEntry::Message(crossing) if is_ack(&crossing) => {
                    self.take_acks(&crossing, batch, cursor, now);
                }
                BatchEntry::Message(crossing) => match batch.has_next(cursor) {
                    false => self.take(&crossing, now),
                    true => self.take_run(&crossing, batch, cursor, now),
                },
                // The JetStream service needs no connections, except those of MQTT clients.
                BatchEntry::AccountUsage { .. } => {}
                BatchEntry::Notification(notification) => {
                    if let Some(message) =
                        (notification as &dyn Any).downcast_ref::<RegistryMessage>()
                    {
                        let (registry, mut context) = self.registry(now);
                        registry.handle(message, &mut context);
                    }
                }
                BatchEntry::Interest {
                    from,
                    account,
                    filter,
                    queue,
                    weight,
                } => {
                    if let Remote::Links(LinkSet::Routes(_)) = from
                        && is_of_service(filter)
                    {
                        let is_there = self.markers.set(account, filter, from, weight > 0);
                        (self.handler).handle_peer_interest(account, filter, is_there);
                    }
                    let ports = &mut self.ports;
                    // Interest of this shard was recorded when the handler subscribed.
                    if from != Remote::Shard(ports.index) {
                        let router = ports.routers.of(account);
                        router.set_remote(from, filter, queue, weight);
                    }
                    self.handler
                        .handle_interest(account, filter, weight > 0, now, ports);
                    for (exporter, subject) in self.ports.listened_by(account, filter) {
                        let ports = &mut self.ports;
                        self.handler
                            .handle_interest(exporter, &subject, weight > 0, now, ports);
                    }
                }
            }
            if self.ports.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        receipt.produced_bytes = self.ports.produced_bytes;
        receipt
    }

    /// Handles successive messages with one subject, from the first one on.
    fn take_run(
        &mut self,
        first: &Crossing<'_>,
        batch: &Batch,
        cursor: &mut BatchCursor,
        now: Now,
    ) {
        if first.subject.starts_with(REPLIES.as_bytes()) || first.hops & TRACED != 0 {
            return self.take(first, now);
        }
        let (account, first) = (first.account, message_of(first));
        let rest = std::iter::from_fn(|| batch.next_of_run(cursor)).map(|it| message_of(&it));
        let mut run = std::iter::once(first).chain(rest).take(RUN_MAX);
        (self.handler).handle_run(account, &mut run, now, &mut self.ports);
    }

    /// Handles successive acknowledgements in one account, from the first one on.
    fn take_acks(
        &mut self,
        first: &Crossing<'_>,
        batch: &Batch,
        cursor: &mut BatchCursor,
        now: Now,
    ) {
        let account = first.account;
        let rest = std::iter::from_fn(|| {
            let mut next = *cursor;
            match batch.read(&mut next)? {
                BatchEntry::Message(it) if it.account == account && is_ack(&it) => {
                    *cursor = next;
                    Some(message_of(&it))
                }
                _ => None,
            }
        });
        let mut run = std::iter::once(message_of(first)).chain(rest).take(RUN_MAX);
        (self.handler).handle_acks(account, &mut run, now, &mut self.ports);
    }

    /// Handles a message: a response to one of the service's own requests, or a message for the handler.
    fn take(&mut self, crossing: &Crossing<'_>, now: Now) {
        let message = message_of(crossing);
        let (account, ports) = (crossing.account, &mut self.ports);
        if ports.take_answer(account, &message) {
            return;
        }
        let index = ports.index;
        let is_taken =
            crossing.hops & TRACED == 0 || self.handler.trace(account, &message, index, now, ports);
        if is_taken {
            self.handler.handle(account, &message, now, ports);
        }
    }

    /// Returns whether a batch can be handled soon, without waiting for a disk.
    pub fn is_quick(&self, batch: &Batch) -> bool {
        let mut cursor = BatchCursor::default();
        while let Some(entry) = batch.read(&mut cursor) {
            let is_quick = match entry {
                BatchEntry::Message(crossing) => {
                    while batch.next_of_run(&mut cursor).is_some() {}
                    self.handler.is_quick(crossing.account, crossing.subject)
                }
                BatchEntry::Interest { .. }
                | BatchEntry::AccountUsage { .. }
                | BatchEntry::Notification(_) => false,
            };
            if !is_quick {
                return false;
            }
        }
        true
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Now) {
        self.ports.now = now.since_start;
        self.ports.expire_requests();
        self.handler.handle_timeout(now, &mut self.ports);
        let (registry, mut context) = self.registry(now);
        registry.handle_timeout(&mut context);
    }

    /// Returns the registry of MQTT sessions, and its environment.
    fn registry(&mut self, now: Now) -> (&mut SessionRegistry, Context<'_>) {
        let context = Context {
            now,
            handler: &mut self.handler,
            ports: &mut self.ports,
        };
        (&mut self.mqtt, context)
    }

    /// Returns the time at which the caller must call [`handle_timeout`](JetStreamService::handle_timeout).
    pub fn next_timeout(&self) -> Option<Duration> {
        let timeouts = [
            self.handler.next_timeout(),
            self.mqtt.next_timeout(),
            self.ports.requests.next_timeout(None),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Completes the batches after calls to the handler.
    pub fn settle(&mut self, now: Now) {
        self.handler.settle(now, &mut self.ports);
        let accounts = self.ports.routers.len();
        let (registry, mut context) = self.registry(now);
        registry.restore_accounts(accounts, &mut context);
    }

    /// Returns the batch for a shard. The caller takes it and passes it to that shard's
    /// [`apply`](super::Shard::apply).
    pub fn outgoing(&mut self, shard: usize) -> &mut Batch {
        &mut self.ports.outgoing[shard]
    }

    /// Returns the changes of interest for a shard. The caller passes them to all shards before it passes any
    /// [`outgoing`](JetStreamService::outgoing) batch: a client that learns of a stream may publish to it on
    /// another shard at once.
    pub fn announcements(&mut self, shard: usize) -> &mut Batch {
        &mut self.ports.announcements[shard]
    }
}

impl ShardPorts {
    /// Sets the imports and exports of accounts.
    fn set_accounts(&mut self, access: &Access) {
        let all_bridges = bridges(access, &replies_of("", self.index), false);
        let accounts = (0..).map(AccountId).zip(access.accounts());
        for ((id, account), bridges) in accounts.zip(all_bridges) {
            let router = self.routers.of(id);
            router.set_bridges(bridges);
            let weight = u32::from(has_services(id, account));
            for shard in 0..self.index {
                router.set_remote(Remote::Shard(shard), &replies_of("", shard), b"", weight);
            }
        }
        self.listening = listening(access);
    }

    /// Returns the origins of the messages that an importing account receives under subjects that overlap the
    /// filter. Each origin is an exporting account and a subject in that account.
    fn listened_by(&self, account: AccountId, filter: &[u8]) -> Vec<(AccountId, Vec<u8>)> {
        let text = std::str::from_utf8;
        let same = |a, b| matches!((text(a), text(b)), (Ok(a), Ok(b)) if overlap(a, b));
        let imports = self.listening.iter();
        imports
            .filter(|import| import.importer == account && same(&import.local, filter))
            .map(|import| (import.exporter, import.subject.clone()))
            .collect()
    }

    /// Announces to all shards whether the service has interest in a filter, outside of queue groups or in one.
    fn announce(&mut self, filter: &[u8], queue: &[u8], weight: u32) {
        let (index, account) = (self.index, self.account);
        let here = Remote::Shard(index);
        self.router().set_remote(here, filter, queue, weight);
        let all = &mut self.announcements;
        announce(all, index, here, account, filter, queue, weight);
        // A consumer of the service may deliver to a subscription of the service: that of a mirror in another
        // account.
        if queue.is_empty() && is_literal_subject(filter) {
            let own = &mut self.outgoing[usize::from(index)];
            own.push_interest(here, account, filter, b"", weight);
        }
    }

    fn router(&mut self) -> &mut Router {
        self.routers.of(self.account)
    }

    /// Posts a message to the shards with subscribers of `to` in an account, and in accounts that import it.
    /// `bridges` is the number of imports that the message has followed.
    fn post(&mut self, account: AccountId, to: &[u8], message: &Message<'_>, bridges: u8) {
        let Some(remote) = self.route(account, to).only_remote() else {
            self.last_shard = None;
            return self.post_except(None, account, to, message, bridges);
        };
        let target = Target {
            plain: true,
            groups: b"",
            links: remote.links(),
        };
        let shard = remote.shard(self.crossings.lane_shards());
        self.last_shard = Some(shard);
        let batch = &mut self.outgoing[usize::from(shard)];
        self.produced_bytes += batch.push_unframed(account, to, &unframed(message), target);
    }

    fn route(&mut self, account: AccountId, subject: &[u8]) -> &Route {
        if self.memo.0 != account {
            self.memo = (account, RouteMemo::default());
        }
        self.routers
            .of(account)
            .route_once(subject, &mut self.memo.1)
    }

    /// Posts a message like [`post`](Self::post), but not to the plain subscribers of the shard `except`.
    fn post_except(
        &mut self,
        except: Option<u16>,
        account: AccountId,
        to: &[u8],
        message: &Message<'_>,
        bridges: u8,
    ) {
        let ShardPorts {
            routers,
            crossings,
            random,
            ..
        } = self;
        let route = routers.of(account).route(to, &mut RouteMemo::default());
        let mut plain = route.plain_remote;
        if let Some(shard) = except {
            plain.set(Remote::Shard(shard), false);
        }
        crossings.set_plain(plain);
        for (group, members) in route.groups() {
            let mut ticket = random.ticket(group.weight);
            let picked = members.iter().find_map(|member| match *member {
                Member::Remote { remote, weight } => ticket.is_held_by(weight).then_some(remote),
                // The service has no connections.
                Member::Local(_) => None,
            });
            if let Some(remote) = picked {
                crossings.add_group(remote, group.name.as_slice());
            }
        }
        let targets = route.bridge_targets().to_vec();
        let (unframed, produced_bytes) = (unframed(message), &mut self.produced_bytes);
        (self.crossings).post_each(&mut self.outgoing, |batch, target| {
            *produced_bytes += batch.push_unframed(account, to, &unframed, target);
        });
        for target in targets.iter().filter(|_| bridges < BRIDGES_MAX) {
            let is_request = to == message.subject && !message.reply.is_empty();
            match target.kind {
                BridgeKind::Replies => {
                    self.answer(account, to, message, bridges);
                    continue;
                }
                BridgeKind::Service(terms) if is_request => {
                    self.request(account, (target, terms), message, bridges);
                    continue;
                }
                BridgeKind::Service(_) | BridgeKind::Stream => {}
            }
            let message = Message {
                subject: if to == message.subject {
                    &target.subject
                } else {
                    message.subject
                },
                reply: match target.kind {
                    BridgeKind::Stream => message.reply,
                    // A stream's record is not a request, so it needs no response.
                    BridgeKind::Service(_) | BridgeKind::Replies => b"",
                },
                ..*message
            };
            self.post(target.account, &target.subject, &message, bridges + 1);
        }
    }

    /// Returns whether `has_interest` is true for a subject in this account, or in one of the accounts that
    /// import it.
    fn has_matching_interest(
        &mut self,
        account: AccountId,
        subject: &[u8],
        bridges: u8,
        has_interest: &dyn Fn(&mut Router, &[u8]) -> bool,
    ) -> bool {
        let router = self.routers.of(account);
        if has_interest(router, subject) {
            return true;
        }
        let route = router.route(subject, &mut RouteMemo::default());
        let targets = route.bridge_targets().to_vec();
        bridges < BRIDGES_MAX
            && targets.iter().any(|target| {
                target.kind != BridgeKind::Replies
                    && self.has_matching_interest(
                        target.account,
                        &target.subject,
                        bridges + 1,
                        has_interest,
                    )
            })
    }
}

/// Returns whether a message is an acknowledgement that is not traced.
#[inline]
fn is_ack(crossing: &Crossing<'_>) -> bool {
    crossing.subject.starts_with(ACK_PREFIX) && crossing.hops & TRACED == 0
}

/// Returns a message as JetStream handles it.
fn message_of<'a>(crossing: &Crossing<'a>) -> Message<'a> {
    let framed = &crossing.message;
    let (headers, rest) = framed.body.split_at(framed.header_bytes);
    let is_from_route = crossing.hops & FROM_ROUTE != 0;
    let mut groups = crossing.groups.split(|b| *b == b' ');
    Message {
        subject: crossing.subject,
        reply: &framed.args[..framed.reply_bytes],
        headers,
        payload: &rest[..rest.len() - 2],
        shown: shown(framed.head),
        is_from_route,
        is_delegated: is_from_route
            && groups.any(|group| is_for_delegates(crossing.subject, group)),
    }
}

fn unframed<'a>(message: &Message<'a>) -> Unframed<'a> {
    Unframed {
        subject: message.subject,
        reply: message.reply,
        headers: message.headers,
        payload: message.payload,
    }
}

/// Returns whether a subject has subscribers in one account.
fn has_interest(router: &mut Router, subject: &[u8]) -> bool {
    let route = router.route(subject, &mut RouteMemo::default());
    !route.plain_remote.is_empty() || route.has_groups()
}

/// Returns the subject that subscribers receive, if it differs from the subject that routes the message.
#[inline]
fn shown(head: &[u8]) -> &[u8] {
    if head.is_empty() {
        return b"";
    }
    let shown = head.strip_prefix(b"HMSG ").unwrap_or_default();
    shown.trim_ascii_end()
}

impl Ports for ShardPorts {
    fn of(&mut self, account: AccountId) -> &mut dyn Port {
        self.account = account;
        self
    }
}

impl ServicePorts for ShardPorts {
    fn send(&mut self, shard: u16, message: RegistryMessage) {
        self.produced_bytes += message.bytes();
        if let Some(batch) = self.outgoing.get_mut(usize::from(shard)) {
            batch.push_notification(message);
        }
    }

    fn send_to_all(&mut self, message: &RegistryMessage) {
        for shard in 0..self.index {
            self.send(shard, message.clone());
        }
    }

    fn publish_to_others(&mut self, account: AccountId, message: &Message<'_>) {
        self.post_except(Some(self.index), account, message.subject, message, 0);
    }

    fn connections(&mut self) -> &mut Connections {
        &mut self.mqtt
    }
}

impl Port for ShardPorts {
    fn publish(&mut self, message: &Message<'_>) {
        self.post(self.account, message.subject, message, 0);
    }

    fn answer(&mut self, message: &Message<'_>, outcome: Outcome<'_>) {
        if let Some((shard, answer)) = self.mqtt.answer(self.account, message.subject, outcome) {
            self.send(shard, answer);
        }
        self.publish(message);
    }

    fn deliver(&mut self, to: &[u8], message: &Message<'_>) {
        self.post(self.account, to, message, 0);
    }

    fn deliver_next(&mut self, to: &[u8], message: &Message<'_>) {
        let batch = (self.last_shard).map(|shard| &mut self.outgoing[usize::from(shard)]);
        match batch.and_then(|batch| batch.push_next_unframed(&unframed(message))) {
            Some(bytes) => self.produced_bytes += bytes,
            None => self.deliver(to, message),
        }
    }

    fn has_interest(&mut self, subject: &[u8]) -> bool {
        self.has_matching_interest(self.account, subject, 0, &has_interest)
    }

    fn has_others(&mut self, subject: &[u8]) -> bool {
        let index = self.index;
        let route = self.router().route(subject, &mut RouteMemo::default());
        let mut remotes = route.plain_remote.iter();
        if remotes.any(|remote| remote != Remote::Shard(index)) || route.has_groups() {
            return true;
        }
        let targets = route.bridge_targets().to_vec();
        targets.iter().any(|target| {
            target.kind != BridgeKind::Replies
                && self.has_matching_interest(target.account, &target.subject, 1, &has_interest)
        })
    }

    fn has_receiver(&mut self, subject: &[u8], group: &[u8]) -> bool {
        self.has_matching_interest(
            self.account,
            subject,
            0,
            &|router: &mut Router, subject: &[u8]| router.has_remote_interest(subject, group),
        )
    }

    fn is_subscribed(&mut self, filter: &[u8]) -> bool {
        self.router().has_filter(filter)
    }

    fn subscribe(&mut self, filter: &[u8]) {
        let account = self.account;
        let times = self.filters.entry((account, filter.into())).or_default();
        *times += 1;
        if *times == 1 {
            self.announce(filter, b"", 1);
        }
    }

    fn unsubscribe(&mut self, filter: &[u8]) {
        let Entry::Occupied(mut times) = self.filters.entry((self.account, filter.into())) else {
            return;
        };
        *times.get_mut() -= 1;
        if *times.get() == 0 {
            times.remove();
            self.announce(filter, b"", 0);
        }
    }

    fn set_member(&mut self, filter: &[u8], group: &[u8], is_member: bool) {
        self.announce(filter, group, u32::from(is_member));
    }
}
