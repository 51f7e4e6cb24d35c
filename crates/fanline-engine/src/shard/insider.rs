//! The server's own clients, and what the one in the system account has done to others.

use super::{SessionId, Shard};
use crate::auth::AccountId;
use crate::codec::nats::error::CloseReason;
use crate::session::client::parse_limits;

impl Shard {
    /// Lets a connection that was just opened into an account, whatever it shows: it is the server's own.
    /// It sends no CONNECT, and is not counted or told of among the connections.
    pub fn admit_insider(&mut self, id: SessionId, account: AccountId) {
        self.broker.bind(id, account);
        self.broker.exchange.totals_of(account).opened -= 1;
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.is_insider = true;
        session.awaits_auth = false;
        // Who asks from another account is told in a header, whatever clients may have.
        session.takes_headers = true;
        // And what it says may have some.
        session.parse_limits = parse_limits(&self.broker.exchange.config.limits, true);
        // Nor is it told that it was understood.
        session.options.verbose = false;
        let ping_at = session.pings.next_at;
        self.broker.exchange.rearm(id, ping_at);
    }

    /// Whether it is the server's own.
    pub fn is_insider(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| session.is_insider)
    }

    /// Whether it has said who it is, and was let in.
    pub fn is_admitted(&self, id: SessionId) -> bool {
        let session = self.broker.exchange.sessions.get(id.index());
        session.is_some_and(|session| {
            session.has_connected
                && !session.awaits_auth
                && session.ending.is_none()
                && !session.kind.is_leaf()
        })
    }

    /// Closes a client's connection, or a link to another server. Whether there is one of this id.
    pub fn kick(&mut self, cid: u64) -> bool {
        let is_leaf = |id: &SessionId| self.cid(*id) == Some(cid);
        let leaf = || self.leaf_ids().into_iter().find(is_leaf);
        let Some(id) = self.find_client(cid).or_else(leaf) else {
            return false;
        };
        self.end(id, CloseReason::Kicked);
        true
    }

    /// Tells a client that this server goes away for it. Whether there is one of this id.
    pub fn send_away(&mut self, cid: u64) -> bool {
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

    /// Tells every client that understands it that this server is going away.
    pub fn announce_lame_duck(&mut self) {
        self.broker.exchange.info.lame_duck = true;
        let told: Vec<SessionId> = (self.broker.exchange.sessions.iter())
            .filter(|(_, s)| s.has_connected && s.options.protocol >= 1 && s.ending.is_none())
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in told {
            self.broker.client(id).send_info(false);
        }
    }
}
