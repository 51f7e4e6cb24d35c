//! CONNECT: credentials and options of a client.

use super::{ClientSession, parse_limits};
use crate::auth::{Decision, Grant};
use crate::codec::nats::error::{ClientError, CloseReason};

impl ClientSession<'_> {
    /// Handles CONNECT: reads options and credentials, and decides about admission.
    pub(super) fn connect(&mut self, json: &[u8]) {
        let session = &mut self.broker.exchange.sessions[self.id.index()];
        if session.options.merge(json).is_err() {
            return self.broker.end(self.id, CloseReason::ProtocolViolation);
        }
        session.options.complete(&session.peer.cookies);
        if !session.options.account.is_empty() {
            return self.any().refuse_credentials();
        }
        if !self.any().comes_through_trusted_proxy() {
            return self.any().refuse_proxy();
        }
        match self.any().decide() {
            Decision::Admitted(grant) => self.admit(grant),
            Decision::Refused => self.any().refuse_credentials(),
            Decision::Later(check) => self.session_mut().check = Some(check),
        }
    }

    /// Admits a client.
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
            // A second CONNECT may name another user: earlier subscriptions are dropped.
            self.broker.drop_subscriptions(self.id);
        }
        let expires_in = grant.expires_in;
        self.any().apply_grant(grant);
        if self.session().ending.is_none() {
            self.any().expire_in(expires_in);
            self.any().acknowledge();
        }
    }

    /// Admits a client that sends another verb before CONNECT, if clients may connect without credentials.
    /// Returns whether it is admitted.
    pub(crate) fn admit_without_connect(&mut self) -> bool {
        let kind = self.session().peer.kind;
        if !self.broker.exchange.access.has_no_auth_user(kind) {
            return false;
        }
        let Decision::Admitted(grant) = self.any().decide() else {
            return false;
        };
        self.any().apply_grant(grant);
        self.session().ending.is_none()
    }
}
