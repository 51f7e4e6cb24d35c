//! Rights that a user's token grants.

use std::sync::Arc;
use std::time::Duration;

use super::account::{Authority, limit, permissions};
use super::{networks, templates, times};
use crate::auth::account::AccountId;
use crate::auth::admit::{AccountExpiry, Grant, Key};
use crate::auth::callout;
use crate::auth::check::decode;
use crate::auth::jwt::{Claims, Unverified, UserClaims, UserTerms};
use crate::auth::nkey::{KeyKind, PublicKey};
use crate::auth::permissions::Permissions;
use crate::auth::rights::Rights;
use crate::auth::user::ConnectionKind;

/// Limits of one user; `None` means that only the limits of the account and the server apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// Subscriptions per connection. If exceeded, the client receives `maximum subscriptions exceeded` and
    /// stays connected.
    pub subscriptions_max: Option<u64>,
    /// Bytes per message. If exceeded, the client receives `Maximum Payload Violation` and is disconnected.
    pub payload_bytes_max: Option<u64>,
}

/// A user's token, with all inputs of its verification.
pub(in crate::auth) struct JwtProof {
    pub(in crate::auth) token: Unverified<UserClaims>,
    pub(in crate::auth) account: AccountId,
    pub(in crate::auth) authority: Arc<Authority>,
    pub(in crate::auth) ip: String,
    pub(in crate::auth) kind: ConnectionKind,
    pub(in crate::auth) nonce: String,
    pub(in crate::auth) signature: String,
}

/// The token that admitted a client. After a reload, the server checks whether this token is still valid.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::auth) struct JwtKey {
    claims: Claims<UserClaims>,
    /// The terms of the user, or the template of its scoped signing key.
    terms: UserTerms,
}

// Bearer tokens are secret.
impl std::fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JwtKey").finish_non_exhaustive()
    }
}

impl JwtKey {
    /// Returns the user's name in the token.
    pub(in crate::auth) fn name(&self) -> &str {
        &self.claims.name
    }
}

impl JwtProof {
    /// Returns the rights of the client at `now`, in seconds since 1970; `None` if it may not connect.
    pub(in crate::auth) fn perform(&self, now: i64) -> Option<Grant> {
        let claims = self.token.clone().verify().ok()?;
        if !self.authority.terms(&claims)?.bearer_token {
            let key = PublicKey::parse_as(KeyKind::User, &claims.subject)?;
            let signature = decode(&self.signature)?;
            if self.nonce.is_empty() || !key.verifies(self.nonce.as_bytes(), &signature) {
                return None;
            }
        }
        let way = (self.ip.as_str(), self.kind);
        self.authority.admit(self.account, claims, way, now)
    }
}

/// Returns how long a client with these terms may stay connected from this address, with this kind of
/// connection. `Some(None)` means without a limit, and `None` means that the client may not connect.
#[expect(clippy::option_option, reason = "refused, unlimited, or a duration")]
pub(in crate::auth) fn stay(
    terms: &UserTerms,
    ip: &str,
    kind: ConnectionKind,
    expires_at: Option<i64>,
    now: i64,
) -> Option<Option<Duration>> {
    let kinds = kinds(terms)?;
    let may_come = (kinds.is_empty() || kinds.contains(&kind)) && networks::allow(&terms.src, ip);
    if !may_come {
        return None;
    }
    let open_for = times::open_for(&terms.times, &terms.times_location, now)?;
    let left = expires_at.map(|end| seconds_until(end, now));
    Some(left.into_iter().chain(open_for).min())
}

fn seconds_until(end: i64, now: i64) -> Duration {
    let left = u64::try_from(end.saturating_sub(now));
    Duration::from_secs(left.unwrap_or(0))
}

/// Returns the limits of a user's terms.
pub(in crate::auth) fn limits(terms: &UserTerms) -> UserLimits {
    UserLimits {
        subscriptions_max: limit(terms.subs),
        payload_bytes_max: limit(terms.payload),
    }
}

