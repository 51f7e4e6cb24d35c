//! What a shard tells of itself and of its sessions.

use super::session::{ConnectionStatus, Session, SessionId, SubscriptionStatus};
use super::{Shard, leafs};
use crate::auth::AccountId;
use crate::codec::leaf::{Leaf, LeafEnded};
use crate::codec::nats::error::CloseReason;

/// Counts of sessions that are gone, and of all there ever were.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) opened: u64,
    pub(super) in_msgs: u64,
    pub(super) in_bytes: u64,
    pub(super) out_msgs: u64,
    pub(super) out_bytes: u64,
    pub(super) slow_consumers: u64,
    pub(super) stale: u64,
    pub(super) stalls: u64,
    pub(super) leafs: LeafTraffic,
}

/// What of the counts crossed links to other servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the counts that it is a part of")]
pub struct LeafTraffic {
    pub in_msgs: u64,
    pub in_bytes: u64,
    pub out_msgs: u64,
    pub out_bytes: u64,
}

impl LeafTraffic {
    fn add(&mut self, other: &LeafTraffic) {
        self.in_msgs += other.in_msgs;
        self.in_bytes += other.in_bytes;
        self.out_msgs += other.out_msgs;
        self.out_bytes += other.out_bytes;
    }

    /// That of a session, if it is one's that is a link.
    fn of(session: &Session) -> Self {
        match session.leaf {
            None => LeafTraffic::default(),
            Some(_) => LeafTraffic {
                in_msgs: session.in_msgs,
                in_bytes: session.in_bytes,
                out_msgs: session.out_msgs,
                out_bytes: session.out_bytes,
            },
        }
    }
}

/// Counts over all sessions of a shard, those that are gone included.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /varz and /subsz")]
pub struct ShardStatus {
    pub connections: usize,
    pub leafnodes: usize,
    pub total_connections: u64,
    pub subscriptions: usize,
    pub subscriptions_added: u64,
    pub in_msgs: u64,
    pub in_bytes: u64,
    pub out_msgs: u64,
    pub out_bytes: u64,
    pub slow_consumers: u64,
    pub stale_connections: u64,
    pub stalled_clients: u64,
    /// What of these crossed links to other servers.
    pub leafs: LeafTraffic,
    /// Connections that speak MQTT.
    pub mqtt_connections: usize,
    /// Messages above QoS 0 that their clients have not acknowledged.
    pub mqtt_in_flight: usize,
    pub cached_routes: usize,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cached_targets: usize,
    pub cached_targets_max: usize,
}

impl Totals {
    fn add_to(&self, status: &mut ShardStatus) {
        status.total_connections += self.opened;
        status.in_msgs += self.in_msgs;
        status.in_bytes += self.in_bytes;
        status.out_msgs += self.out_msgs;
        status.out_bytes += self.out_bytes;
        status.slow_consumers += self.slow_consumers;
        status.stale_connections += self.stale;
        status.stalled_clients += self.stalls;
        status.leafs.add(&self.leafs);
    }
}

impl ShardStatus {
    /// Adds another shard's or account's counts.
    pub fn add(&mut self, other: &ShardStatus) {
        self.connections += other.connections;
        self.leafnodes += other.leafnodes;
        self.total_connections += other.total_connections;
        self.subscriptions += other.subscriptions;
        self.subscriptions_added += other.subscriptions_added;
        self.in_msgs += other.in_msgs;
        self.in_bytes += other.in_bytes;
        self.out_msgs += other.out_msgs;
        self.out_bytes += other.out_bytes;
        self.slow_consumers += other.slow_consumers;
        self.stale_connections += other.stale_connections;
        self.stalled_clients += other.stalled_clients;
        self.leafs.add(&other.leafs);
        self.mqtt_connections += other.mqtt_connections;
        self.mqtt_in_flight += other.mqtt_in_flight;
        self.cached_routes += other.cached_routes;
        self.cache_hits += other.cache_hits;
        self.cache_misses += other.cache_misses;
        self.cached_targets += other.cached_targets;
        self.cached_targets_max = self.cached_targets_max.max(other.cached_targets_max);
    }
}

/// A connection that was removed.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What was known of it last.
    pub status: ConnectionStatus,
    /// Why it ended.
    pub reason: CloseReason,
    /// What there is to say of it when it was another server.
    pub leaf: Option<LeafEnded>,
}

