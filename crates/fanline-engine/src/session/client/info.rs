//! INFO, by which a server introduces itself.

use super::super::Broker;
use super::ClientSession;
use crate::auth::{AccountId, ConnectionKind, Peer};
use crate::codec::nats::info::Audience;

impl ClientSession<'_> {
    /// Sends INFO. `connected` selects the form after CONNECT.
    pub(crate) fn send_info(&mut self, connected: bool) {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let account = self.broker.exchange.access.account(session.account);
        let audience = Audience {
            needs_auth: self.broker.needs_auth(&session.peer, connected),
            // A client whose account is not known yet receives the limit of the server.
            payload_bytes_max: (!session.awaits_auth)
                .then(|| {
                    self.broker
                        .exchange
                        .quotas
                        .payload_bytes_max(session.account)
                })
                .flatten(),
            account: account
                .filter(|_| connected)
                .map(|account| account.name.as_str()),
            is_system: connected && session.account == AccountId::SYSTEM,
            ..audience(session.cid, &session.peer)
        };
        let line = self.broker.exchange.info.line(&audience);
        self.broker.exchange.send(self.id, &line);
    }
}

impl Broker {
    /// Returns the first INFO, for connections that receive it before TLS begins.
    pub(crate) fn greeting(&self, cid: u64, peer: &Peer) -> Vec<u8> {
        self.exchange.info.line(&Audience {
            needs_auth: self.needs_auth(peer, false),
            ..audience(cid, peer)
        })
    }

    /// Returns whether INFO announces that credentials are required.
    fn needs_auth(&self, peer: &Peer, connected: bool) -> bool {
        let may_hide = !connected && self.exchange.access.has_no_auth_user(peer.kind);
        self.exchange.access.is_required_of(peer.kind) && !may_hide
    }
}

/// Returns the recipient of an INFO before CONNECT, when only the peer is known.
fn audience(cid: u64, peer: &Peer) -> Audience<'_> {
    Audience {
        client_id: cid,
        client_ip: &peer.ip,
        nonce: &peer.nonce,
        is_websocket: peer.kind == ConnectionKind::WebSocket,
        ..Audience::default()
    }
}
