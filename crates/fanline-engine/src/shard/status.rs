//! The status of a shard and of its sessions, for monitoring.

use super::leafs::ended;
use super::{LeafTraffic, Session, SessionId, Shard};
use crate::codec::nats::error::CloseReason;
use crate::codec::route::Carries;
use crate::exchange::backlog::Backlog;
use crate::exchange::totals::Totals;
use crate::session::gateway::GatewayEnded;
use crate::session::leaf::{Leaf, LeafEnded};
use crate::session::route::{Route, RouteEnded};
use crate::session::{ConnectionStatus, SubscriptionStatus};

/// Returns the traffic of a connection to another server; zero for other sessions.
fn leaf_traffic(session: &Session) -> LeafTraffic {
    match session.kind.is_link() {
        false => LeafTraffic::default(),
        true => LeafTraffic {
            in_msgs: session.in_msgs,
            in_bytes: session.in_bytes,
            out_msgs: session.out_msgs,
            out_bytes: session.out_bytes,
        },
    }
}

/// Adds the counters of an account that outlive its sessions.
fn add_totals(totals: &Totals, status: &mut ShardStatus) {
    status.total_connections += totals.opened;
    status.in_msgs += totals.in_msgs;
    status.in_bytes += totals.in_bytes;
    status.out_msgs += totals.out_msgs;
    status.out_bytes += totals.out_bytes;
    status.slow_consumers += totals.slow_consumers;
    status.stale_connections += totals.stale;
    status.stalled_clients += totals.stalls;
    status.leafs.add(&totals.leafs);
}

/// Counters over all sessions of a shard, including closed ones.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /varz and /subsz")]
pub struct ShardStatus {
    pub connections: usize,
    pub leafnodes: usize,
    pub routes: usize,
    /// Number of other servers of the cluster that this shard knows.
    pub remotes: usize,
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
    /// The part of the traffic that belongs to leaf connections and routes.
    pub leafs: LeafTraffic,
    /// Number of MQTT connections.
    pub mqtt_connections: usize,
    /// Number of messages above QoS 0 that clients have not acknowledged.
    pub mqtt_in_flight: usize,
    pub cached_routes: usize,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cached_targets: usize,
    pub cached_targets_max: usize,
}

impl ShardStatus {
    /// Adds the counters of another shard or account.
    pub fn add(&mut self, other: &ShardStatus) {
        self.connections += other.connections;
        self.leafnodes += other.leafnodes;
        self.routes += other.routes;
        self.remotes += other.remotes;
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
    /// Its last status.
    pub status: ConnectionStatus,
    /// Why it was closed.
    pub reason: CloseReason,
    /// Facts about a leaf connection that the dialer needs.
    pub leaf: Option<LeafEnded>,
    /// Facts about a route that the dialer needs.
    pub route: Option<Box<RouteEnded>>,
    /// Facts about a gateway connection that the dialer needs.
    pub gateway: Option<Box<GatewayEnded>>,
}

impl Shard {
    /// Removes a session whose connection is closed. Returns `None` if there is none.
    pub fn remove(&mut self, id: SessionId, reason: CloseReason) -> Option<Ended> {
        self.end(id, reason);
        self.broker.end_overrun();
        while self.remove_some_subscriptions(id) {}
        self.broker
            .exchange
            .outputs
            .ended
            .retain(|other| *other != id);
        let session = self.broker.exchange.sessions.try_remove(id.index())?;
        self.broker.exchange.timers.set(id, None);
        let reason = session.ending.unwrap_or(reason);
        let totals = self.broker.exchange.totals_of(session.account);
        totals.in_msgs += session.in_msgs;
        totals.in_bytes += session.in_bytes;
        totals.out_msgs += session.out_msgs;
        totals.out_bytes += session.out_bytes;
        totals.stalls += session.stalls;
        totals.slow_consumers += u64::from(reason.is_slow_consumer());
        totals.leafs.add(&leaf_traffic(&session));
        Some(Ended {
            status: session.status(),
            reason,
            leaf: ended(&session),
            route: session.kind.route().map(|route| Box::new(route.ended())),
            gateway: (session.kind.gateway()).map(|gateway| Box::new(gateway.ended())),
        })
    }

