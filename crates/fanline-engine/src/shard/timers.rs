//! What happens because time passes: authentication runs out, clients are pinged, slow ones are
//! dropped.

use std::time::Duration;

use super::SessionId;
use super::Shard;
use super::leafs::Circle;
use crate::auth::ConnectionKind;
use crate::auth::Peer;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::remote::LinkSet;
use crate::limits::Limits;

/// A round trip that was measured longer ago than this is measured again.
const RTT_GOOD_FOR: Duration = Duration::from_secs(3600);

/// Between two looks at what could be given back.
const TRIM_EVERY: Duration = Duration::from_secs(10);

/// Silence after which this peer is pinged.
pub(super) fn ping_interval(limits: &Limits, peer: &Peer) -> Duration {
    let own = limits
        .websocket_ping_interval
        .filter(|_| peer.kind == ConnectionKind::WebSocket);
    own.unwrap_or(limits.ping_interval)
}

/// How long this peer may take to authenticate.
pub(super) fn auth_timeout(limits: &Limits, peer: &Peer) -> Duration {
    let own = match peer.kind {
        ConnectionKind::WebSocket => limits.websocket_auth_timeout,
        kind if kind.is_mqtt() => limits.mqtt.auth_timeout,
        _ => None,
    };
    own.unwrap_or_else(|| limits.auth_timeout_of(peer.kind.is_leaf()))
}

impl Shard {
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
        self.end_overrun();
        while let Some(id) = self.broker.exchange.timers.pop(now) {
            if self.broker.exchange.sessions[id.index()].ending.is_none() {
                self.handle_session_timeout(id, now);
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

    fn handle_session_timeout(&mut self, id: SessionId, now: Duration) {
        let limits = self.broker.exchange.config.limits.clone();
        let session = &self.broker.exchange.sessions[id.index()];
        let mut next = session.ping_at;
        if session.kind.mqtt.is_some() {
            let Some(at) = self.handle_mqtt_timeout(id, now) else {
                return;
            };
            next = at;
        } else if session.awaits_auth {
            next = session.opened_at + auth_timeout(&limits, &session.peer);
            if now >= next {
                let error = Some(ClientError::AuthenticationTimeout);
                return self.refuse(id, error, CloseReason::AuthenticationTimeout);
            }
        } else if now >= session.ping_at {
            if !self.ping_if_quiet(id, now) {
                return;
            }
            next = now + ping_interval(&limits, &self.broker.exchange.sessions[id.index()].peer);
            self.broker.exchange.sessions[id.index()].ping_at = next;
        }
        match self.handle_circle(id, now) {
            Circle::Open => {}
            Circle::Suspected(at) => next = next.min(at),
            Circle::Cut => return,
        }
        let session = &self.broker.exchange.sessions[id.index()];
        let ends = [
            (
                session.account_expires_at,
                ClientError::AccountAuthenticationExpired,
            ),
            (session.expires_at, ClientError::AuthenticationExpired),
        ];
        for (at, error) in ends {
            let Some(at) = at else { continue };
            if now >= at {
                return self.refuse(id, Some(error), CloseReason::AuthenticationExpired);
            }
            next = next.min(at);
        }
        if let Some(since) = self.broker.exchange.sessions[id.index()]
            .out
            .blocked_since()
        {
            let is_leaf = self.broker.exchange.sessions[id.index()]
                .kind
                .leaf
                .is_some();
            let deadline = since + limits.write_deadline_of(is_leaf);
            if now >= deadline {
                return self.end(id, CloseReason::SlowConsumerWriteDeadline);
            }
            next = next.min(deadline);
        }
        self.broker.exchange.timers.set(id, Some(next));
    }

    /// Pings a client from which nothing was heard, or whose round trip is not known. False when
    /// it has left too many unanswered and is gone.
    fn ping_if_quiet(&mut self, id: SessionId, now: Duration) -> bool {
        let limits = &self.broker.exchange.config.limits;
        let session = &mut self.broker.exchange.sessions[id.index()];
        let interval = ping_interval(limits, &session.peer);
        // What is wanted is told to another server in one go, and a ping would wait behind it. A server that takes
        // of it is there.
        let blocked_since = (session.kind.leaf.as_ref()).and_then(|_| session.out.blocked_since());
        if blocked_since.is_some_and(|since| now.saturating_sub(since) < interval) {
            session.pings_out = 0;
            return true;
        }
        let is_quiet = now.saturating_sub(session.active_at) >= interval;
        let knows_rtt =
            session.rtt.is_some() && now.saturating_sub(session.pinged_at) < RTT_GOOD_FOR;
        if !is_quiet && knows_rtt {
            return true;
        }
        if session.pings_out + 1 > limits.pings_out_max {
            let account = session.account;
            self.broker.exchange.totals_of(account).stale += 1;
            self.refuse(id, Some(ClientError::Stale), CloseReason::StaleConnection);
            return false;
        }
        session.pings_out += 1;
        session.pinged_at = now;
        self.broker.exchange.send(id, b"PING\r\n");
        true
    }
}
