//! The decision whether a client may connect.

use std::sync::Arc;
use std::time::Duration;

use super::account::AccountId;
use super::callout::{Caller, CalloutKey};
use super::check::{Check, Proof};
use super::nkey::{KeyKind, PublicKey};
use super::operator::{JwtKey, UserLimits};
use super::rights::Rights;
use super::user::{ConnectionKind, Identity, Password, User, same};
use super::websocket::Door;
use super::{Access, Place};
use crate::auth::Peer;
use crate::auth::certificate::CertificateNames;

/// The credentials in a client's CONNECT; missing ones are empty.
#[derive(Clone, Default)]
#[allow(missing_docs, reason = "named as in CONNECT")]
pub struct Credentials<'a> {
    pub user: &'a str,
    pub pass: &'a str,
    pub auth_token: &'a str,
    pub nkey: &'a str,
    pub sig: &'a str,
    pub jwt: &'a str,
    // Not secret; only an auth callout service reads it.
    pub name: &'a str,
    pub lang: &'a str,
    pub version: &'a str,
}

/// The outcome for a client that connects.
#[derive(Debug)]
pub enum Decision {
    /// It may connect.
    Admitted(Grant),
    /// It may not connect.
    Refused,
    /// The answer needs work that a shard's thread must not do.
    Later(Check),
}

/// The rights and limits of an admitted client.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// Its account.
    pub account: AccountId,
    /// The name by which the server knows it; empty if it needed none.
    pub user: Arc<str>,
    /// Its permissions; everything if `None`.
    pub rights: Option<Arc<Rights>>,
    /// Its own limits, besides those of its account.
    pub limits: UserLimits,
    /// The remaining validity of the user's credentials, from the moment of the decision.
    pub expires_in: Option<Duration>,
    /// The expiry of the account's token, in operator mode.
    pub account_expiry: Option<AccountExpiry>,
    /// Whether the client has to connect through a proxy that signs.
    pub needs_proxy: bool,
    pub(super) key: Option<Key>,
}

/// The expiry of an account's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountExpiry {
    /// Seconds since 1970. A different value means another token.
    pub unix_seconds: i64,
    /// The time left when the server received the token or admitted the user.
    pub left: Duration,
}

impl Grant {
    /// Returns whether the client authenticated as a user.
    pub fn names_user(&self) -> bool {
        self.key.is_some()
    }

    /// Returns the user's name in its token, in operator mode, where the user is known by its key.
    pub(crate) fn tag(&self) -> Option<&str> {
        match &self.key {
            Some(Key::Jwt(key)) => Some(key.name()).filter(|name| !name.is_empty()),
            _ => None,
        }
    }
}

/// The reason why an admitted client has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dismissal {
    /// Its credentials are no longer sufficient.
    Refused,
    /// Its account revoked them.
    Revoked,
    /// Its account no longer exists.
    AccountGone,
}

/// The credentials that admitted a client, kept to check them again at a reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Token(Password),
    /// The token of the WebSocket listener, in place of the server's.
    WebSocketToken(Password),
    WebSocketUser(String, Password),
    User(Identity, Vec<ConnectionKind>),
    Jwt(Arc<JwtKey>),
    Callout(Arc<CalloutKey>),
}

