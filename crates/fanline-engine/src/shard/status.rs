//! What a shard tells of itself and of its sessions.

use super::Shard;
use super::session::{ConnectionStatus, SessionId, SubscriptionStatus};
use crate::nats::error::CloseReason;

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
}

/// Counts over all sessions of a shard, those that are gone included.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "named as in nats-server's /varz and /subsz")]
pub struct ShardStatus {
    pub connections: usize,
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
    pub cached_routes: usize,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub cached_targets: usize,
    pub cached_targets_max: usize,
}

/// A connection that was removed.
#[derive(Clone, Debug)]
pub struct Ended {
    /// What was known of it last.
    pub status: ConnectionStatus,
    /// Why it ended.
    pub reason: CloseReason,
}

impl Shard {
    /// Forgets a session whose connection is closed. `None` when there is none.
    pub fn remove(&mut self, id: SessionId, reason: CloseReason) -> Option<Ended> {
        self.end(id, reason);
        self.pending.ended.retain(|other| *other != id);
        let session = self.sessions.try_remove(id.index())?;
        self.timers.remove(&(session.deadline, id));
        let reason = session.ending.unwrap_or(reason);
        self.totals.in_msgs += session.in_msgs;
        self.totals.in_bytes += session.in_bytes;
        self.totals.out_msgs += session.out_msgs;
        self.totals.out_bytes += session.out_bytes;
        self.totals.stalls += session.stalls;
        self.totals.slow_consumers += u64::from(reason.is_slow_consumer());
        Some(Ended {
            status: session.status(),
            reason,
        })
    }

    /// Counts over all sessions.
    pub fn status(&self) -> ShardStatus {
        let Shard {
            totals,
            router,
            sessions,
            ..
        } = self;
        let cache = router.cache_counts();
        let mut status = ShardStatus {
            connections: sessions.len(),
            total_connections: totals.opened,
            subscriptions: router.subs.len(),
            subscriptions_added: router.subs.added(),
            in_msgs: totals.in_msgs,
            in_bytes: totals.in_bytes,
            out_msgs: totals.out_msgs,
            out_bytes: totals.out_bytes,
            slow_consumers: totals.slow_consumers,
            stale_connections: totals.stale,
            stalled_clients: totals.stalls,
            cached_routes: cache.cached,
            cache_hits: cache.hits,
            cache_misses: cache.misses,
            cached_targets: cache.targets,
            cached_targets_max: cache.targets_max,
        };
        for (_, session) in sessions {
            status.in_msgs += session.in_msgs;
            status.in_bytes += session.in_bytes;
            status.out_msgs += session.out_msgs;
            status.out_bytes += session.out_bytes;
            status.stalled_clients += session.stalls;
        }
        status
    }

    /// One connection, without the list of its subscriptions.
    pub fn connection(&self, id: SessionId) -> Option<ConnectionStatus> {
        let mut status = self.sessions.get(id.index())?.status();
        if status.backlog.is_none() {
            status.backlog = self.backlog(id).map(Box::new);
        }
        Some(status)
    }

    /// The subscriptions of one connection, none when it is gone.
    pub fn subscriptions(&self, id: SessionId) -> Vec<SubscriptionStatus> {
        let Some(session) = self.sessions.get(id.index()) else {
            return Vec::new();
        };
        (self.router.subs.of_session(id.0))
            .map(|sub| {
                let sub = self.router.subs.get(sub);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                SubscriptionStatus {
                    subject: text(&self.router.filter_of(sub)),
                    queue: text(sub.queue()),
                    sid: text(sub.sid()),
                    msgs: sub.delivered(),
                    max: sub.max(),
                    cid: session.cid,
                }
            })
            .collect()
    }

    /// All connections.
    pub fn session_ids(&self) -> impl Iterator<Item = SessionId> {
        self.sessions
            .iter()
            .map(|(index, _)| SessionId::from_index(index))
    }
}
