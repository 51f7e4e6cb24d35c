//! One shard: its sessions, their subscriptions, and what is to be written to whom.

#[cfg(test)]
mod account_tests;
mod insider;
#[cfg(test)]
mod latency_tests;
#[cfg(test)]
mod leaf_tests;
mod leafs;
mod output;
#[cfg(test)]
mod permit_tests;
#[cfg(test)]
mod quota_tests;
mod reload;
mod service;
mod status;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod trace_tests;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

pub use service::JetStreamService;
pub use status::{Ended, ShardStatus};

pub use crate::exchange::batch::{Batch, Place};
pub use crate::exchange::session::SessionId;
pub use crate::exchange::totals::LeafTraffic;
pub use crate::exchange::{SHARDS_MAX, ShardConfig};

use crate::auth::{Access, AccountId, Check, Grant, Peer};
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::ServerInfo;
use crate::exchange::batch::Said;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::RouteMemo;
use crate::outbox::Chunk;
use crate::random::Seed;
use crate::session::connections::mqtt_settings;
use crate::session::leaf::{Agreed, Dialled, Leaf};
use crate::session::mqtt::{self, Mqtt, RegistryMessage};
use crate::session::{Broker, Client, Exchange, Kind, Receipt, Session};

/// Between two looks at what could be given back.
const TRIM_EVERY: Duration = Duration::from_secs(10);

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
    broker: Broker,
    /// When room was given back last that a great many subscriptions have needed.
    trimmed_at: Duration,
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
        Shard {
            broker: Broker::new(Exchange::new(index, config, info, seed.into())),
            trimmed_at: Duration::ZERO,
        }
    }

    /// A new connection. It is sent INFO; when the server is full, an error as well.
    pub fn open(&mut self, cid: u64, peer: Peer, is_full: bool, now: Duration) -> SessionId {
        let awaits_auth = self.broker.exchange.access.is_required_of(peer.kind);
        let kind = match peer.kind.is_mqtt() {
            true => Kind::Mqtt(Box::new(Mqtt::new(
                mqtt_settings(&self.broker.exchange.config.limits),
                now,
            ))),
            false => Kind::Client(Client::default()),
        };
        let id = self
            .broker
            .insert_session(cid, peer, kind, awaits_auth, now);
        self.broker.exchange.totals_of(AccountId::GLOBAL).opened += 1;
        let session = &self.broker.exchange.sessions[id.index()];
        if !session.peer.is_greeted && !session.kind.is_mqtt() {
            self.broker.client(id).send_info(false);
        }
        if is_full {
            self.broker.refuse(
                id,
                Some(ClientError::ConnectionsExceeded),
                CloseReason::MaximumConnectionsExceeded,
            );
        } else if !awaits_auth {
            // It need not say more to be in `$G`.
            self.broker.count_connection(id);
        }
        id
    }

    /// A link to another server: one that has come here, or one that was dialled.
    ///
    /// Only the first shard serves them.
    pub fn open_leaf(
        &mut self,
        cid: u64,
        peer: Peer,
        dialled: Option<Dialled>,
        agreed: Agreed,
        now: Duration,
    ) -> SessionId {
        let opened_at = agreed.greeted_at.unwrap_or(now);
        let kind = Kind::Leaf(Box::new(Leaf::new(dialled, agreed.compressed)));
        let id = self.broker.insert_session(cid, peer, kind, true, opened_at);
        self.broker.leaf(id).begin();
        id
    }

    /// The INFO that a connection begins with, for those who get it before their TLS begins.
    pub fn greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        self.broker.greeting(cid, peer)
    }

    /// Takes bytes from a connection: `chunk[range]`, beginning with what was not consumed before.
    pub fn receive(
        &mut self,
        id: SessionId,
        chunk: &Chunk,
        range: Range<usize>,
        now: Duration,
    ) -> Receipt {
        match self.broker.exchange.sessions[id.index()].kind {
            Kind::Client(_) => self.broker.client(id).receive(chunk, range, now),
            Kind::Mqtt(_) => self.broker.mqtt_of(id).receive(chunk, range, now),
            Kind::Leaf(_) => self.broker.leaf(id).receive(chunk, range, now),
        }
    }

    /// Takes what other shards said, from `place` on. When the receipt says
    /// [`must_flush`](Receipt::must_flush), there is more: write, then call again.
    pub fn apply(&mut self, batch: &Batch, place: &mut Place) -> Receipt {
        self.broker.exchange.outputs.begin_batch();
        let mut receipt = Receipt::default();
        let mut memo = RouteMemo::default();
        while let Some(said) = batch.read(place) {
            match said {
                Said::Message(crossing) => {
                    self.broker.dispatch_crossing(crossing, None, &mut memo);
                }
                Said::Had { from, account, had } => {
                    self.broker.exchange.quotas.note(from, account, had)
                }
                Said::Note(note) => {
                    if let Some(message) = (note as &dyn Any).downcast_ref::<RegistryMessage>() {
                        mqtt::handle_message(&mut self.broker, message);
                    }
                }
                Said::Interest {
                    from,
                    account,
                    filter,
                    queue,
                    weight,
                } => {
                    let router = self.broker.exchange.routers.of(account);
                    router.set_remote(from, filter, queue, weight);
                    if weight == 0 {
                        self.broker.exchange.note_unsubscribed();
                    }
                }
            }
            self.broker.end_overrun();
            mqtt::handle_events(&mut self.broker);
            if self.broker.exchange.outputs.produced_bytes > PRODUCED_BYTES_MAX {
                receipt.must_flush = true;
                break;
            }
        }
        self.broker.exchange.tell_leafs();
        receipt.produced_bytes = self.broker.exchange.outputs.produced_bytes;
        receipt.congested = self.broker.exchange.outputs.congested.map(|(id, _)| id);
        receipt
    }

    /// Work that is to be done elsewhere to know whether a client may connect. Until it is
    /// [`decided`](Shard::decided), nothing more is to be read from that client.
    pub fn take_check(&mut self, id: SessionId) -> Option<Check> {
        self.broker
            .exchange
            .sessions
            .get_mut(id.index())?
            .check
            .take()
    }

    /// Decides again about a client whose check has requested an account. A client that is still unknown then is
    /// refused.
    pub fn decide_again(&mut self, id: SessionId) {
        if self.is_open(id) {
            self.broker.any(id).decide_again();
        }
    }

    /// Takes the outcome of a check: what the client was granted, if anything.
    pub fn decided(&mut self, id: SessionId, outcome: Option<Grant>) {
        if self.is_open(id) {
            self.broker.any(id).decided(outcome);
        }
    }

    fn is_open(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| session.ending.is_none())
    }

    /// When [`handle_timeout`](Shard::handle_timeout) is wanted next.
    pub fn next_timeout(&self) -> Option<Duration> {
        let session = self.broker.exchange.timers.next();
        let reply = self.broker.next_request_timeout();
        [session, reply].into_iter().flatten().min()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.outputs.trim();
        self.trim(now);
        self.broker.expire_requests(now);
        self.broker.end_overrun();
        while let Some(id) = self.broker.exchange.timers.pop(now) {
            if self.broker.exchange.sessions[id.index()].ending.is_none() {
                self.broker.any(id).handle_timeout(now);
            }
        }
    }

    /// Gives room back that a great many subscriptions have needed; looks seldom, as it takes as long as there
    /// is room.
    fn trim(&mut self, now: Duration) {
        if now.saturating_sub(self.trimmed_at) < TRIM_EVERY {
            return;
        }
        self.trimmed_at = now;
        self.broker.exchange.subs.trim();
        self.broker.exchange.routers.trim();
        self.broker.exchange.links[LinkSet::Leafs].routers.trim();
    }

    /// Tells that as much of an outbox was written as the peer would take.
    pub fn written(&mut self, id: SessionId, now: Duration) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.out.is_empty() {
            self.broker.exchange.outputs.reclaim(session);
            if let Some(mut session) = self.broker.mqtt(id) {
                session.request_retained();
            }
            return;
        }
        session.out.settle();
        let limits = &self.broker.exchange.config.limits;
        let is_leaf = session.kind.is_leaf();
        let is_patient = is_leaf && !limits.leafs_close_at_deadline;
        let deadline = session.out.block(now, is_patient) + limits.write_deadline_of(is_leaf);
        self.broker.exchange.arm_before(id, deadline);
    }

    /// Decides that a connection ends. From now on nothing is delivered to it. Its subscriptions are gone at once,
    /// unless there are thousands, none of them in a group, whose messages another member should have: those go by
    /// and by, with [`forget_some`](Shard::forget_some).
    pub fn end(&mut self, id: SessionId, reason: CloseReason) {
        self.broker.end(id, reason);
    }

    /// Forgets some of what a client wanted whose connection ends. Returns whether there is more.
    pub fn forget_some(&mut self, id: SessionId) -> bool {
        self.broker.forget_some(id)
    }

    /// Tells the time, before [`apply`](Shard::apply): from then on an answer to what it brings is
    /// allowed for so long.
    pub fn note_time(&mut self, now: Duration) {
        self.broker.exchange.outputs.now = now;
    }

    /// How often somebody here has subscribed or unsubscribed. As long as it stays the same on all
    /// shards, so does what [`is_wanted`](Shard::is_wanted) says.
    pub fn interest_changes(&self) -> u64 {
        self.broker.exchange.interest_changes
    }

    /// Whether anybody gets what is published to a topic of an account, on this shard or another one.
    pub fn is_wanted(&mut self, account: AccountId, topic: &[u8]) -> bool {
        let router = self.broker.exchange.routers.of(account);
        let route = router.route(topic, &mut RouteMemo::default());
        !route.plain.is_empty()
            || !route.plain_remote.is_empty()
            || route.has_groups()
            || !route.exits().is_empty()
    }

    /// Who may connect, and what they may do.
    pub fn access(&self) -> &Arc<Access> {
        &self.broker.exchange.access
    }
}
