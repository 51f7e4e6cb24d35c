//! One shard: its sessions, their subscriptions, and what is to be written to whom.

#[cfg(test)]
mod account_tests;
mod backlog;
mod bridging;
mod connect;
mod crossing;
mod deliver;
mod insider;
mod latency;
mod leafs;
mod mappings;
mod mqtt;
mod pending;
mod permit;
#[cfg(test)]
mod permit_tests;
mod quotas;
mod reload;
mod replies;
mod requests;
mod run;
mod service;
mod session;
mod status;
#[cfg(test)]
mod tests;
mod timers;
mod tracing;
mod verbs;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use slab::Slab;

pub use backlog::Backlog;
pub use crossing::{Batch, Place};
pub use service::JetStreamService;
pub use session::{
    ConnectionStatus, CookieCredentials, MqttStatus, Peer, SessionId, SubscriptionStatus, TlsPeer,
};
pub use status::{Ended, LeafTraffic, ShardStatus};

use crate::auth::{Access, AccountId, Auth};
use crate::codec::leaf::LEAF_SHARD;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::ServerInfo;
use crate::codec::nats::parse::{Parsed, Verb, parse, parse_usual_publish};
use crate::exchange::router::{LEAFS, RouteMemo, Routers, SubId, Subscriptions};
use crate::limits::Limits;
use crate::outbox::{Chunk, Outbox};
use crate::random::{self, Purpose, Seed};
use bridging::Bridging;
use crossing::Said;
use deliver::RemoteTargets;
use leafs::Leafs;
use mqtt::Outbound;
use pending::Pending;
use quotas::Quotas;
use run::Run;
use session::Session;
use status::Totals;
use verbs::Intake;

/// Most shards of one server. One place beside them is that of the leafs.
pub const SHARDS_MAX: usize = LEAFS as usize;

/// Once a batch has queued this much, it is written before more of the input is read, so that a
/// wide fan-out stays in the cache and costs no more memory than this.
const PRODUCED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// So many subscriptions of a client that ends are forgotten in one go: a few milliseconds' work.
const FORGOTTEN_AT_ONCE: usize = 4096;

/// What all shards of a server share.
#[derive(Clone, Debug)]
pub struct ShardConfig {
    /// What clients are granted.
    pub limits: Limits,
    /// What clients must show.
    pub auth: Auth,
    /// How many shards there are; at most [`SHARDS_MAX`].
    pub shards: usize,
    /// Whether each protocol line is reported by [`Shard::take_traces`].
    pub traces: bool,
}

/// One shard: its sessions, their subscriptions, and what is to be written to whom.
///
/// # In which order to call
///
/// 1. [`open`](Shard::open) for a new connection, [`receive`](Shard::receive) for bytes from it,
///    [`apply`](Shard::apply) for what other shards said, [`handle_timeout`](Shard::handle_timeout)
///    when [`next_timeout`](Shard::next_timeout) has come.
/// 2. After each of these: hand on each batch of [`outgoing`](Shard::outgoing) before anything is
///    written, so that what a client is told is true on every shard; then write the
///    [`outbox`](Shard::outbox) of each session that [`next_dirty`](Shard::next_dirty) names and
///    report with [`written`](Shard::written); then close the connection of each session that
///    [`next_ended`](Shard::next_ended) names, [`forget_some`](Shard::forget_some) of what it wanted until
///    nothing is left, and [`remove`](Shard::remove) it.
pub struct Shard {
    exchange: Exchange,
    timers: BTreeSet<(Duration, SessionId)>,
    leafs: Leafs,
    bridging: Bridging,
    /// What MQTT clients publish.
    mqtt: Outbound,
    /// When room was given back last that a great many subscriptions have needed.
    trimmed_at: Duration,
}

/// What connections of every kind share: sessions, their subscriptions, routes, and what is to be written.
struct Exchange {
    index: u16,
    config: Arc<ShardConfig>,
    /// What `config.auth` says, or what took its place.
    access: Arc<Access>,
    info: ServerInfo,
    sessions: Slab<Session>,
    /// The routes of each account.
    routers: Routers,
    subs: Subscriptions,
    pending: Pending,
    outgoing: Vec<Batch>,
    /// By account.
    totals: Vec<Totals>,
    random: Random,
    /// Identifiers that a peer must not be able to guess.
    secrets: random::Random,
    crossings: RemoteTargets,
    run: Run,
    quotas: Quotas,
    /// A buffer for messages whose outgoing form differs from the incoming one.
    scratch: Vec<u8>,
    /// How often a client here has subscribed or unsubscribed.
    interest_changes: u64,
}

