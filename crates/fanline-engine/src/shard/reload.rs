//! Other limits and credentials while connections are open.

use std::sync::Arc;
use std::time::Duration;

use super::session::SessionId;
use super::verbs::parse_limits;
use super::{Shard, ShardConfig};
use crate::nats::error::{ClientError, CloseReason};
use crate::nats::info::ServerInfo;

impl Shard {
    /// Goes on with another configuration, for the connections that are open, too. Those whose
    /// credentials do not hold any more are closed; nobody else is.
    ///
    /// The number of shards stays what it was, whatever `config` says.
    pub fn reload(&mut self, config: Arc<ShardConfig>, info: ServerInfo, now: Duration) {
        let before = std::mem::replace(&mut self.config, config);
        self.info = info;
        let limits = self.config.limits.clone();
        self.pending.set_limits(&limits, self.config.traces);
        let ids: Vec<SessionId> = self.session_ids().collect();
        for id in ids {
            let session = &mut self.sessions[id.index()];
            session.parse_limits = parse_limits(&limits, session.takes_headers);
            let options = &session.options;
            let is_admitted =
                self.config
                    .auth
                    .admits(&options.user, &options.pass, &options.auth_token);
            // Who has said nothing yet is asked when he does.
            if session.has_connected && !is_admitted {
                let error = Some(ClientError::Authorization);
                self.refuse(id, error, CloseReason::AuthenticationFailure);
                continue;
            }
            if !session.has_connected {
                let awaited = session.awaits_auth;
                session.awaits_auth = self.config.auth.is_required();
                if session.awaits_auth && !awaited {
                    let deadline = now + limits.auth_timeout;
                    self.arm_before(id, deadline);
                }
                continue;
            }
            if limits.ping_interval != before.limits.ping_interval {
                let ping_at = now + limits.ping_interval;
                session.ping_at = session.ping_at.min(ping_at);
                let ping_at = session.ping_at;
                self.arm_before(id, ping_at);
            }
        }
    }
}
