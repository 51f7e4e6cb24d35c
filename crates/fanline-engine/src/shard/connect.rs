//! CONNECT: who a client is, and whether it may come in.

use std::sync::Arc;
use std::time::Duration;

use super::timers::auth_timeout;
use super::verbs::parse_limits;
use super::{SessionId, Shard};
use crate::auth::{Access, Check, Credentials, Decision, Dismissal, Grant};
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::restriction::Restriction;
use crate::exchange::router::RouteMemo;

impl Shard {
    pub(super) fn connect(&mut self, id: SessionId, json: &[u8]) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        if session.options.merge(json).is_err() {
            return self.end(id, CloseReason::ProtocolViolation);
        }
        session.options.complete(&session.peer.cookies);
        if !session.options.account.is_empty() {
            return self.refuse_credentials(id);
        }
        if !self.believes_proxy(id) {
            return self.refuse_proxy(id);
        }
        match self.decide(id) {
            Decision::Admitted(grant) => self.finish_connect(id, grant),
            Decision::Refused => self.refuse_credentials(id),
            Decision::Later(check) => self.broker.exchange.sessions[id.index()].check = Some(check),
        }
    }

    /// Whether a connection comes through a proxy that is trusted, or says nothing of one.
    pub(super) fn believes_proxy(&mut self, id: SessionId) -> bool {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let signature = &session.options.proxy_sig;
        if signature.is_empty() || self.broker.exchange.access.proxies().is_empty() {
            return true;
        }
        let proxy = (self.broker.exchange.access).proxy_that_signed(&session.peer.nonce, signature);
        session.peer.proxy = proxy;
        proxy.is_some()
    }

    pub(super) fn decide(&self, id: SessionId) -> Decision {
        let session = &self.broker.exchange.sessions[id.index()];
        let shown = credentials(&session.options);
        match session.kind.leaf {
            Some(_) => self.leaf_access().admit(&shown, &session.peer),
            None => self.broker.exchange.access.admit(&shown, &session.peer),
        }
    }

    /// Work that is to be done elsewhere to know whether a client may connect. Until it is
    /// [`decided`](Shard::decided), nothing more is to be read from that client.
    pub fn take_check(&mut self, id: SessionId) -> Option<Check> {
        self.broker
            .exchange
            .sessions
            .get_mut(id.index())?
            .check
            .take()
    }

    /// Decides anew about a client whose check has asked for an account. Who is still not known then is
    /// not let in.
    pub fn decide_again(&mut self, id: SessionId) {
        let Some(session) = self.broker.exchange.sessions.get(id.index()) else {
            return;
        };
        if session.ending.is_some() {
            return;
        }
        let is_leaf = session.kind.leaf.is_some();
        match self.decide(id) {
            Decision::Admitted(grant) if is_leaf => self.let_leaf_in(id, grant),
            Decision::Admitted(grant) => self.finish_connect(id, grant),
            Decision::Later(check) if check.account_needed().is_none() => {
                self.broker.exchange.sessions[id.index()].check = Some(check);
            }
            Decision::Refused | Decision::Later(_) => self.refuse_credentials(id),
        }
    }

    /// Tells what came of a check: what the client was granted, if anything.
    pub fn decided(&mut self, id: SessionId, outcome: Option<Grant>) {
        let Some(session) = self.broker.exchange.sessions.get(id.index()) else {
            return;
        };
        if session.ending.is_some() {
            return;
        }
        if session.kind.leaf.is_some() {
            return self.leaf_decided(id, outcome);
        }
        let kind = session.peer.kind;
        // Meanwhile the directory may have changed.
        match outcome.and_then(|grant| self.broker.exchange.access.renew(&grant, kind)) {
            Some(grant) => self.finish_connect(id, grant),
            None => self.refuse_credentials(id),
        }
    }

    /// Lets a client in that speaks before it has connected, if those who show nothing may come in.
    pub(super) fn admit_without_connect(&mut self, id: SessionId) -> bool {
        let kind = self.broker.exchange.sessions[id.index()].peer.kind;
        if !self.broker.exchange.access.has_no_auth_user(kind) {
            return false;
        }
        let Decision::Admitted(grant) = self.decide(id) else {
            return false;
        };
        self.settle_in(id, grant);
        self.broker.exchange.sessions[id.index()].ending.is_none()
    }

    fn finish_connect(&mut self, id: SessionId, grant: Grant) {
        if self.broker.exchange.sessions[id.index()]
            .kind
            .mqtt
            .is_some()
        {
            return self.admit_mqtt(id, grant);
        }
        let options = &self.broker.exchange.sessions[id.index()].options;
        if !matches!(options.protocol, 0 | 1) {
            let error = Some(ClientError::BadProtocolVersion);
            return self.refuse(id, error, CloseReason::BadClientProtocolVersion);
        }
        if options.no_responders && !options.headers {
            let error = Some(ClientError::NoRespondersWithoutHeaders);
            return self.refuse(id, error, CloseReason::NoRespondersRequiresHeaders);
        }
        let headers = options.headers && self.broker.exchange.config.limits.headers;
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.takes_headers = headers;
        session.parse_limits = parse_limits(&self.broker.exchange.config.limits, headers);
        if std::mem::replace(&mut session.has_connected, true) {
            // Who connects anew may be somebody else: what was subscribed before is gone.
            self.drop_subscriptions(id);
        }
        let expires_in = grant.expires_in;
        self.settle_in(id, grant);
        if self.broker.exchange.sessions[id.index()].ending.is_none() {
            self.expire_in(id, expires_in);
            self.acknowledge(id);
        }
    }

    /// Has a client sent away when what it was let in by does not hold any more.
    pub(super) fn expire_in(&mut self, id: SessionId, expires_in: Option<Duration>) {
        let at = expires_in.and_then(|left| self.broker.exchange.outputs.now.checked_add(left));
        self.broker.exchange.sessions[id.index()].expires_at = at;
        self.arm_expiry(id);
    }

    /// Takes over when the token of the account expires, if it is not what the session's grant says.
    pub(super) fn follow_account_expiry(&mut self, id: SessionId, grant: &Grant) {
        let session = &mut self.broker.exchange.sessions[id.index()];
        let unix_seconds = |grant: &Grant| Some(grant.account_expiry?.unix_seconds);
        if unix_seconds(grant) == unix_seconds(&session.grant) {
            return;
        }
        let left = grant.account_expiry.map(|expiry| expiry.left);
        let at = left.and_then(|left| self.broker.exchange.outputs.now.checked_add(left));
        session.account_expires_at = at;
        self.arm_expiry(id);
    }

    /// Gives a client what it was granted.
    pub(super) fn settle_in(&mut self, id: SessionId, grant: Grant) {
        if self.refuses_way(id, &grant, self.broker.exchange.access.needs_proxy(&grant)) {
            return;
        }
        self.bind(id, grant.account);
        self.follow_account_expiry(id, &grant);
        let session = &mut self.broker.exchange.sessions[id.index()];
        session.restriction = Restriction::new(&grant, &session.peer);
        session.grant = grant;
        // It says where the last message went, which was for somebody else to say.
        session.memo = RouteMemo::default();
        session.parse_limits =
            parse_limits(&self.broker.exchange.config.limits, session.takes_headers);
        if std::mem::take(&mut session.awaits_auth) {
            let ping_at = session.ping_at;
            self.broker.exchange.rearm(id, ping_at);
        }
        self.count_connection(id);
        let session = &mut self.broker.exchange.sessions[id.index()];
        if let Some(own) = session.grant.limits.payload_bytes_max {
            let max = &mut session.parse_limits.payload_bytes_max;
            *max = usize::try_from(own).map_or(*max, |own| own.min(*max));
        }
        self.arm_expiry(id);
    }

    /// Counts a session in its account. Refuses it when the account has all the connections that it may have.
    pub(super) fn count_connection(&mut self, id: SessionId) {
        if !self.broker.exchange.count_connection(id) {
            let error = Some(ClientError::AccountConnectionsExceeded);
            self.refuse(id, error, CloseReason::MaximumAccountConnectionsExceeded);
        }
    }

    /// Has the session looked at when what it was admitted by expires.
    pub(super) fn arm_expiry(&mut self, id: SessionId) {
        let session = &self.broker.exchange.sessions[id.index()];
        let ends = [session.expires_at, session.account_expires_at];
        for at in ends.into_iter().flatten() {
            self.broker.exchange.arm_before(id, at);
        }
    }

    /// Sends away who does not come through a proxy although he must, or through one that is not trusted any
    /// more; false for everybody else.
    pub(super) fn refuses_way(&mut self, id: SessionId, grant: &Grant, needs_proxy: bool) -> bool {
        match self.broker.exchange.sessions[id.index()].peer.proxy {
            Some(proxy) if !self.broker.exchange.access.proxies().contains(&proxy) => {
                self.refuse_proxy(id)
            }
            None if needs_proxy => self.refuse_without_proxy(id, grant),
            _ => return false,
        }
        true
    }

    /// Sends a user away that may come through a proxy only. The client is told no more than one with a
    /// wrong password; the log says what to do.
    pub(super) fn refuse_without_proxy(&mut self, id: SessionId, grant: &Grant) {
        self.broker.exchange.outputs.notice(id, || {
            let user = &grant.user;
            format!("authentication error - User {user:?} must come through a proxy that signs")
        });
        let error = Some(ClientError::Authorization);
        self.refuse(id, error, CloseReason::ProxyRequired);
    }

    /// Sends a client away that comes through a proxy that is not believed.
    pub(super) fn refuse_proxy(&mut self, id: SessionId) {
        self.broker.exchange.outputs.notice(id, || {
            "authentication error - the proxy is not one of those that are trusted".into()
        });
        let error = Some(ClientError::Authorization);
        self.refuse(id, error, CloseReason::ProxyNotTrusted);
    }

    /// Tells a client that what it showed is not enough, and ends the connection.
    pub(super) fn refuse_credentials(&mut self, id: SessionId) {
        if self.broker.exchange.sessions[id.index()].ending.is_some() {
            return;
        }
        let options = &self.broker.exchange.sessions[id.index()].options;
        let shown = match options {
            o if !o.nkey.is_empty() => format!("Nkey {:?}", o.nkey),
            o if !o.user.is_empty() => format!("User {:?}", o.user),
            o if !o.jwt.is_empty() => "JWT \"[REDACTED]\"".into(),
            o if !o.auth_token.is_empty() => "Token \"[REDACTED]\"".into(),
            _ => "User \"N/A\"".into(),
        };
        self.broker
            .exchange
            .outputs
            .notice(id, || format!("authentication error - {shown}"));
        let error = Some(ClientError::Authorization);
        self.refuse(id, error, CloseReason::AuthenticationFailure);
    }

    /// Ends the connection of a client that was let in and would not be any more.
    fn dismiss(&mut self, id: SessionId) {
        let (error, reason) = match self
            .broker
            .exchange
            .access
            .dismissal(&self.broker.exchange.sessions[id.index()].grant)
        {
            Dismissal::Refused => return self.refuse_credentials(id),
            Dismissal::Revoked => (
                ClientError::AuthenticationRevoked,
                CloseReason::CredentialsRevoked,
            ),
            Dismissal::AccountGone => (
                ClientError::AccountAuthenticationExpired,
                CloseReason::AuthenticationExpired,
            ),
        };
        self.refuse(id, Some(error), reason);
    }

    /// Puts another directory in the place of the one before. Who would not be let in by it is sent
    /// away, the others keep their connections with the rights that they have now; subscriptions that
    /// these do not allow are dropped.
    pub fn replace_access(&mut self, access: Arc<Access>, now: Duration) {
        self.broker.exchange.outputs.now = now;
        self.broker.exchange.access = Arc::clone(&access);
        self.broker.exchange.info.auth_required = access.is_required();
        self.broker.set_accounts(&access);
        let ids: Vec<SessionId> = (self.broker.exchange.sessions.iter())
            // The server's own client shows nothing, and needs nobody's leave.
            .filter(|(_, session)| session.ending.is_none() && session.is_client())
            .map(|(index, _)| SessionId::from_index(index))
            .collect();
        for id in ids {
            let session = &mut self.broker.exchange.sessions[id.index()];
            if !session.has_connected && !session.grant.names_user() {
                // Who has said nothing yet is asked when he does.
                let is_required = access.is_required_of(session.peer.kind);
                let awaited = std::mem::replace(&mut session.awaits_auth, is_required);
                if session.awaits_auth && !awaited {
                    let deadline =
                        now + auth_timeout(&self.broker.exchange.config.limits, &session.peer);
                    self.broker.exchange.arm_before(id, deadline);
                } else if !is_required {
                    self.count_connection(id);
                }
                continue;
            }
            let session = &self.broker.exchange.sessions[id.index()];
            match access.renew(&session.grant, session.peer.kind) {
                Some(grant) => {
                    self.settle_in(id, grant);
                    self.drop_denied_subscriptions(id);
                }
                None => self.dismiss(id),
            }
        }
        self.renew_leafs();
        self.broker.exchange.tell_leafs();
    }
}

fn credentials(options: &ConnectOptions) -> Credentials<'_> {
    Credentials {
        user: &options.user,
        pass: &options.pass,
        auth_token: &options.auth_token,
        nkey: &options.nkey,
        sig: &options.sig,
        jwt: &options.jwt,
        name: &options.name,
        lang: &options.lang,
        version: &options.version,
    }
}
