//! One shard: its sessions, their subscriptions, and their output.

#[cfg(test)]
mod account_tests;
#[cfg(test)]
mod gateway_tests;
mod gateways;
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
#[cfg(test)]
mod route_change_tests;
#[cfg(test)]
mod route_group_tests;
#[cfg(test)]
mod route_import_tests;
#[cfg(test)]
mod route_origin_tests;
#[cfg(test)]
mod route_pool_tests;
#[cfg(test)]
mod route_rights_tests;
#[cfg(test)]
mod route_service_tests;
#[cfg(test)]
mod route_status_tests;
#[cfg(test)]
mod route_tests;
mod routes;
#[cfg(test)]
mod run_tests;
mod service;
mod status;
mod system_client;
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

pub use crate::exchange::batch::{Batch, BatchCursor};
pub use crate::exchange::session::SessionId;
pub use crate::exchange::totals::LeafTraffic;
pub use crate::exchange::{SHARDS_MAX, ShardConfig};

use crate::accounts::MeasuredRequest;
use crate::auth::{Access, AccountId, Check, Grant, Peer};
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::ServerInfo;
use crate::exchange::batch::BatchEntry;
use crate::exchange::beyond::WeightBeyond;
use crate::exchange::links::WeightBelow;
use crate::exchange::outputs::PRODUCED_BYTES_MAX;
use crate::exchange::remote::LinkSet;
use crate::exchange::router::RouteMemo;
use crate::outbox::Chunk;
use crate::random::Seed;
use crate::session::connections::mqtt_settings;
use crate::session::gateway::MappedReply;
use crate::session::leaf::{Agreed, Dialled, Leaf};
use crate::session::mqtt::{self, Mqtt, RegistryMessage};
use crate::session::{Broker, Client, Exchange, Kind, Receipt, Session};

/// Interval at which unused capacity is released.
const TRIM_EVERY: Duration = Duration::from_secs(10);

/// One shard: its sessions, their subscriptions, and their output.
///
/// # Order of calls
///
/// 1. [`open`](Shard::open) for a new connection, [`receive`](Shard::receive) for its input,
///    [`apply`](Shard::apply) for a batch of another shard, and [`handle_timeout`](Shard::handle_timeout) at
///    [`next_timeout`](Shard::next_timeout).
/// 2. After each of these: pass on each batch of [`outgoing`](Shard::outgoing). Do so before anything is
///    written: all other shards then receive a change before a client can read about it. Then write the
///    [`outbox`](Shard::outbox) of each session that [`next_dirty`](Shard::next_dirty) returns, and report
///    each write with [`written`](Shard::written). Then close the connection of each session that
///    [`next_ended`](Shard::next_ended) returns, call
///    [`remove_some_subscriptions`](Shard::remove_some_subscriptions) until it returns false, and
///    [`remove`](Shard::remove) the session.
pub struct Shard {
    broker: Broker,
    /// Time at which unused capacity was last released.
    trimmed_at: Duration,
}

impl Shard {
    /// Returns a shard without sessions. Reply subjects and client identifiers are derived from `seed`.
    ///
    /// # Panics
    ///
    /// If there are more than [`SHARDS_MAX`] shards, or `index` is not one of them.
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

