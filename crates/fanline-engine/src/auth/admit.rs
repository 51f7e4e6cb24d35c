//! Authentication of connecting clients.

use std::sync::Arc;
use std::time::Duration;

use super::account::AccountId;
use super::callout::{Caller, CalloutKey};
use super::check::{Check, Proof};
use super::nkey::{KeyKind, PublicKey};
use super::operator::{JwtKey, UserLimits};
use super::rights::Rights;
use super::user::{ConnectionKind, Identity, Password, User, same};
use super::websocket::ListenerOverride;
use super::{Access, UserPosition};
use crate::auth::Peer;
use crate::auth::certificate::{CertificateNames, parts};

/// The credentials of a connecting client. A missing credential is empty.
#[derive(Clone, Default)]
#[allow(missing_docs, reason = "named as in CONNECT")]
pub struct Credentials<'a> {
    pub user: &'a str,
    pub pass: &'a str,
    pub auth_token: &'a str,
    pub nkey: &'a str,
    pub sig: &'a str,
    pub jwt: &'a str,
    // These fields are not secret. Only an auth callout service uses them.
    pub name: &'a str,
    pub lang: &'a str,
    pub version: &'a str,
}

/// The result of an authentication.
#[derive(Debug)]
pub enum Decision {
    /// The client may connect.
    Admitted(Grant),
    /// The client may not connect.
    Refused,
    /// The decision needs a check that is too slow for the thread of a shard.
    Later(Check),
}

/// The rights of an authenticated client.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// The client's account.
    pub account: AccountId,
    /// The user's name; empty if no credentials were required.
    pub user: Arc<str>,
    /// Permissions; `None` allows everything.
    pub rights: Option<Arc<Rights>>,
    /// Limits of the user, in addition to those of its account.
    pub limits: UserLimits,
    /// Time until the user's credentials expire, counted from the decision.
    pub expires_in: Option<Duration>,
    /// Expiry of the account's token, in operator mode.
    pub account_expiry: Option<AccountExpiry>,
    /// Whether the client must connect through a trusted proxy.
    pub needs_proxy: bool,
    pub(super) key: Option<Key>,
}

/// The expiry of an account's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountExpiry {
    /// Expiry in seconds since 1970. A different value means a different token.
    pub unix_seconds: i64,
    /// Time until the expiry, counted from the time at which the server received the token or admitted the
    /// user.
    pub left: Duration,
}

impl Grant {
    /// Returns whether the grant belongs to a user. Otherwise the client connected without credentials, which
    /// the configuration allows.
    pub fn names_user(&self) -> bool {
        self.key.is_some()
    }

    /// In operator mode, returns the name in the user's token. The user itself is identified by its key.
    pub(crate) fn tag(&self) -> Option<&str> {
        match &self.key {
            Some(Key::Jwt(key)) => Some(key.name()).filter(|name| !name.is_empty()),
            _ => None,
        }
    }
}

/// The reason why an admitted client is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dismissal {
    /// The client's credentials are no longer sufficient.
    Refused,
    /// The account has revoked the client's credentials.
    Revoked,
    /// The client's account was removed.
    AccountGone,
}

/// The credentials that admitted a client. After a reload, the server checks whether the new configuration
/// accepts these credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Token(Password),
    /// The token of a listener for WebSocket or MQTT, which replaces the server's users.
    WebSocketToken(Password),
    WebSocketUser(String, Password),
    User(Identity, Vec<ConnectionKind>),
    Jwt(Arc<JwtKey>),
    Callout(Arc<CalloutKey>),
}

impl Access {
    /// Authenticates a client by its credentials and its connection.
    pub fn admit(&self, shown: &Credentials<'_>, peer: &Peer) -> Decision {
        if let Some(vouched) = &peer.vouched {
            return self.admit_vouched(vouched, peer.kind);
        }
        let decision = self.admit_by_itself(shown, peer);
        match &self.callout {
            Some(callout) if callout.decides(self, shown, &decision) => {
                Decision::Later(Caller::check(shown, peer, None))
            }
            _ => decision,
        }
    }

    fn admit_by_itself(&self, shown: &Credentials<'_>, peer: &Peer) -> Decision {
        if !self.requires_credentials_of(peer.kind) {
            return Decision::Admitted(Grant::default());
        }
        if let Some(operators) = &self.operators {
            return self.admit_by_token(operators, shown, peer);
        }
        let mut no_auth_user = self.no_auth_user;
        if let Some(listener) = self.listener(peer.kind) {
            if let Some((name, password)) = &listener.user {
                return admit_listener_user(name, password, shown);
            }
            if let Some(token) = &listener.token {
                let key = Some(Key::WebSocketToken(token.clone()));
                let grant = Grant {
                    key,
                    ..Grant::default()
                };
                return decide_by_password(token, shown.auth_token, Some(grant));
            }
            no_auth_user = listener.no_auth_user;
        } else if let Some(token) = &self.token {
            let grant = Grant {
                key: Some(Key::Token(token.clone())),
                ..Grant::default()
            };
            return decide_by_password(token, shown.auth_token, Some(grant));
        }
        if peer.kind == ConnectionKind::LeafnodeWebSocket
            && let Some(listener) = &self.websocket
        {
            no_auth_user = listener.no_auth_user.or(no_auth_user);
        }
        if !shown.nkey.is_empty() && !self.users.by_nkey.is_empty() {
            return self.admit_by_nkey(shown, peer);
        }
        if self.takes_certificates_of(peer) && !self.users.by_name.is_empty() {
            return self.admit_by_certificate(shown, peer);
        }
        // Without an operator, a JWT has no meaning. nats-server ignores it as well.
        let shows_nothing = [shown.user, shown.pass, shown.auth_token];
        if let Some(position) = no_auth_user
            && shows_nothing.iter().all(|text| text.is_empty())
        {
            return match self.user_at(position).takes(peer) {
                true => Decision::Admitted(self.grant(position)),
                false => Decision::Refused,
            };
        }
        self.admit_by_password(shown, peer, no_auth_user)
    }