impl Shard {
    /// Forgets a session whose connection is closed. `None` when there is none.
    pub fn remove(&mut self, id: SessionId, reason: CloseReason) -> Option<Ended> {
        self.end(id, reason);
        while self.forget_some(id) {}
        self.exchange.pending.ended.retain(|other| *other != id);
        let session = self.exchange.sessions.try_remove(id.index())?;
        self.timers.remove(&(session.deadline, id));
        let reason = session.ending.unwrap_or(reason);
        let totals = self.totals_of(session.account);
        totals.in_msgs += session.in_msgs;
        totals.in_bytes += session.in_bytes;
        totals.out_msgs += session.out_msgs;
        totals.out_bytes += session.out_bytes;
        totals.stalls += session.stalls;
        totals.slow_consumers += u64::from(reason.is_slow_consumer());
        totals.leafs.add(&LeafTraffic::of(&session));
        Some(Ended {
            status: session.status(),
            reason,
            leaf: leafs::ended(&session),
        })
    }

    /// Counts over all sessions.
    pub fn status(&self) -> ShardStatus {
        let mut sum = ShardStatus::default();
        for one in self.status_by_account() {
            sum.add(&one);
        }
        sum
    }

    /// The same for each account, by its id.
    pub fn status_by_account(&self) -> Vec<ShardStatus> {
        let accounts = self.exchange.routers.len();
        let mut all = vec![ShardStatus::default(); accounts.max(self.exchange.totals.len())];
        for (status, totals) in all.iter_mut().zip(&self.exchange.totals) {
            totals.add_to(status);
        }
        for (status, router) in all.iter_mut().zip(self.exchange.routers.iter()) {
            let cache = router.cache_counts();
            status.subscriptions = router.len();
            status.subscriptions_added = router.added();
            status.cached_routes = cache.cached;
            status.cache_hits = cache.hits;
            status.cache_misses = cache.misses;
            status.cached_targets = cache.targets;
            status.cached_targets_max = cache.targets_max;
        }
        for (_, session) in &self.exchange.sessions {
            let status = &mut all[session.account.index()];
            if session.is_insider {
                status.subscriptions -= session.subscriptions;
                status.subscriptions_added -= session.subscriptions as u64;
                continue;
            }
            status.connections += usize::from(session.leaf.is_none());
            let is_linked = |leaf: &Leaf| leaf.is_ready();
            status.leafnodes += usize::from(session.leaf.as_deref().is_some_and(is_linked));
            status.leafs.add(&LeafTraffic::of(session));
            status.in_msgs += session.in_msgs;
            status.in_bytes += session.in_bytes;
            status.out_msgs += session.out_msgs;
            status.out_bytes += session.out_bytes;
            status.stalled_clients += session.stalls;
            if let Some(mqtt) = &session.mqtt {
                status.mqtt_connections += 1;
                status.mqtt_in_flight += mqtt.in_flight();
            }
        }
        all
    }

    /// What is counted of an account beyond the life of its sessions.
    pub(super) fn totals_of(&mut self, account: AccountId) -> &mut Totals {
        let at = account.index();
        if self.exchange.totals.len() <= at {
            self.exchange.totals.resize(at + 1, Totals::default());
        }
        &mut self.exchange.totals[at]
    }

    /// The number of a connection, which no other has had.
    pub fn cid(&self, id: SessionId) -> Option<u64> {
        Some(self.exchange.sessions.get(id.index())?.cid)
    }

    /// One connection, without the list of its subscriptions.
    pub fn connection(&self, id: SessionId) -> Option<ConnectionStatus> {
        let mut status = self.exchange.sessions.get(id.index())?.status();
        if status.backlog.is_none() {
            status.backlog = self.backlog(id).map(Box::new);
        }
        Some(status)
    }

    /// The subscriptions of one connection, none when it is gone.
    pub fn subscriptions(&self, id: SessionId) -> Vec<SubscriptionStatus> {
        let Some(session) = self.exchange.sessions.get(id.index()) else {
            return Vec::new();
        };
        (self.exchange.subs.of_session(id.0))
            .map(|sub| {
                let sub = self.exchange.subs.get(sub);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                SubscriptionStatus {
                    subject: text(&self.router_of(session).filter_of(sub)),
                    queue: text(sub.queue()),
                    sid: text(sub.sid()),
                    msgs: sub.delivered(),
                    max: sub.max(),
                    cid: session.cid,
                    account: session.account,
                }
            })
            .collect()
    }

    /// All clients.
    pub fn session_ids(&self) -> impl Iterator<Item = SessionId> {
        self.exchange
            .sessions
            .iter()
            .filter(|(_, session)| session.is_client())
            .map(|(index, _)| SessionId::from_index(index))
    }
}