impl Access {
    /// Decides by a client's credentials and its address.
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
        if !self.asks_for_credentials_of(peer.kind) {
            return Decision::Admitted(Grant::default());
        }
        if let Some(operators) = &self.operators {
            return self.admit_by_token(operators, shown, peer);
        }
        let mut no_auth_user = self.no_auth_user;
        if let Some(door) = self.door(peer.kind) {
            if let Some((name, password)) = &door.user {
                return admit_at_door(name, password, shown);
            }
            if let Some(token) = &door.token {
                let key = Some(Key::WebSocketToken(token.clone()));
                let grant = Grant {
                    key,
                    ..Grant::default()
                };
                return decide_by_password(token, shown.auth_token, Some(grant));
            }
            no_auth_user = door.no_auth_user;
        } else if let Some(token) = &self.token {
            let grant = Grant {
                key: Some(Key::Token(token.clone())),
                ..Grant::default()
            };
            return decide_by_password(token, shown.auth_token, Some(grant));
        }
        if peer.kind == ConnectionKind::LeafnodeWebSocket
            && let Some(door) = &self.websocket
        {
            no_auth_user = door.no_auth_user.or(no_auth_user);
        }
        if !shown.nkey.is_empty() && !self.users.by_nkey.is_empty() {
            return self.admit_by_nkey(shown, peer);
        }
        if self.takes_certificates_of(peer) && !self.users.by_name.is_empty() {
            return self.admit_by_certificate(shown, peer);
        }
        // A JWT alone means nothing without an operator; nats-server ignores it too.
        let shows_nothing = [shown.user, shown.pass, shown.auth_token];
        if let Some(place) = no_auth_user
            && shows_nothing.iter().all(|text| text.is_empty())
        {
            return match self.user_at(place).takes(peer) {
                true => Decision::Admitted(self.grant(place)),
                false => Decision::Refused,
            };
        }
        self.admit_by_password(shown, peer, no_auth_user)
    }

    /// Returns whether the peer's certificate names its user. A unix socket has no TLS, so passwords count
    /// there.
    fn takes_certificates_of(&self, peer: &Peer) -> bool {
        let is_unix = peer.kind == ConnectionKind::Standard && peer.ip.is_empty();
        self.certificate_kinds.contains(&peer.kind) && !(is_unix && peer.tls.is_none())
    }

    /// Admits the user that the certificate names. Refuses a peer without one: `allow_non_tls` must not
    /// bypass `verify_and_map`.
    fn admit_by_certificate(&self, shown: &Credentials<'_>, peer: &Peer) -> Decision {
        let names = peer.tls.as_ref().and_then(|tls| tls.names.as_ref());
        let found = names.and_then(|names| self.find_by_certificate(names));
        let found = found.filter(|place| self.user_at(*place).takes(peer));
        let password = found.and_then(|place| self.user_at(place).password());
        match (found, password) {
            // A user with a password has to send it as well.
            (Some(place), Some(password)) => {
                decide_by_password(password, shown.pass, Some(self.grant(place)))
            }
            _ => Decision::Refused,
        }
    }

    /// Returns whether a certificate alone identifies the user.
    fn is_of_certificate(&self, user: &User) -> bool {
        let is_allowed =
            |kind| user.connection_kinds.is_empty() || user.connection_kinds.contains(kind);
        let has_no_password = user.password() == Some(&Password::Plain(String::new()));
        has_no_password && self.certificate_kinds.iter().any(is_allowed)
    }

    /// Returns whether any user has a plaintext password or none, unless a certificate identifies it.
    pub fn has_plain_passwords(&self) -> bool {
        let mut users = self.accounts.iter().flat_map(|account| &account.users);
        users.any(|user| {
            matches!(user.password(), Some(Password::Plain(_))) && !self.is_of_certificate(user)
        })
    }

    fn admit_by_nkey(&self, shown: &Credentials<'_>, peer: &Peer) -> Decision {
        let place = self.users.by_nkey.get(shown.nkey).copied();
        let place = place.filter(|place| self.user_at(*place).takes(peer));
        let key = PublicKey::parse_as(KeyKind::User, shown.nkey);
        match (place, key) {
            (Some(place), Some(key)) if !shown.sig.is_empty() && !peer.nonce.is_empty() => {
                Decision::Later(Check {
                    proof: Proof::Signature {
                        key,
                        nonce: peer.nonce.clone(),
                        signature: shown.sig.into(),
                    },
                    grant: Some(self.grant(place)),
                })
            }
            _ => Decision::Refused,
        }
    }

    fn admit_by_password(
        &self,
        shown: &Credentials<'_>,
        peer: &Peer,
        no_auth_user: Option<Place>,
    ) -> Decision {
        let place = self.users.by_name.get(shown.user).copied();
        let place = place.filter(|place| {
            let user = self.user_at(*place);
            let needs_certificate = Some(*place) != no_auth_user && self.is_of_certificate(user);
            user.takes(peer) && !needs_certificate
        });
        let password = place.and_then(|place| self.user_at(place).password());
        match (place, password) {
            (Some(place), Some(password)) if !shown.user.is_empty() => {
                decide_by_password(password, shown.pass, Some(self.grant(place)))
            }
            // An unknown user takes as long as a known one.
            _ => match self.decoy() {
                Some(password) => decide_by_password(password, shown.pass, None),
                None => Decision::Refused,
            },
        }
    }

    /// Returns a password to compare with for an unknown user; a hashed one, if any is hashed.
    fn decoy(&self) -> Option<&Password> {
        let all = || self.accounts.iter().flat_map(|a| &a.users);
        let hashed = all().filter_map(User::password);
        let mut hashed = hashed.filter(|p| matches!(p, Password::Bcrypt(_)));
        hashed.next().or_else(|| all().find_map(User::password))
    }

    /// Returns the first known user whose name is in the certificate.
    fn find_by_certificate(&self, identity: &CertificateNames) -> Option<Place> {
        let known = &self.users.by_name;
        let names = identity.emails.iter().chain(&identity.dns_names);
        let mut names = names.chain(&identity.uris);
        if let Some(place) = names.find_map(|name| known.get(name)) {
            return Some(*place);
        }
        let subject = &identity.subject;
        known.get(subject).copied().or_else(|| {
            // The parts of a distinguished name match in any order.
            let wanted = parts(subject);
            let mut all = known.iter();
            all.find(|(name, _)| name.contains('=') && parts(name) == wanted)
                .map(|(_, place)| *place)
        })
    }

    fn grant(&self, place: Place) -> Grant {
        let user = self.user_at(place);
        Grant {
            account: place.account,
            user: user.name().into(),
            rights: self.rights[place.account.index()][place.at].clone(),
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

    /// Returns why a client has to be closed for which [`renew`](Access::renew) returns `None`.
    pub fn dismissal(&self, grant: &Grant) -> Dismissal {
        let Some(Key::Jwt(key)) = &grant.key else {
            return Dismissal::Refused;
        };
        let account = self.account(grant.account);
        match account.and_then(|account| account.authority.as_ref()) {
            None => Dismissal::AccountGone,
            Some(authority) if authority.has_taken_back(key) => Dismissal::Revoked,
            Some(_) => Dismissal::Refused,
        }
    }

    /// Returns what this directory grants to a client that another one admitted; `None` if it would refuse
    /// the client.
    pub fn renew(&self, grant: &Grant, kind: ConnectionKind) -> Option<Grant> {
        let door = self.door(kind);
        let stays = |holds: bool| holds.then(|| grant.clone());
        match &grant.key {
            None => stays(!self.asks_for_credentials_of(kind)),
            Some(Key::Token(token)) => stays(door.is_none() && self.token.as_ref() == Some(token)),
            Some(Key::WebSocketToken(token)) => {
                let wanted = door.filter(|door| door.user.is_none());
                stays(wanted.is_some_and(|door| door.token.as_ref() == Some(token)))
            }
            Some(Key::WebSocketUser(name, password)) => {
                let wanted = door.and_then(|door| door.user.as_ref());
                stays(wanted.is_some_and(|(known, by)| known == name && by == password))
            }
            Some(Key::Jwt(key)) => {
                let authority = self.account(grant.account)?.authority.as_ref()?;
                Some(Grant {
                    // The time runs from when the client was admitted.
                    expires_in: grant.expires_in,
                    account_expiry: authority.expiry(self.as_of),
                    ..authority.renew(grant.account, key)?
                })
            }
            Some(Key::Callout(key)) => key.renew(self, grant),
            Some(Key::User(..)) if door.is_some_and(Door::asks_for_its_own) => None,
            Some(Key::User(identity, kinds)) => {
                let place = match identity {
                    Identity::Name(name, _) => *self.users.by_name.get(name)?,
                    Identity::Nkey(public) => *self.users.by_nkey.get(public)?,
                };
                let now = self.user_at(place);
                let is_same = place.account == grant.account
                    && now.identity == *identity
                    && now.connection_kinds == *kinds;
                is_same.then(|| self.grant(place))
            }
        }
    }
}

impl User {
    /// Returns whether it may connect in this way.
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

/// Admits the one user of the listener. Any other name takes as long.
fn admit_at_door(name: &str, password: &Password, shown: &Credentials<'_>) -> Decision {
    let grant = same(name, shown.user).then(|| Grant {
        user: name.into(),
        key: Some(Key::WebSocketUser(name.into(), password.clone())),
        ..Grant::default()
    });
    decide_by_password(password, shown.pass, grant)
}

/// Compares the password, or defers that. Without a grant the client is refused, after the same time.
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

/// Returns the parts of a distinguished name in a fixed order.
fn parts(name: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut escaped = false;
    for letter in name.chars() {
        if !escaped && matches!(letter, ',' | '+') {
            parts.push(part.trim().to_owned());
            part.clear();
        } else {
            part.push(letter);
        }
        escaped = letter == '\\' && !escaped;
    }
    parts.push(part.trim().to_owned());
    parts.sort();
    parts
}