    /// Returns whether the peer's certificate must identify its user. A Unix socket has no TLS, so its
    /// clients may use passwords.
    fn takes_certificates_of(&self, peer: &Peer) -> bool {
        let is_unix = peer.kind == ConnectionKind::Standard && peer.ip.is_empty();
        self.certificate_kinds.contains(&peer.kind) && !(is_unix && peer.tls.is_none())
    }

    /// Admits the user that the peer's certificate identifies. Refuses a peer without a certificate, because
    /// `allow_non_tls` must not bypass `verify_and_map`.
    fn admit_by_certificate(&self, shown: &Credentials<'_>, peer: &Peer) -> Decision {
        let names = peer.tls.as_ref().and_then(|tls| tls.names.as_ref());
        let found = names.and_then(|names| self.find_by_certificate(names));
        let found = found.filter(|position| self.user_at(*position).takes(peer));
        let password = found.and_then(|position| self.user_at(position).password());
        match (found, password) {
            // A user with a password must also send it; a user without one must send none.
            (Some(position), Some(password)) => {
                decide_by_password(password, shown.pass, Some(self.grant(position)))
            }
            _ => Decision::Refused,
        }
    }

    /// Returns whether a user can only be identified by a certificate: the user has no password, and may use
    /// a connection kind that requires a certificate.
    fn is_of_certificate(&self, user: &User) -> bool {
        let is_allowed =
            |kind| user.connection_kinds.is_empty() || user.connection_kinds.contains(kind);
        let has_no_password = user.password() == Some(&Password::Plain(String::new()));
        has_no_password && self.certificate_kinds.iter().any(is_allowed)
    }

    /// Returns whether any user has a plaintext password or no password. A user without a password does not
    /// count if a certificate identifies it.
    pub fn has_plain_passwords(&self) -> bool {
        let mut users = self.accounts.iter().flat_map(|account| &account.users);
        users.any(|user| {
            matches!(user.password(), Some(Password::Plain(_))) && !self.is_of_certificate(user)
        })
    }

    fn admit_by_nkey(&self, shown: &Credentials<'_>, peer: &Peer) -> Decision {
        let position = self.users.by_nkey.get(shown.nkey).copied();
        let position = position.filter(|position| self.user_at(*position).takes(peer));
        let key = PublicKey::parse_as(KeyKind::User, shown.nkey);
        match (position, key) {
            (Some(position), Some(key)) if !shown.sig.is_empty() && !peer.nonce.is_empty() => {
                Decision::Later(Check {
                    proof: Proof::Signature {
                        key,
                        nonce: peer.nonce.clone(),
                        signature: shown.sig.into(),
                    },
                    grant: Some(self.grant(position)),
                })
            }
            _ => Decision::Refused,
        }
    }

    fn admit_by_password(
        &self,
        shown: &Credentials<'_>,
        peer: &Peer,
        no_auth_user: Option<UserPosition>,
    ) -> Decision {
        let position = self.users.by_name.get(shown.user).copied();
        let position = position.filter(|position| {
            let user = self.user_at(*position);
            let needs_certificate = Some(*position) != no_auth_user && self.is_of_certificate(user);
            user.takes(peer) && !needs_certificate
        });
        let password = position.and_then(|position| self.user_at(position).password());
        match (position, password) {
            (Some(position), Some(password)) if !shown.user.is_empty() => {
                decide_by_password(password, shown.pass, Some(self.grant(position)))
            }
            // The check of an unknown user takes as long as that of a known user.
            _ => match self.decoy() {
                Some(password) => decide_by_password(password, shown.pass, None),
                None => Decision::Refused,
            },
        }
    }

    /// Returns a password to compare with for unknown users, so that the check takes as long as usual.
    /// Prefers a hashed one.
    fn decoy(&self) -> Option<&Password> {
        let all = || self.accounts.iter().flat_map(|a| &a.users);
        let hashed = all().filter_map(User::password);
        let mut hashed = hashed.filter(|p| matches!(p, Password::Bcrypt(_)));
        hashed.next().or_else(|| all().find_map(User::password))
    }

