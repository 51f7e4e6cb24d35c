//! Reloads: new limits and credentials while connections are open.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::{SessionId, Shard, ShardConfig};
use crate::auth::Access;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::ServerInfo;
use crate::session::client::parse_limits;
use crate::session::timers::auth_timeout;

impl Shard {
    /// Applies a new configuration, also to open connections. Closes only connections that `access` does not
    /// admit any more.
    ///
    /// The number of shards does not change, whatever `config` contains. `access` is used instead of
    /// `config.auth`, because the accounts in `access` keep their ids.
    pub fn reload(
        &mut self,
        config: Arc<ShardConfig>,
        info: ServerInfo,
        access: Arc<Access>,
        now: Duration,
    ) {
        let before = std::mem::replace(&mut self.broker.exchange.config, config);
        let before_info = std::mem::take(&mut self.broker.exchange.info);
        self.broker.exchange.info = ServerInfo {
            connect_urls: before_info.connect_urls,
            // The server may have taken over the name of another one's cluster.
            cluster: before_info.cluster,
            cluster_is_generated: before_info.cluster_is_generated,
            ..info
        };
        let limits = self.broker.exchange.config.limits.clone();
        self.broker
            .exchange
            .outputs
            .set_limits(&limits, self.broker.exchange.config.traces);
        let ids: Vec<SessionId> = self.session_ids().collect();
        for id in ids {
            let session = &mut self.broker.exchange.sessions[id.index()];
            session.parse_limits = parse_limits(&limits, session.takes_headers);
            let kind = session.peer.kind;
            let interval = limits.ping_interval_of(kind);
            if session.has_connected && interval != before.limits.ping_interval_of(kind) {
                let ping_at = session.pings.next_at.min(now + interval);
                session.pings.next_at = ping_at;
                self.broker.exchange.arm_before(id, ping_at);
            }
        }
        self.renew_routes(&before);
        self.replace_access(access, now);
    }

    /// Applies changed settings to open routes. If these carry other accounts now, they are closed, and opened
    /// again by the servers that had dialed them.
    fn renew_routes(&mut self, before: &ShardConfig) {
        let config = Arc::clone(&self.broker.exchange.config);
        let Some((before, new)) = before.routes.as_ref().zip(config.routes.as_ref()) else {
            return;
        };
        for id in self.route_ids() {
            if !new.divides_as(before) {
                self.broker.end(id, CloseReason::RouteRemoved);
            } else if new.rights != before.rights {
                self.broker.route(id).renew_rights(new.rights.clone());
            }
        }
        if new.rights != before.rights {
            self.broker.exchange.renew_route_rights();
        }
    }

    /// Closes the `count` youngest clients, because the server exceeds its reduced connection limit.
    pub fn close_excess(&mut self, count: usize) {
        let mut clients: Vec<(u64, SessionId)> = (self.broker.exchange.sessions.iter())
            .filter(|(_, session)| session.ending.is_none() && session.is_client())
            .map(|(index, session)| (session.cid, SessionId::from_index(index)))
            .collect();
        clients.sort_unstable_by_key(|(cid, _)| Reverse(*cid));
        for (_, id) in clients.into_iter().take(count) {
            let error = Some(ClientError::ConnectionsExceeded);
            self.broker
                .refuse(id, error, CloseReason::MaximumConnectionsExceeded);
        }
    }

    /// Replaces users and accounts. Disconnects clients that `access` does not admit any more. Applies new
    /// permissions to all others, and drops subscriptions that these permissions do not allow.
    pub fn replace_access(&mut self, access: Arc<Access>, now: Duration) {
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.access = Arc::clone(&access);
        self.broker.exchange.info.auth_required = access.is_required();
        self.broker.set_accounts(&access);
        let ids: Vec<SessionId> = (self.broker.exchange.sessions.iter())
            // System clients need no credentials.
            .filter(|(_, session)| session.ending.is_none() && session.is_client())
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in ids {
            let session = &mut self.broker.exchange.sessions[id.index()];
            if !session.has_connected && !session.grant.names_user() {
                // A client that has not connected yet is checked at its CONNECT.
                let is_required = access.is_required_of(session.peer.kind);
                let awaited = std::mem::replace(&mut session.awaits_auth, is_required);
                if session.awaits_auth && !awaited {
                    let deadline =
                        now + auth_timeout(&self.broker.exchange.config.limits, &session.peer);
                    self.broker.exchange.arm_before(id, deadline);
                } else if !is_required {
                    self.broker.count_connection(id);
                }
                continue;
            }
            let session = &self.broker.exchange.sessions[id.index()];
            match access.renew(&session.grant, session.peer.kind) {
                Some(grant) => {
                    self.broker.any(id).apply_grant(grant);
                    self.broker.any(id).drop_denied_subscriptions();
                }
                None => self.broker.any(id).disconnect_invalid(),
            }
        }
        for id in self.leaf_ids() {
            self.broker.leaf(id).renew();
        }
        self.broker.exchange.renew_imports();
        self.renew_gateways();
        self.broker.exchange.announce_to_links();
    }
}
