//! CONNECT: who a client is, and whether it may come in.

use super::{ClientSession, parse_limits};
use crate::auth::{Decision, Grant};
use crate::codec::nats::error::{ClientError, CloseReason};

impl ClientSession<'_> {
    /// CONNECT: takes what the client says of itself, and decides whether it may come in.
    pub(super) fn connect(&mut self, json: &[u8]) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        if session.options.merge(json).is_err() {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        session.options.complete(&session.peer.cookies);
        if !session.options.account.is_empty() {
            return self.any().refuse_credentials();
        }
        if !self.any().believes_proxy() {
            return self.any().refuse_proxy();
        }
        match self.any().decide() {
            Decision::Admitted(grant) => self.admit(grant),
            Decision::Refused => self.any().refuse_credentials(),
            Decision::Later(check) => {
                self.broker.exchange.sessions[self.id.index()].check = Some(check)
            }
        }
    }

    /// Lets a client in.
    pub(crate) fn admit(&mut self, grant: Grant) {
        let options = &self.broker.exchange.sessions[self.id.index()].options;
        if !matches!(options.protocol, 0 | 1) {
            let error = Some(ClientError::BadProtocolVersion);
            return self
                .broker
                .refuse(self.id, error, CloseReason::BadClientProtocolVersion);
        }
        if options.no_responders && !options.headers {
            let error = Some(ClientError::NoRespondersWithoutHeaders);
            return self
                .broker
                .refuse(self.id, error, CloseReason::NoRespondersRequiresHeaders);
        }
        let headers = options.headers && self.broker.exchange.config.limits.headers;
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        session.takes_headers = headers;
        session.parse_limits = parse_limits(&self.broker.exchange.config.limits, headers);
        if std::mem::replace(&mut session.has_connected, true) {
            // Who connects anew may be somebody else: what was subscribed before is gone.
            self.broker.drop_subscriptions(self.id);
        }
        let expires_in = grant.expires_in;
        self.any().settle_in(grant);
        if self.broker.exchange.sessions[self.id.index()]
            .ending
            .is_none()
        {
            self.any().expire_in(expires_in);
            self.any().acknowledge();
        }
    }

    /// Lets a client in that speaks before it has connected, if those who show nothing may come in.
    pub(crate) fn admit_without_connect(&mut self) -> bool {
        let kind = self.broker.exchange.sessions[self.id.index()].peer.kind;
        if !self.broker.exchange.access.has_no_auth_user(kind) {
            return false;
        }
        let Decision::Admitted(grant) = self.any().decide() else {
            return false;
        };
        self.any().settle_in(grant);
        self.broker.exchange.sessions[self.id.index()]
            .ending
            .is_none()
    }
}