    /// Returns the first user whose name is one of the certificate's names.
    fn find_by_certificate(&self, identity: &CertificateNames) -> Option<UserPosition> {
        let known = &self.users.by_name;
        let names = identity.emails.iter().chain(&identity.dns_names);
        let mut names = names.chain(&identity.uris);
        if let Some(position) = names.find_map(|name| known.get(name)) {
            return Some(*position);
        }
        let subject = &identity.subject;
        known.get(subject).copied().or_else(|| {
            // The parts of a distinguished name match in any order.
            let wanted = parts(subject);
            let mut all = known.iter();
            all.find(|(name, _)| name.contains('=') && parts(name) == wanted)
                .map(|(_, position)| *position)
        })
    }

    fn grant(&self, position: UserPosition) -> Grant {
        let user = self.user_at(position);
        Grant {
            account: position.account,
            user: user.name().into(),
            rights: self.rights[position.account.index()][position.at].clone(),
            limits: UserLimits::default(),
            expires_in: None,
            account_expiry: None,
            needs_proxy: user.proxy_required,
            key: Some(Key::User(
                user.identity.clone(),
                user.connection_kinds.clone(),
            )),
        }
    }

    /// Returns the reason for disconnecting a client for which [`renew`](Access::renew) returned `None`.
    pub fn dismissal(&self, grant: &Grant) -> Dismissal {
        let Some(Key::Jwt(key)) = &grant.key else {
            return Dismissal::Refused;
        };
        let account = self.account(grant.account);
        match account.and_then(|account| account.authority.as_ref()) {
            None => Dismissal::AccountGone,
            Some(authority) if authority.has_revoked_key(key) => Dismissal::Revoked,
            Some(_) => Dismissal::Refused,
        }
    }

    /// Returns the current rights of a client that an earlier configuration admitted. Returns `None` if this
    /// configuration would not admit the client.
    pub fn renew(&self, grant: &Grant, kind: ConnectionKind) -> Option<Grant> {
        let listener = self.listener(kind);
        let stays = |holds: bool| holds.then(|| grant.clone());
        match &grant.key {
            None => stays(!self.requires_credentials_of(kind)),
            Some(Key::Token(token)) => {
                stays(listener.is_none() && self.token.as_ref() == Some(token))
            }
            Some(Key::WebSocketToken(token)) => {
                let wanted = listener.filter(|listener| listener.user.is_none());
                stays(wanted.is_some_and(|listener| listener.token.as_ref() == Some(token)))
            }
            Some(Key::WebSocketUser(name, password)) => {
                let wanted = listener.and_then(|listener| listener.user.as_ref());
                stays(wanted.is_some_and(|(known, by)| known == name && by == password))
            }
            Some(Key::Jwt(key)) => {
                let authority = self.account(grant.account)?.authority.as_ref()?;
                Some(Grant {
                    // This time is still counted from the moment when the client was admitted.
                    expires_in: grant.expires_in,
                    account_expiry: authority.expiry(self.as_of),
                    ..authority.renew(grant.account, key)?
                })
            }
            Some(Key::Callout(key)) => key.renew(self, grant),
            Some(Key::User(..)) if listener.is_some_and(ListenerOverride::replaces_users) => None,
            Some(Key::User(identity, kinds)) => {
                let position = match identity {
                    Identity::Name(name, _) => *self.users.by_name.get(name)?,
                    Identity::Nkey(public) => *self.users.by_nkey.get(public)?,
                };
                let now = self.user_at(position);
                let is_same = position.account == grant.account
                    && now.identity == *identity
                    && now.connection_kinds == *kinds;
                is_same.then(|| self.grant(position))
            }
        }
    }
}

impl User {
    /// Returns whether the user may use this kind of connection.
    fn takes(&self, peer: &Peer) -> bool {
        self.connection_kinds.is_empty() || self.connection_kinds.contains(&peer.kind)
    }

    fn password(&self) -> Option<&Password> {
        match &self.identity {
            Identity::Name(_, password) => Some(password),
            Identity::Nkey(_) => None,
        }
    }
}

/// Authenticates a client against the listener's only user. The check of an unknown name takes as long as
/// that of the correct name.
fn admit_listener_user(name: &str, password: &Password, shown: &Credentials<'_>) -> Decision {
    let grant = same(name, shown.user).then(|| Grant {
        user: name.into(),
        key: Some(Key::WebSocketUser(name.into(), password.clone())),
        ..Grant::default()
    });
    decide_by_password(password, shown.pass, grant)
}

/// Compares a password, or postpones the check if the password is hashed. Without a grant, the client is
/// refused, but the decision takes as long as with a grant.
fn decide_by_password(expected: &Password, given: &str, grant: Option<Grant>) -> Decision {
    match expected {
        Password::Plain(expected) => match (same(expected, given), grant) {
            (true, Some(grant)) => Decision::Admitted(grant),
            _ => Decision::Refused,
        },
        Password::Bcrypt(hash) => Decision::Later(Check {
            proof: Proof::Password {
                hash: hash.clone(),
                given: given.into(),
            },
            grant,
        }),
    }
}
