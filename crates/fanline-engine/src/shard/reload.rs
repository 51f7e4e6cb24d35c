//! Other limits and credentials while connections are open.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use super::SessionId;
use super::verbs::parse_limits;
use super::{Shard, ShardConfig};
use crate::auth::Access;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::codec::nats::info::ServerInfo;

impl Shard {
    /// Goes on with another configuration, for the connections that are open, too. Those that `access`
    /// would not let in are closed; nobody else is.
    ///
    /// The number of shards stays what it was, whatever `config` says; `access` decides in place of
    /// `config.auth`, because its accounts have the ids that they had.
    pub fn reload(
        &mut self,
        config: Arc<ShardConfig>,
        info: ServerInfo,
        access: Arc<Access>,
        now: Duration,
    ) {
        let before = std::mem::replace(&mut self.broker.exchange.config, config);
        self.broker.exchange.info = info;
        let limits = self.broker.exchange.config.limits.clone();
        self.broker
            .exchange
            .outputs
            .set_limits(&limits, self.broker.exchange.config.traces);
        let ids: Vec<SessionId> = self.session_ids().collect();
        for id in ids {
            let session = &mut self.broker.exchange.sessions[id.index()];
            session.parse_limits = parse_limits(&limits, session.takes_headers);
            if session.has_connected && limits.ping_interval != before.limits.ping_interval {
                let ping_at = session.ping_at.min(now + limits.ping_interval);
                session.ping_at = ping_at;
                self.broker.exchange.arm_before(id, ping_at);
            }
        }
        self.replace_access(access, now);
    }

    /// Closes this many clients because the server has more than it may have by now: the youngest.
    pub fn close_excess(&mut self, count: usize) {
        let mut clients: Vec<(u64, SessionId)> = (self.broker.exchange.sessions.iter())
            .filter(|(_, session)| session.ending.is_none() && session.is_client())
            .map(|(index, session)| (session.cid, SessionId::from_index(index)))
            .collect();
        clients.sort_unstable_by_key(|(cid, _)| Reverse(*cid));
        for (_, id) in clients.into_iter().take(count) {
            let error = Some(ClientError::ConnectionsExceeded);
            self.refuse(id, error, CloseReason::MaximumConnectionsExceeded);
        }
    }
}
