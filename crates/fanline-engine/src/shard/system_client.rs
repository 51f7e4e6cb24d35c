//! System clients, and requests of the system account about other clients.

use super::{SessionId, Shard};
use crate::auth::AccountId;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::session::client::parse_limits;

impl Shard {
    /// Turns a new connection into a system client of an account. A system client sends no CONNECT, and is
    /// neither counted nor listed among connections.
    pub fn admit_system_client(&mut self, id: SessionId, account: AccountId) {
        self.broker.bind(id, account);
        self.broker.exchange.totals_of(account).opened -= 1;
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.is_system_client = true;
        session.awaits_auth = false;
        // A header contains the account of the requester, so headers are enabled even if clients may not use
        // them.
        session.takes_headers = true;
        // Messages from the system client may have headers too.
        session.parse_limits = parse_limits(&self.broker.exchange.config.limits, true);
        // A system client receives no `+OK`.
        session.options.verbose = false;
        let ping_at = session.pings.next_at;
        self.broker.exchange.rearm(id, ping_at);
    }

    /// Returns whether a connection is a system client.
    pub fn is_system_client(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| session.is_system_client)
    }

    /// Returns whether a client has connected and is admitted.
    pub fn is_admitted(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| {
            session.has_connected
                && !session.awaits_auth
                && session.ending.is_none()
                && !session.kind.is_link()
        })
    }

    /// Closes the connection of a client or a leaf node. Returns false if no connection has this id.
    pub fn kick(&mut self, cid: u64) -> bool {
        let Some(id) = self.find_client(cid).or_else(|| self.find_leaf(cid)) else {
            return false;
        };
        self.end(id, CloseReason::Kicked);
        true
    }

    /// Closes the connection of a client or a leaf node, because its account has too many in the cluster. Returns false
    /// if no connection has this id.
    pub fn close_over_limit(&mut self, cid: u64) -> bool {
        let Some(id) = self.find_client(cid).or_else(|| self.find_leaf(cid)) else {
            return false;
        };
        let error = Some(ClientError::AccountConnectionsExceeded);
        self.broker
            .refuse(id, error, CloseReason::MaximumAccountConnectionsExceeded);
        true
    }

    /// Sets the numbers of an account's clients and leaf nodes at the other servers of the cluster. They count for its
    /// limits.
    pub fn set_remote_connections(&mut self, account: AccountId, clients: u32, leafnodes: u32) {
        let quotas = &mut self.broker.exchange.quotas;
        quotas.record_remote(account, clients, leafnodes);
    }

    /// Sends a client the INFO of lame duck mode. Returns false if no client has this id.
    pub fn send_lame_duck(&mut self, cid: u64) -> bool {
        let Some(id) = self.find_client(cid) else {
            return false;
        };
        let is_lame_duck = std::mem::replace(&mut self.broker.exchange.info.lame_duck, true);
        if !self.broker.exchange.sessions[id.index()].kind.is_mqtt() {
            self.broker.client(id).send_info(false);
        }
        self.broker.exchange.info.lame_duck = is_lame_duck;
        true
    }

    fn find_client(&self, cid: u64) -> Option<SessionId> {
        let mut all = self.broker.exchange.sessions.iter();
        let found = all.find(|(_, session)| {
            session.cid == cid && session.is_client() && session.ending.is_none()
        });
        found.map(|(index, _)| SessionId::from_index(index))
    }

    fn find_leaf(&self, cid: u64) -> Option<SessionId> {
        let is_it = |id: &SessionId| {
            let session = &self.broker.exchange.sessions[id.index()];
            session.cid == cid && session.ending.is_none()
        };
        self.leaf_ids().into_iter().find(is_it)
    }

    /// Enters lame duck mode, and announces it to all clients that support it.
    pub fn announce_lame_duck(&mut self) {
        self.broker.exchange.info.lame_duck = true;
        self.hide_own_urls();
        self.announce_lame_duck_to_peers();
        let recipients: Vec<SessionId> = (self.broker.exchange.sessions.iter())
            .filter(|(_, s)| s.has_connected && s.options.protocol >= 1 && s.ending.is_none())
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in recipients {
            self.broker.client(id).send_info(false);
        }
    }
}
