//! Timers of sessions: authentication times out, clients are pinged, and slow clients are disconnected.

use std::time::Duration;

use super::leaf::Cycle;
use super::{AnySession, Kind};
use crate::auth::{ConnectionKind, Peer};
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::limits::{Limits, LinkLimits};

/// Age at which the round trip of a peer is measured again.
const RTT_GOOD_FOR: Duration = Duration::from_secs(3600);

/// Longest ping interval of routes. A peer that does not respond is found within three intervals.
const ROUTE_PING_INTERVAL_MAX: Duration = Duration::from_secs(30);

/// Longest ping interval of gateways. Their round-trip times decide which cluster receives a message of a queue
/// group.
const GATEWAY_PING_INTERVAL_MAX: Duration = Duration::from_secs(15);

impl Limits {
    /// Returns the limits that connections to other servers have; `None` for those of clients.
    fn link(&self, kind: ConnectionKind) -> Option<&LinkLimits> {
        match kind {
            ConnectionKind::Route => Some(&self.routes),
            ConnectionKind::Gateway => Some(&self.gateways),
            kind if kind.is_leaf() => Some(&self.leafs),
            _ => None,
        }
    }

    /// Returns the write deadline of a connection.
    pub fn write_deadline_of(&self, kind: ConnectionKind) -> Duration {
        let own = self.link(kind).and_then(|link| link.write_deadline);
        own.unwrap_or(self.write_deadline)
    }

    /// Returns whether all output that is pending when a connection blocks must be written before the write
    /// deadline. Otherwise each byte that the peer accepts restarts the deadline.
    pub(crate) fn closes_at_deadline(&self, kind: ConnectionKind) -> bool {
        self.link(kind).is_none_or(|link| link.closes_at_deadline)
    }

    /// Returns the time without input after which a peer is pinged.
    pub(crate) fn ping_interval_of(&self, kind: ConnectionKind) -> Duration {
        let own = match kind {
            ConnectionKind::WebSocket => self.websocket_ping_interval,
            kind => self.link(kind).and_then(|link| link.ping_interval),
        };
        let interval = own.unwrap_or(self.ping_interval);
        match kind {
            ConnectionKind::Route => interval.min(ROUTE_PING_INTERVAL_MAX),
            ConnectionKind::Gateway => interval.min(GATEWAY_PING_INTERVAL_MAX),
            _ => interval,
        }
    }

    /// Returns the number of pings that a peer may leave unanswered.
    pub(crate) fn pings_out_max_of(&self, kind: ConnectionKind) -> u32 {
        let own = self.link(kind).and_then(|link| link.pings_out_max);
        own.unwrap_or(self.pings_out_max)
    }
}

/// Returns the time that a peer has to authenticate.
pub(crate) fn auth_timeout(limits: &Limits, peer: &Peer) -> Duration {
    let own = match peer.kind {
        ConnectionKind::WebSocket => limits.websocket_auth_timeout,
        kind if kind.is_mqtt() => limits.mqtt.auth_timeout,
        _ => None,
    };
    own.unwrap_or_else(|| limits.auth_timeout_of(peer.kind.is_leaf()))
}

impl AnySession<'_> {
    /// Handles the session's timer, and arms it again.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        let limits = self.broker.exchange.config.limits.clone();
        let session = &self.broker.exchange.sessions[self.id.index()];
        let mut next = session.pings.next_at;
        if session.kind.is_mqtt() {
            let Some(at) = self.broker.mqtt_of(self.id).handle_timeout(now) else {
                return;
            };
            next = at;
        } else if session.awaits_auth {
            let config = &self.broker.exchange.config;
            let timeout = match session.kind {
                Kind::Route(_) => config.routes.as_ref().map(|own| own.auth_timeout),
                Kind::Gateway(_) => config.gateways.as_ref().map(|own| own.auth_timeout),
                _ => None,
            };
            let timeout = timeout.unwrap_or_else(|| auth_timeout(&limits, &session.peer));
            next = session.opened_at + timeout;
            if now >= next {
                let error = Some(ClientError::AuthenticationTimeout);
                return self
                    .broker
                    .refuse(self.id, error, CloseReason::AuthenticationTimeout);
            }
        } else if now >= session.pings.next_at {
            if !self.ping_if_quiet(now) {
                return;
            }
            next = now + limits.ping_interval_of(self.session().peer.kind);
            self.session_mut().pings.next_at = next;
        }
        if self.is_leaf() {
            match self.broker.leaf(self.id).handle_cycle(now) {
                Cycle::Open => {}
                Cycle::Suspected(at) => next = next.min(at),
                Cycle::Cut => return,
            }
        }
        let session = &self.broker.exchange.sessions[self.id.index()];
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
                return self.broker.refuse(
                    self.id,
                    Some(error),
                    CloseReason::AuthenticationExpired,
                );
            }
            next = next.min(at);
        }
        if let Some(since) = self.session().out.blocked_since() {
            let deadline = since + limits.write_deadline_of(self.session().peer.kind);
            if now >= deadline {
                return self
                    .broker
                    .end(self.id, CloseReason::SlowConsumerWriteDeadline);
            }
            next = next.min(deadline);
        }
        self.broker.exchange.timers.set(self.id, Some(next));
    }

    /// Pings a peer if its last input is old, or if its round trip is not known. Returns false if the peer left
    /// too many pings unanswered and is disconnected.
    fn ping_if_quiet(&mut self, now: Duration) -> bool {
        let limits = &self.broker.exchange.config.limits;
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let interval = limits.ping_interval_of(session.peer.kind);
        // Interest is announced to another server in one block of output, and a ping would wait behind it. A
        // server that reads the block is alive.
        let is_link = session.kind.is_link();
        let blocked_since = session.out.blocked_since().filter(|_| is_link);
        if blocked_since.is_some_and(|since| now.saturating_sub(since) < interval) {
            session.pings.unanswered = 0;
            return true;
        }
        let is_quiet = now.saturating_sub(session.active_at) >= interval;
        let knows_rtt =
            session.rtt.is_some() && now.saturating_sub(session.pings.sent_at) < RTT_GOOD_FOR;
        // A client that is slow to connect may take the next line after its CONNECT as the answer to its own PING.
        let may_measure = session.has_connected || is_link;
        if !is_quiet && (knows_rtt || !may_measure) {
            return true;
        }
        if session.pings.unanswered + 1 > limits.pings_out_max_of(session.peer.kind) {
            let account = session.account;
            self.broker.exchange.totals_of(account).stale += 1;
            self.broker.refuse(
                self.id,
                Some(ClientError::Stale),
                CloseReason::StaleConnection,
            );
            return false;
        }
        session.pings.unanswered += 1;
        session.pings.sent_at = now;
        self.broker.exchange.send(self.id, b"PING\r\n");
        true
    }
}