impl Authority {
    /// Returns the terms of a user: its own, or the template of its scoped key. Returns `None` if the account
    /// does not accept the token, for example because the token is revoked, or because its issuer may not
    /// sign for this account.
    fn terms<'a>(&'a self, claims: &'a Claims<UserClaims>) -> Option<&'a UserTerms> {
        let account = &self.claims.subject;
        let named = &claims.body.issuer_account;
        let is_own_key = claims.issuer.encode() == *account;
        // If the token does not name the account, the account's own key must have signed it.
        if !(named == account || (named.is_empty() && is_own_key)) {
            return None;
        }
        if self.has_revoked(&claims.subject, claims.issued_at) {
            return None;
        }
        let terms = match self.signer(&claims.issuer)? {
            None => &claims.body.terms,
            // With a scoped key, all terms must come from its template.
            Some(_) if !claims.body.terms.is_empty() => return None,
            Some(template) => template,
        };
        let is_barred = terms.bearer_token && self.claims.body.limits.disallow_bearer;
        (!is_barred).then_some(terms)
    }

    /// Returns the rights of a user if its token is valid, for this address and kind of connection.
    pub(in crate::auth) fn admit(
        &self,
        account: AccountId,
        claims: Claims<UserClaims>,
        (ip, kind): (&str, ConnectionKind),
        now: i64,
    ) -> Option<Grant> {
        if !claims.holds_at(now) || !self.holds_at(now) {
            return None;
        }
        let terms = self.terms(&claims)?.clone();
        let expires_in = stay(&terms, ip, kind, claims.expires_at, now)?;
        let grant = self.grant(account, JwtKey { claims, terms })?;
        Some(Grant {
            expires_in,
            account_expiry: self.expiry(now),
            ..grant
        })
    }

    /// Returns the expiry of the account's token, if the token expires; `now` is in seconds since 1970.
    pub(in crate::auth) fn expiry(&self, now: i64) -> Option<AccountExpiry> {
        self.claims.expires_at.map(|end| AccountExpiry {
            unix_seconds: end,
            left: seconds_until(end, now),
        })
    }

    /// Returns the rights of an admitted user.
    fn grant(&self, account: AccountId, key: JwtKey) -> Option<Grant> {
        let is_scoped = matches!(self.signer(&key.claims.issuer), Some(Some(_)));
        let claimed = &key.terms.permissions;
        let permissions = match is_scoped {
            true => permissions(&templates::expand(claimed, &key.claims, self)?),
            false => permissions(claimed),
        };
        let mut permissions = permissions.ok()?;
        if permissions == Permissions::default()
            && let Some(default) = self.default_permissions()
        {
            permissions = default.clone();
        }
        if self.service().is_some() {
            callout::deny_requests(&mut permissions);
        }
        let is_all = permissions == Permissions::default();
        Some(Grant {
            account,
            user: key.claims.subject.as_str().into(),
            rights: (!is_all).then(|| Arc::new(Rights::new(&permissions))),
            limits: limits(&key.terms),
            expires_in: None,
            account_expiry: None,
            needs_proxy: key.terms.proxy_required,
            key: Some(Key::Jwt(Arc::new(key))),
        })
    }

    /// Returns whether the token of an admitted client was revoked.
    pub(in crate::auth) fn has_revoked_key(&self, key: &JwtKey) -> bool {
        self.has_revoked(&key.claims.subject, key.claims.issued_at)
    }

    /// Returns the current rights of an admitted client; `None` if the client would not be admitted any more.
    pub(in crate::auth) fn renew(&self, account: AccountId, key: &JwtKey) -> Option<Grant> {
        let terms = self.terms(&key.claims)?;
        // Address, time, and kind of connection are checked only when a client connects, so these terms must
        // be unchanged.
        let same_way = terms.src == key.terms.src
            && terms.times == key.terms.times
            && terms.times_location == key.terms.times_location
            && terms.bearer_token == key.terms.bearer_token
            && terms.proxy_required == key.terms.proxy_required
            && terms.allowed_connection_types == key.terms.allowed_connection_types;
        if !same_way {
            return None;
        }
        let key = JwtKey {
            claims: key.claims.clone(),
            terms: terms.clone(),
        };
        self.grant(account, key)
    }
}

/// Returns the allowed kinds of connections; empty allows all. Unknown kinds are ignored, unless all are
/// unknown.
fn kinds(terms: &UserTerms) -> Option<Vec<ConnectionKind>> {
    let names = &terms.allowed_connection_types;
    let known = names
        .iter()
        .filter_map(|name| ConnectionKind::parse(name).ok());
    let known: Vec<ConnectionKind> = known.collect();
    (names.is_empty() || !known.is_empty()).then_some(known)
}
