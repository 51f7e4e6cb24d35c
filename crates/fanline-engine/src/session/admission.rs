//! Admission: the credentials of a connection, the grant for them, and its expiry.

use std::sync::Arc;
use std::time::Duration;

use super::client::parse_limits;
use super::{AnySession, Kind};
use crate::auth::{Access, Credentials, Decision, Dismissal, Grant};
use crate::codec::nats::connect::ConnectOptions;
use crate::codec::nats::error::{ClientError, CloseReason};
use crate::exchange::restriction::Restriction;
use crate::exchange::router::RouteMemo;

impl AnySession<'_> {
    /// Returns false if a connection sent a proxy's signature that no trusted proxy made.
    pub(crate) fn comes_through_trusted_proxy(&mut self) -> bool {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let signature = &session.options.proxy_sig;
        if signature.is_empty() || self.broker.exchange.access.proxies().is_empty() {
            return true;
        }
        let proxy = (self.broker.exchange.access).proxy_that_signed(&session.peer.nonce, signature);
        session.peer.proxy = proxy;
        proxy.is_some()
    }

    /// Decides about admission by the client's credentials.
    pub(crate) fn decide(&self) -> Decision {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let shown = credentials(&session.options);
        self.access().admit(&shown, &session.peer)
    }

    /// Returns the users and accounts that apply to this kind of connection.
    fn access(&self) -> Arc<Access> {
        match self.session().kind {
            Kind::Leaf(_) => self.broker.leaf_access(),
            Kind::Client(_) | Kind::Mqtt(_) | Kind::Route(_) | Kind::Gateway(_) => {
                Arc::clone(&self.broker.exchange.access)
            }
        }
    }

    /// Decides about a client again, after the account that its check needed was fetched. Refuses a client
    /// that still needs an account.
    pub(crate) fn decide_again(&mut self) {
        match self.decide() {
            Decision::Admitted(grant) => self.admit(grant),
            Decision::Later(check) if check.account_needed().is_none() => {
                self.session_mut().check = Some(check);
            }
            Decision::Refused | Decision::Later(_) => self.refuse_credentials(),
        }
    }

    /// Handles the outcome of a check: the client's grant, or `None` if it is refused.
    pub(crate) fn decided(&mut self, outcome: Option<Grant>) {
        let kind = self.session().peer.kind;
        // A reload may have changed users and permissions since the check began.
        match outcome.and_then(|grant| self.access().renew(&grant, kind)) {
            Some(grant) => self.admit(grant),
            None => self.refuse_credentials(),
        }
    }

    /// Admits a client.
    fn admit(&mut self, grant: Grant) {
        match self.session().kind {
            Kind::Client(_) => self.broker.client(self.id).admit(grant),
            Kind::Mqtt(_) => self.broker.mqtt_of(self.id).admit(grant),
            Kind::Leaf(_) => self.broker.leaf(self.id).admit(grant),
            // The credentials of other servers need no check.
            Kind::Route(_) | Kind::Gateway(_) => {}
        }
    }

    /// Applies a grant to a session: its account, restrictions, and limits.
    pub(crate) fn apply_grant(&mut self, grant: Grant) {
        if self.refuse_without_proxy_if_required(
            &grant,
            self.broker.exchange.access.needs_proxy(&grant),
        ) {
            return;
        }
        self.broker.bind(self.id, grant.account);
        self.follow_account_expiry(&grant);
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.restriction = Restriction::new(&grant, &session.peer);
        session.grant = grant;
        // The cached route (`memo`) belongs to another user.
        session.memo = RouteMemo::default();
        session.parse_limits =
            parse_limits(&self.broker.exchange.config.limits, session.takes_headers);
        if std::mem::take(&mut session.awaits_auth) {
            let ping_at = session.pings.next_at;
            self.broker.exchange.rearm(self.id, ping_at);
        }
        self.broker.count_connection(self.id);
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        if let Some(own) = session.grant.limits.payload_bytes_max {
            let max = &mut session.parse_limits.payload_bytes_max;
            *max = usize::try_from(own).map_or(*max, |own| own.min(*max));
        }
        self.arm_expiry();
    }

    /// Sets the time at which the client's credentials expire. The client is disconnected at that time.
    pub(crate) fn expire_in(&mut self, expires_in: Option<Duration>) {
        let at = expires_in.and_then(|left| self.broker.exchange.outputs.now.checked_add(left));
        self.session_mut().expires_at = at;
        self.arm_expiry();
    }

    /// Updates the time at which the account's token expires, if a new grant changes it.
    pub(crate) fn follow_account_expiry(&mut self, grant: &Grant) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        let unix_seconds = |grant: &Grant| Some(grant.account_expiry?.unix_seconds);
        if unix_seconds(grant) == unix_seconds(&session.grant) {
            return;
        }
        let left = grant.account_expiry.map(|expiry| expiry.left);
        let at = left.and_then(|left| self.broker.exchange.outputs.now.checked_add(left));
        session.account_expires_at = at;
        self.arm_expiry();
    }

    /// Sets the session's timer to the time at which its credentials or its account expire.
    pub(crate) fn arm_expiry(&mut self) {
        let session = &self.broker.exchange.sessions[self.id.index()];
        let ends = [session.expires_at, session.account_expires_at];
        for at in ends.into_iter().flatten() {
            self.broker.exchange.arm_before(self.id, at);
        }
    }

    /// Refuses a client that does not come through a required proxy, or whose proxy is not trusted any more.
    /// Returns whether it refused the client.
    pub(crate) fn refuse_without_proxy_if_required(
        &mut self,
        grant: &Grant,
        needs_proxy: bool,
    ) -> bool {
        match self.session().peer.proxy {
            Some(proxy) if !self.broker.exchange.access.proxies().contains(&proxy) => {
                self.refuse_proxy()
            }
            None if needs_proxy => self.refuse_without_proxy(grant),
            _ => return false,
        }
        true
    }

    /// Refuses a client whose user must come through a proxy. The client receives the same error as with a
    /// wrong password; the log contains the reason.
    pub(crate) fn refuse_without_proxy(&mut self, grant: &Grant) {
        self.broker.exchange.outputs.notice(self.id, || {
            let user = &grant.user;
            format!("authentication error - User {user:?} must connect through a trusted proxy")
        });
        let error = Some(ClientError::Authorization);
        self.broker
            .refuse(self.id, error, CloseReason::ProxyRequired);
    }

    /// Refuses a client that comes through an untrusted proxy.
    pub(crate) fn refuse_proxy(&mut self) {
        self.broker.exchange.outputs.notice(self.id, || {
            "authentication error - the proxy must be one of the configured proxies".into()
        });
        let error = Some(ClientError::Authorization);
        self.broker
            .refuse(self.id, error, CloseReason::ProxyNotTrusted);
    }

    /// Refuses a client because of its credentials.
    pub(crate) fn refuse_credentials(&mut self) {
        if self.session().ending.is_some() {
            return;
        }
        let options = &self.broker.exchange.sessions[self.id.index()].options;
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
            .notice(self.id, || format!("authentication error - {shown}"));
        let error = Some(ClientError::Authorization);
        self.broker
            .refuse(self.id, error, CloseReason::AuthenticationFailure);
    }

    /// Disconnects a client whose user or account is not valid any more, with the error for this case.
    pub(crate) fn disconnect_invalid(&mut self) {
        let (error, reason) = match self
            .broker
            .exchange
            .access
            .dismissal(&self.broker.exchange.sessions[self.id.index()].grant)
        {
            Dismissal::Refused => return self.refuse_credentials(),
            Dismissal::Revoked => (
                ClientError::AuthenticationRevoked,
                CloseReason::CredentialsRevoked,
            ),
            Dismissal::AccountGone => (
                ClientError::AccountAuthenticationExpired,
                CloseReason::AuthenticationExpired,
            ),
        };
        self.broker.refuse(self.id, Some(error), reason);
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