    /// Opens a connection. The client receives INFO, and an error if the server is full. `cid` is unique in
    /// the server.
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
            // A client without credentials belongs to `$G`.
            self.broker.count_connection(id);
        }
        id
    }

    /// Opens a leaf connection, which was dialed if `dialled` is `Some`, otherwise accepted.
    ///
    /// Only the first shard serves leaf connections.
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

    /// Returns the first INFO, for connections that receive it before TLS begins.
    pub fn greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        self.broker.greeting(cid, peer)
    }

    /// Handles the input `chunk[range]` of a connection. It begins with the bytes that the last call did not
    /// consume.
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
            Kind::Route(_) => self.broker.route(id).receive(chunk, range, now),
            Kind::Gateway(_) => self.broker.gateway(id).receive(chunk, range, now),
        }
    }

    /// Applies a batch of another shard, starting at `cursor`. If the receipt has
    /// [`must_flush`](Receipt::must_flush), the batch is not finished: write the output, then call again.
    pub fn apply(&mut self, batch: &Batch, cursor: &mut BatchCursor) -> Receipt {
        self.broker.exchange.outputs.begin_batch();
        let mut receipt = Receipt::default();
        let mut memo = RouteMemo::default();
        while let Some(entry) = batch.read(cursor) {
            match entry {
                BatchEntry::Message(crossing) => {
                    let (account, subject) = (crossing.account, crossing.subject);
                    let head = crossing.message.head;
                    let is_simple = crossing.is_simple();
                    self.broker.dispatch_crossing(crossing, None, &mut memo);
                    let (exchange, run) = (&mut self.broker.exchange, (batch, &mut *cursor));
                    match is_simple {
                        true if batch.has_next(run.1) => {
                            exchange.deliver_rest_of_run(run, account, (subject, head), memo);
                        }
                        true => exchange.deliver_siblings(run, account, memo),
                        false => {}
                    }
                }
                BatchEntry::AccountUsage {
                    from,
                    account,
                    usage,
                } => self.broker.exchange.quotas.record(from, account, usage),
                BatchEntry::Notification(notification) => {
                    let notification = notification as &dyn Any;
                    if let Some(message) = notification.downcast_ref::<RegistryMessage>() {
                        mqtt::handle_message(&mut self.broker, message);
                    } else if let Some(report) = notification.downcast_ref::<WeightBelow>() {
                        self.broker.exchange.record_weight_below(report);
                    } else if let Some(report) = notification.downcast_ref::<WeightBeyond>() {
                        self.broker.exchange.record_weight_beyond(report);
                    } else if let Some(reply) = notification.downcast_ref::<MappedReply>() {
                        self.broker.exchange.record_reply(reply.clone());
                    } else if let Some(request) = notification.downcast_ref::<MeasuredRequest>() {
                        self.broker.record_measured(request);
                    }
                }
                BatchEntry::Interest {
                    from,
                    account,
                    filter,
                    queue,
                    weight,
                } => {
                    let router = self.broker.exchange.routers.changing(account);
                    router.set_remote(from, filter, queue, weight);
                    if weight == 0 {
                        self.broker.exchange.record_unsubscribed();
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
        self.broker.exchange.announce_to_links();
        receipt.produced_bytes = self.broker.exchange.outputs.produced_bytes;
        receipt.congested = self.broker.exchange.outputs.congested.map(|(id, _)| id);
        receipt
    }

    /// Takes the check that a client's admission needs. The caller reads nothing more from the client until
    /// it has called [`decided`](Shard::decided).
    pub fn take_check(&mut self, id: SessionId) -> Option<Check> {
        self.broker
            .exchange
            .sessions
            .get_mut(id.index())?
            .check
            .take()
    }

    /// Decides about a client again, after the account that its check needed was fetched. Refuses a client
    /// that still needs an account.
    pub fn decide_again(&mut self, id: SessionId) {
        if let Some(mut session) = self.broker.open_session(id) {
            session.decide_again();
        }
    }

    /// Handles the outcome of a check: the client's grant, or `None` if it is refused.
    pub fn decided(&mut self, id: SessionId, outcome: Option<Grant>) {
        if let Some(mut session) = self.broker.open_session(id) {
            session.decided(outcome);
        }
    }

    /// Returns the time at which the caller must call [`handle_timeout`](Shard::handle_timeout).
    pub fn next_timeout(&self) -> Option<Duration> {
        let session = self.broker.exchange.timers.next();
        let reply = self.broker.next_request_timeout();
        let mapped = self.broker.exchange.shared.gateways.next_expiry();
        [session, reply, mapped].into_iter().flatten().min()
    }

    /// Handles the timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.outputs.trim();
        self.trim(now);
        self.broker.expire_requests(now);
        self.broker.exchange.expire_replies(now);
        self.broker.end_overrun();
        while let Some(id) = self.broker.exchange.timers.pop(now) {
            if let Some(mut session) = self.broker.open_session(id) {
                session.handle_timeout(now);
            }
        }
    }

    /// Releases capacity that many removed subscriptions needed. Rare, because its cost grows with the
    /// capacity.
    fn trim(&mut self, now: Duration) {
        if now.saturating_sub(self.trimmed_at) < TRIM_EVERY {
            return;
        }
        self.trimmed_at = now;
        self.broker.exchange.subs.trim();
        self.broker.exchange.routers.trim();
        for set in LinkSet::ALL {
            self.broker.exchange.links[set].routers.trim();
        }
    }

    /// Reports that the peer has accepted as much of an outbox as it can for now. The caller has removed the
    /// written bytes.
    pub fn written(&mut self, id: SessionId, now: Duration) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.out.is_empty() {
            self.broker.exchange.outputs.reclaim(session);
            if let Some(mut session) = self.broker.mqtt(id) {
                session.request_retained();
            }
            return;
        }
        session.out.compact();
        let limits = &self.broker.exchange.config.limits;
        let kind = session.peer.kind;
        let is_patient = !limits.closes_at_deadline(kind);
        let deadline = session.out.block(now, is_patient) + limits.write_deadline_of(kind);
        self.broker.exchange.arm_before(id, deadline);
    }

    /// Ends a connection: it receives no more messages. Its subscriptions are removed at once, so that other
    /// members of its queue groups receive their messages. Exceptions are a client with thousands of
    /// subscriptions and no queue group, and another server with thousands of them, of which only those of
    /// queue groups are removed at once: [`remove_some_subscriptions`](Shard::remove_some_subscriptions)
    /// removes the others in steps.
    pub fn end(&mut self, id: SessionId, reason: CloseReason) {
        self.broker.end(id, reason);
    }

    /// Removes some subscriptions of a connection that is ending. Returns whether there are more.
    pub fn remove_some_subscriptions(&mut self, id: SessionId) -> bool {
        self.broker.remove_some_subscriptions(id)
    }

    /// Sets the time for following calls of [`apply`](Shard::apply). The time limit of permitted responses
    /// uses it.
    pub fn note_time(&mut self, now: Duration) {
        self.broker.exchange.outputs.now = now;
    }

    /// Returns the number of interest changes on this shard. While it is unchanged on all shards, the result
    /// of [`has_subscriber`](Shard::has_subscriber) is unchanged too.
    pub fn interest_changes(&self) -> u64 {
        self.broker.exchange.interest_changes
    }

    /// Returns whether a subject of an account has subscribers on any shard.
    pub fn has_subscriber(&mut self, account: AccountId, subject: &[u8]) -> bool {
        let router = self.broker.exchange.routers.of(account);
        let route = router.route(subject, &mut RouteMemo::default());
        !route.plain.is_empty()
            || !route.plain_remote.is_empty()
            || route.has_groups()
            || !route.bridge_targets().is_empty()
    }

    /// Returns the configured users and accounts.
    pub fn access(&self) -> &Arc<Access> {
        &self.broker.exchange.access
    }
}