    /// Returns the counters over all sessions.
    pub fn status(&self) -> ShardStatus {
        let mut sum = ShardStatus::default();
        for one in self.status_by_account() {
            sum.add(&one);
        }
        sum
    }

    /// Returns the counters of each account, indexed by account id.
    pub fn status_by_account(&self) -> Vec<ShardStatus> {
        let accounts = self.broker.exchange.routers.len();
        let mut all = vec![ShardStatus::default(); accounts.max(self.broker.exchange.totals.len())];
        for (status, totals) in all.iter_mut().zip(&self.broker.exchange.totals) {
            add_totals(totals, status);
        }
        for (status, router) in all.iter_mut().zip(self.broker.exchange.routers.iter()) {
            let cache = router.cache_counts();
            status.subscriptions = router.len();
            status.subscriptions_added = router.added();
            status.cached_routes = cache.cached;
            status.cache_hits = cache.hits;
            status.cache_misses = cache.misses;
            status.cached_targets = cache.targets;
            status.cached_targets_max = cache.targets_max;
        }
        for (_, session) in &self.broker.exchange.sessions {
            let status = &mut all[session.account.index()];
            if session.is_system_client {
                status.subscriptions -= session.subscriptions;
                status.subscriptions_added -= session.subscriptions as u64;
                continue;
            }
            status.connections += usize::from(!session.kind.is_link());
            let is_linked = |leaf: &Leaf| leaf.is_ready();
            status.leafnodes += usize::from(session.kind.leaf().is_some_and(is_linked));
            let is_first = |route: &&Route| route.carries == Carries::Slot(0);
            let route = session.kind.route().filter(|route| route.is_ready());
            status.remotes += usize::from(route.filter(is_first).is_some());
            status.routes += usize::from(session.kind.route().is_some_and(Route::is_ready));
            status.leafs.add(&leaf_traffic(session));
            status.in_msgs += session.in_msgs;
            status.in_bytes += session.in_bytes;
            status.out_msgs += session.out_msgs;
            status.out_bytes += session.out_bytes;
            status.stalled_clients += session.stalls;
            if let Some(mqtt) = session.kind.mqtt() {
                status.mqtt_connections += 1;
                status.mqtt_in_flight += mqtt.in_flight();
            }
        }
        all
    }

    /// Returns the id of a connection, which is never reused.
    pub fn cid(&self, id: SessionId) -> Option<u64> {
        Some(self.broker.exchange.sessions.get(id.index())?.cid)
    }

    /// Returns the status of a connection, without the list of its subscriptions.
    pub fn connection(&self, id: SessionId) -> Option<ConnectionStatus> {
        let mut status = self.broker.exchange.sessions.get(id.index())?.status();
        if status.backlog.is_none() {
            status.backlog = self.backlog(id).map(Box::new);
        }
        Some(status)
    }

    /// Returns whether the peer of a connection does not accept all pending output.
    pub fn is_behind(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| session.out.blocked_since().is_some())
    }

    /// Returns the backlog of a connection whose peer does not accept all pending output, otherwise `None`.
    pub fn backlog(&self, id: SessionId) -> Option<Backlog> {
        self.broker.exchange.backlog(id)
    }

    /// Returns the subscriptions of a connection; none if it is gone.
    pub fn subscriptions(&self, id: SessionId) -> Vec<SubscriptionStatus> {
        let Some(session) = self.broker.exchange.sessions.get(id.index()) else {
            return Vec::new();
        };
        (self.broker.exchange.subs.of_session(id.0))
            .map(|sub| {
                let sub = self.broker.exchange.subs.get(sub);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                SubscriptionStatus {
                    subject: text(&self.broker.exchange.router_of(sub).filter_of(sub)),
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

    /// Returns all clients.
    pub fn session_ids(&self) -> impl Iterator<Item = SessionId> {
        self.broker
            .exchange
            .sessions
            .iter()
            .filter(|(_, session)| session.is_client())
            .map(|(index, _)| SessionId::from_index(index))
    }
}