/// What became of some input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// How many bytes are done with. The rest has to be handed in again, with more behind it.
    pub consumed: usize,
    /// How long the frame is that the rest begins, when that is known, else 0.
    pub frame_bytes: usize,
    /// The input was left because much is to be written: write, then hand the rest in again.
    pub must_flush: bool,
    /// The input was left because it is to be decided whether its client may connect:
    /// [`Shard::take_check`] first, then hand the rest in again.
    pub awaits_check: bool,
    /// How many bytes were queued for connections.
    pub produced_bytes: usize,
    /// How many of them tell other servers what a client wants.
    pub told_bytes: usize,
    /// A subscriber of what was published has much waiting: hold the publisher back a little.
    pub congested: Option<SessionId>,
    /// It is known anew how far the other side of a link is: see [`Shard::leaf_level`].
    pub was_measured: bool,
}

/// How much of the input a verb took.
enum Taken {
    Bytes(usize),
    /// It is not whole; see [`Receipt::frame_bytes`].
    Partial {
        frame_bytes: usize,
    },
    /// The rest has to wait for [`Shard::decided`].
    AwaitsCheck(usize),
}

impl Shard {
    /// A shard with no sessions. Reply subjects and client identifiers are derived from `seed`.
    ///
    /// # Panics
    /// When there are more than [`SHARDS_MAX`] shards, or `index` is not one of them.
    pub fn new(
        index: u16,
        config: Arc<ShardConfig>,
        info: ServerInfo,
        seed: impl Into<Seed>,
    ) -> Self {
        assert!(config.shards <= SHARDS_MAX && usize::from(index) < config.shards);
        let outgoing = (0..config.shards).map(|_| Batch::default()).collect();
        let pending = Pending::new(&config.limits, config.traces);
        let mut secrets = random::Random::new(seed.into(), Purpose::Shard);
        let exchange = Exchange {
            index,
            access: config.auth.directory(),
            config,
            info,
            sessions: Slab::new(),
            routers: Routers::default(),
            subs: Subscriptions::default(),
            pending,
            outgoing,
            totals: Vec::new(),
            random: Random(secrets.number() | 1),
            secrets,
            crossings: RemoteTargets::new(index == LEAF_SHARD),
            run: Run::default(),
            quotas: Quotas::default(),
            scratch: Vec::new(),
            interest_changes: 0,
        };
        let mut shard = Shard {
            exchange,
            timers: BTreeSet::new(),
            leafs: Leafs::default(),
            bridging: Bridging::default(),
            mqtt: Outbound::default(),
            trimmed_at: Duration::ZERO,
        };
        shard.exchange.routers.ensure(AccountId::GLOBAL);
        let access = Arc::clone(&shard.exchange.access);
        shard.set_accounts(&access);
        shard
    }

    /// Takes bytes from a connection: `chunk[range]`, beginning with what was not consumed before.
    pub fn receive(
        &mut self,
        id: SessionId,
        chunk: &Chunk,
        range: Range<usize>,
        now: Duration,
    ) -> Receipt {
        if self.exchange.sessions[id.index()].mqtt.is_some() {
            return self.receive_mqtt(id, chunk, range, now);
        }
        if self.exchange.sessions[id.index()].leaf.is_some() {
            return self.receive_leaf(id, chunk, range, now);
        }
        let input = &chunk[range.clone()];
        let mut receipt = Receipt::default();
        self.begin_batch();
        self.exchange.pending.now = now;
        self.exchange.sessions[id.index()].active_at = now;
        let mut intake = self.begin_intake(id, chunk);
        if self.exchange.sessions[id.index()].ending.is_some() {
            receipt.consumed = input.len();
        }
        while receipt.consumed < input.len() {
            let rest = &input[receipt.consumed..];
            let from = range.start + receipt.consumed;
            if intake.is_admitted
                && let Some((publish, taken)) = parse_usual_publish(rest, intake.limits)
            {
                self.publish(&mut intake, &publish, from);
                receipt.consumed += taken;
            } else {
                self.end_run(&intake);
                match self.receive_other(&mut intake, rest, from, now) {
                    Taken::Bytes(taken) => receipt.consumed += taken,
                    Taken::Partial { frame_bytes } => {
                        receipt.frame_bytes = frame_bytes;
                        break;
                    }
                    Taken::AwaitsCheck(taken) => {
                        receipt.consumed += taken;
                        receipt.awaits_check = true;
                        break;
                    }
                }
            }
            if !self.exchange.pending.ended.is_empty()
                && self.exchange.sessions[id.index()].ending.is_some()
            {
                receipt.consumed = input.len();
                break;
            }
            if self.exchange.pending.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.end_run(&intake);
        self.end_intake(&intake);
        self.tell_leafs();
        receipt.produced_bytes = self.exchange.pending.produced_bytes;
        receipt.told_bytes = self.exchange.pending.told_bytes;
        let session = &mut self.exchange.sessions[id.index()];
        if let Some((congested, _)) = self.exchange.pending.congested {
            session.stalls += 1;
            receipt.congested = Some(congested);
        }
        receipt
    }

    /// Takes one verb of any form.
    #[inline(never)]
    fn receive_other(
        &mut self,
        intake: &mut Intake<'_>,
        input: &[u8],
        from: usize,
        now: Duration,
    ) -> Taken {
        let id = intake.id;
        if !intake.is_admitted && !b"cC".contains(&input[0]) {
            if !self.admit_without_connect(id) {
                self.refuse_credentials(id);
                return Taken::Bytes(input.len());
            }
            *intake = self.begin_intake(id, intake.chunk);
        }
        match parse(input, intake.limits) {
            Parsed::Verb(Verb::Publish(publish), taken) => {
                self.publish(intake, &publish, from);
                Taken::Bytes(taken)
            }
            Parsed::Verb(verb, taken) => {
                self.end_intake(intake);
                self.handle(id, verb, &input[..taken], now);
                *intake = self.begin_intake(id, intake.chunk);
                match self.exchange.sessions[id.index()].check {
                    Some(_) => Taken::AwaitsCheck(taken),
                    None => Taken::Bytes(taken),
                }
            }
            Parsed::Partial { frame_bytes } => Taken::Partial { frame_bytes },
            Parsed::Wrong(fault) => {
                self.refuse(id, fault.error, fault.reason);
                Taken::Bytes(input.len())
            }
        }
    }

    /// Takes what other shards said, from `place` on. When the receipt says
    /// [`must_flush`](Receipt::must_flush), there is more: write, then call again.
    pub fn apply(&mut self, batch: &Batch, place: &mut Place) -> Receipt {
        self.begin_batch();
        let mut receipt = Receipt::default();
        let mut memo = RouteMemo::default();
        while let Some(said) = batch.read(place) {
            match said {
                Said::Message(crossing) => self.fan_out_crossing(crossing, &mut memo),
                Said::Had { from, account, had } => self.exchange.quotas.note(from, account, had),
                Said::Note(note) => self.take_note(note),
                Said::Interest {
                    from,
                    account,
                    filter,
                    queue,
                    weight,
                } => {
                    let router = self.exchange.routers.of(account);
                    router.set_remote(from, filter, queue, weight);
                    if weight == 0 {
                        self.bridging
                            .requests
                            .note_unsubscribed(self.exchange.pending.now);
                    }
                }
            }
            self.take_answers();
            if self.exchange.pending.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.tell_leafs();
        receipt.produced_bytes = self.exchange.pending.produced_bytes;
        receipt.congested = self.exchange.pending.congested.map(|(id, _)| id);
        receipt
    }

    fn begin_batch(&mut self) {
        self.exchange.pending.produced_bytes = 0;
        self.exchange.pending.told_bytes = 0;
        self.exchange.pending.congested = None;
    }

    /// The batch for another shard, to be taken and handed to its [`apply`](Shard::apply).
    pub fn outgoing(&mut self, shard: usize) -> &mut Batch {
        &mut self.exchange.outgoing[shard]
    }

    /// The next session with something to write.
    pub fn next_dirty(&mut self) -> Option<SessionId> {
        loop {
            let id = self.exchange.pending.dirty.pop()?;
            if let Some(session) = self.exchange.sessions.get_mut(id.index())
                && std::mem::take(&mut session.is_dirty)
            {
                return Some(id);
            }
        }
    }

    /// Whether [`next_dirty`](Shard::next_dirty) or [`next_ended`](Shard::next_ended) has anything.
    pub fn has_work(&self) -> bool {
        !self.exchange.pending.dirty.is_empty() || !self.exchange.pending.ended.is_empty()
    }

    /// What waits for a connection.
    pub fn outbox(&mut self, id: SessionId) -> &mut Outbox {
        &mut self.exchange.sessions[id.index()].out
    }

    /// How many bytes wait for a connection, 0 when it is gone.
    pub fn pending_bytes(&self, id: SessionId) -> usize {
        self.exchange
            .sessions
            .get(id.index())
            .map_or(0, |s| s.out.pending_bytes())
    }

    /// Tells that as much of an outbox was written as the peer would take.
    pub fn written(&mut self, id: SessionId, now: Duration) {
        let session = &mut self.exchange.sessions[id.index()];
        if session.out.is_empty() {
            self.exchange.pending.reclaim(session);
            if session.mqtt.is_some() {
                self.recall_next(id);
            }
            return;
        }
        session.out.settle();
        let limits = &self.exchange.config.limits;
        let is_leaf = session.leaf.is_some();
        let is_patient = is_leaf && !limits.leafs_close_at_deadline;
        let deadline = session.out.block(now, is_patient) + limits.write_deadline_of(is_leaf);
        self.arm_before(id, deadline);
    }

    /// The next session whose connection is to be closed: write what
    /// [`CloseReason::flushes`] says, close, then [`remove`](Shard::remove).
    pub fn next_ended(&mut self) -> Option<(SessionId, CloseReason)> {
        let id = self.exchange.pending.ended.pop()?;
        let reason = self.exchange.sessions[id.index()]
            .ending
            .unwrap_or(CloseReason::ClientClosed);
        Some((id, reason))
    }

    /// Tells the time, before [`apply`](Shard::apply): from then on an answer to what it brings is
    /// allowed for so long.
    pub fn note_time(&mut self, now: Duration) {
        self.exchange.pending.now = now;
    }

    /// How often somebody here has subscribed or unsubscribed. As long as it stays the same on all
    /// shards, so does what [`is_wanted`](Shard::is_wanted) says.
    pub fn interest_changes(&self) -> u64 {
        self.exchange.interest_changes
    }

    /// Whether anybody gets what is published to a topic of an account, on this shard or another one.
    pub fn is_wanted(&mut self, account: AccountId, topic: &[u8]) -> bool {
        let router = self.exchange.routers.of(account);
        let route = router.route(topic, &mut RouteMemo::default());
        !route.plain.is_empty()
            || !route.plain_remote.is_empty()
            || route.has_groups()
            || !route.exits().is_empty()
    }

    /// Who may connect, and what they may do.
    pub fn access(&self) -> &Arc<Access> {
        &self.exchange.access
    }

    /// Whether there are lines for [`take_notices`](Shard::take_notices).
    pub fn has_notices(&self) -> bool {
        !self.exchange.pending.notices.is_empty()
    }

    /// Lines for the log since the last call, each about a session: who was refused, and what.
    pub fn take_notices(&mut self) -> Vec<(SessionId, String)> {
        std::mem::take(&mut self.exchange.pending.notices)
    }

    /// Whether there are traces to be taken.
    #[inline]
    pub fn has_traces(&self) -> bool {
        !self.exchange.pending.trace_lines.is_empty()
    }

    /// Lines for a protocol trace since the last call, each with its session.
    ///
    /// What the server asks of itself is nobody's protocol.
    pub fn take_traces(&mut self) -> Vec<(SessionId, String)> {
        let mut lines = std::mem::take(&mut self.exchange.pending.trace_lines);
        lines.retain(|(id, _)| !self.is_insider(*id));
        lines
    }

    /// Decides that a connection ends. From now on nothing is delivered to it. Its subscriptions are gone at once,
    /// unless there are thousands, none of them in a group, whose messages another member should have: those go by
    /// and by, with [`forget_some`](Shard::forget_some).
    pub fn end(&mut self, id: SessionId, reason: CloseReason) {
        let Some(session) = self.exchange.sessions.get_mut(id.index()) else {
            return;
        };
        if session.ending.is_some() {
            return;
        }
        session.ending = Some(reason);
        let subscriptions = session.subscriptions;
        if reason.is_slow_consumer() {
            let out = std::mem::take(&mut session.out);
            let backlog = self.backlog_of(id, &out);
            let session = &mut self.exchange.sessions[id.index()];
            (session.out, session.backlog) = (out, Some(Box::new(backlog)));
        }
        if !reason.flushes() {
            self.exchange.sessions[id.index()].out.discard();
        }
        self.exchange.pending.ended.push(id);
        self.uncount_connection(id);
        if !self.exchange.sessions[id.index()].may_leave_slowly() {
            self.drop_subscriptions(id);
        }
        self.end_mqtt(id, reason);
        self.forget_leaf(id);
        self.tell_leafs();
        // What is told of a connection that has ended is what it had.
        self.exchange.sessions[id.index()].subscriptions = subscriptions;
    }

    /// Forgets some of what a client wanted whose connection ends. Returns whether there is more.
    pub fn forget_some(&mut self, id: SessionId) -> bool {
        let Some(session) = self.exchange.sessions.get(id.index()) else {
            return false;
        };
        let had = session.subscriptions;
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some(sub) = self.exchange.subs.first_of_session(id.0) else {
                break;
            };
            self.drop_subscription(sub);
        }
        self.tell_leafs();
        self.exchange.sessions[id.index()].subscriptions = had;
        self.exchange.subs.first_of_session(id.0).is_some()
    }

    fn drop_subscriptions(&mut self, id: SessionId) {
        while let Some(sub) = self.exchange.subs.first_of_session(id.0) {
            self.drop_subscription(sub);
        }
    }

    /// Tells a client what it did wrong, and ends the connection.
    fn refuse(&mut self, id: SessionId, error: Option<ClientError>, reason: CloseReason) {
        if self.refuse_if_mqtt(id, reason) {
            return;
        }
        if let Some(error) = error {
            self.send_error(id, &error);
        }
        self.end(id, reason);
    }

    fn send_error(&mut self, id: SessionId, error: &ClientError) {
        // MQTT has words of its own, and none for what leaves the connection open.
        if self.exchange.sessions[id.index()].mqtt.is_some() {
            return;
        }
        let line = format!("-ERR '{error}'\r\n");
        self.send(id, line.as_bytes());
    }

    /// Queues bytes for a client.
    fn send(&mut self, id: SessionId, bytes: &[u8]) {
        let session = &mut self.exchange.sessions[id.index()];
        self.exchange.pending.mark_dirty(id.0, session);
        session.out.append(bytes);
        if self.exchange.pending.traces && !bytes.starts_with(b"INFO ") {
            self.exchange.pending.trace_sent(id, bytes);
        }
        // A client that asks and never reads the answers is a slow consumer too.
        let pending_bytes = session.out.pending_bytes();
        if pending_bytes > self.exchange.pending.congested_bytes {
            self.exchange.pending.note_congested(id.0, pending_bytes);
            let most = (self.exchange.config.limits).pending_bytes_max_of(session.leaf.is_some());
            if pending_bytes > most && std::mem::take(&mut self.exchange.pending.overflowed) {
                self.end(id, CloseReason::SlowConsumerPendingBytes);
            }
        }
    }

    fn drop_subscription(&mut self, id: SubId) {
        self.exchange.interest_changes += 1;
        if self.is_of_leaf(id) {
            return self.drop_leaf_subscription(id);
        }
        let sub = self.exchange.subs.get(id);
        let session = &mut self.exchange.sessions[sub.session() as usize];
        session.subscriptions -= 1;
        session.in_groups -= u32::from(!sub.queue().is_empty());
        let (account, is_insider) = (session.account, session.is_insider);
        self.bridging
            .requests
            .note_unsubscribed(self.exchange.pending.now);
        if !is_insider {
            self.count(account, |own| {
                own.subscriptions = own.subscriptions.saturating_sub(1)
            });
        }
        let Shard {
            exchange:
                Exchange {
                    routers,
                    subs,
                    outgoing,
                    index,
                    ..
                },
            ..
        } = self;
        routers[account].unsubscribe(subs, id, |filter, queue, weight| {
            announce(outgoing, *index, account, filter, queue, weight);
        });
    }
}

/// Tells all other shards what is wanted here under a filter of an account.
fn announce(
    outgoing: &mut [Batch],
    from: u16,
    account: AccountId,
    filter: &[u8],
    queue: &[u8],
    weight: u32,
) {
    for (shard, batch) in outgoing.iter_mut().enumerate() {
        if shard != usize::from(from) {
            batch.push_interest(from, account, filter, queue, weight);
        }
    }
}

/// Enough randomness to spread messages over a queue group (xorshift64*). A peer that sees some numbers can compute
/// the others: identifiers come from [`random::Random`].
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `end`, or 0 when `end` is 0.
    fn below(&mut self, end: u32) -> u32 {
        let high = self.next() >> 32;
        u32::try_from((high * u64::from(end)) >> 32).unwrap_or(0)
    }
}
