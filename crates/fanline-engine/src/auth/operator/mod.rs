//! Operator mode: accounts are defined by tokens of trusted operators, users by tokens of their accounts.
//!
//! An operator's keys sign accounts; an account's keys sign users. A user's token contains its permissions,
//! so the server stores only accounts, and loads each account when it is needed.

mod account;
mod grant;
mod networks;
mod resolve_imports;
mod templates;
#[cfg(test)]
mod tests;
mod times;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde_json::Value;

use super::Access;
use super::account::{Account, AccountId};
use super::admit::{Credentials, Decision};
use super::callout::Caller;
use super::check::{Check, Proof};
use super::error::AccessError;
use super::imports;
use super::jwt::{
    self, AccountClaims, Claims, GenericClaims, JwtError, OperatorClaims, Unverified, UserClaims,
};
use super::nkey::{KeyKind, PublicKey};
use crate::auth::Peer;
pub use account::Authority;
pub(super) use account::permissions;
pub use grant::UserLimits;
pub(super) use grant::{JwtKey, JwtProof, limits, stay};

/// The reason why an account or operator is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each one is its text")]
pub enum OperatorError {
    #[error(transparent)]
    Jwt(#[from] JwtError),
    #[error("Not a valid public nkey for an operator: {0:?}")]
    OperatorKey(String),
    #[error("Not a valid public nkey for an account: {0:?}")]
    AccountKey(String),
    #[error("the token of {0:?} has expired")]
    Expired(String),
    #[error("account {0:?} is not signed by a trusted operator")]
    Untrusted(String),
    #[error("the token of {0:?} is not self-signed")]
    NotSelfSigned(String),
    #[error("the token belongs to account {0:?}, expected {1:?}")]
    Other(String, String),
    #[error("account {0:?}: {1}")]
    Content(String, String),
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// The trusted operators, whose tokens define accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operators {
    keys: Vec<PublicKey>,
    system_account: Option<String>,
    sentinel: Option<String>,
    /// If not empty, only users of these accounts and of the system account are admitted.
    pinned: BTreeSet<String>,
}

impl Operators {
    /// Adds the operator that a token describes to the trusted operators; `now` is in seconds since 1970.
    ///
    /// # Errors
    ///
    /// If the token is invalid, not self-signed, or expired.
    pub fn trust(&mut self, token: &str, now: i64) -> Result<(), OperatorError> {
        let claims: Claims<OperatorClaims> = jwt::verified(token)?;
        if !claims.holds_at(now) {
            return Err(OperatorError::Expired(claims.subject));
        }
        // An operator's token must be self-signed.
        if claims.issuer.encode() != claims.subject {
            return Err(OperatorError::Untrusted(claims.subject));
        }
        if !claims.body.strict_signing_key_usage {
            self.keys.push(claims.issuer);
        }
        for key in &claims.body.signing_keys {
            self.trust_key(key)?;
        }
        if !claims.body.system_account.is_empty() {
            self.system_account = Some(claims.body.system_account);
        }
        Ok(())
    }

    /// Trusts a key of an operator (`O…`).
    ///
    /// # Errors
    ///
    /// If the key is invalid.
    pub fn trust_key(&mut self, key: &str) -> Result<(), OperatorError> {
        let parsed = PublicKey::parse_as(KeyKind::Operator, key);
        self.keys
            .push(parsed.ok_or_else(|| OperatorError::OperatorKey(key.into()))?);
        Ok(())
    }

    /// Sets the user token for clients without a token. It must be a bearer token.
    ///
    /// # Errors
    ///
    /// If `token` is not a valid user token.
    pub fn set_sentinel(&mut self, token: &str) -> Result<(), OperatorError> {
        jwt::verified::<UserClaims>(token)?;
        self.sentinel = Some(token.into());
        Ok(())
    }

    /// Allows only users of these accounts (`A…`), and of the system account, to connect.
    ///
    /// # Errors
    ///
    /// If a key is invalid.
    pub fn pin_accounts(&mut self, keys: &[String]) -> Result<(), OperatorError> {
        for key in keys {
            if PublicKey::parse_as(KeyKind::Account, key).is_none() {
                return Err(OperatorError::AccountKey(key.clone()));
            }
            self.pinned.insert(key.clone());
        }
        Ok(())
    }

    /// Returns the key of the system account, if an operator's token contains it.
    pub fn system_account(&self) -> Option<&str> {
        self.system_account.as_deref()
    }

    /// Returns whether no operator is trusted, as on a server without operator mode.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the account of a token that a trusted operator signed; `now` is in seconds since 1970. The
    /// account's imports are resolved when it becomes a part of an [`Access`].
    ///
    /// # Errors
    ///
    /// If the token is invalid, expired, inconsistent, or not signed by a trusted operator.
    pub fn account(&self, token: &str, now: i64) -> Result<Account, OperatorError> {
        let claims: Claims<AccountClaims> = jwt::verified(token)?;
        if !self.keys.contains(&claims.issuer) {
            return Err(OperatorError::Untrusted(claims.subject));
        }
        if !claims.holds_at(now) {
            return Err(OperatorError::Expired(claims.subject));
        }
        Authority::new(claims, token)?.account()
    }
}

impl Operators {
    /// Returns the accounts that a trusted operator requests to delete. `token` is the payload of
    /// `$SYS.REQ.CLAIMS.DELETE`: generic claims with a list `accounts`. `now` is in seconds since 1970.
    ///
    /// # Errors
    ///
    /// If the token is invalid, expired, not self-signed by a trusted operator, or lists anything but
    /// accounts.
    pub fn deletions(&self, token: &str, now: i64) -> Result<Vec<String>, OperatorError> {
        let claims: Claims<GenericClaims> = jwt::verified(token)?;
        if claims.subject != claims.issuer.encode() {
            return Err(OperatorError::NotSelfSigned(claims.subject));
        }
        if !self.keys.contains(&claims.issuer) {
            return Err(OperatorError::Untrusted(claims.subject));
        }
        if !claims.holds_at(now) {
            return Err(OperatorError::Expired(claims.subject));
        }
        let Some(Value::Array(accounts)) = claims.body.0.get("accounts") else {
            let what = "`accounts` is not a list".into();
            return Err(OperatorError::Content(claims.subject, what));
        };
        let key = |account: &Value| -> Result<String, OperatorError> {
            let key = account.as_str().filter(|key| {
                // These keys become file names, so they must be valid.
                PublicKey::parse_as(KeyKind::Account, key).is_some()
            });
            let wrong = || AccessError::InvalidAccountNkey(account.to_string());
            Ok(key.ok_or_else(wrong)?.to_owned())
        };
        accounts.iter().map(key).collect()
    }
}

impl Access {
    /// Returns the trusted operators, in operator mode.
    pub fn operators(&self) -> Option<&Operators> {
        self.operators.as_ref()
    }

    /// Returns an [`Access`] with one more account, or with a replaced account, from the account's token.
    /// Resolves the imports of all accounts again: they gain the account's new exports and lose removed ones.
    /// `now` is in seconds since 1970. Visits all accounts, so the caller must not be on a shard's thread.
    ///
    /// # Errors
    ///
    /// If the token is refused.
    pub fn with_account(&self, token: &str, now: i64) -> Result<Self, OperatorError> {
        self.with_accounts(&[token], now)
    }

    /// Returns an [`Access`] with several accounts from their tokens.
    ///
    /// # Errors
    ///
    /// If one of the tokens is refused.
    pub fn with_accounts(&self, tokens: &[&str], now: i64) -> Result<Self, OperatorError> {
        let none = Operators::default();
        let operators = self.operators.as_ref().unwrap_or(&none);
        let mut config = self.config();
        for token in tokens {
            let account = operators.account(token, now)?;
            let name = account.name.clone();
            *config.account_mut(&name) = account;
        }
        resolve_imports::resolve_imports(&mut config.accounts, now);
        Ok(Access {
            as_of: now,
            ..self.successor(config)?
        })
    }

    /// Returns an [`Access`] without these accounts. Their users are refused until the accounts are loaded
    /// again. Resolves imports like [`with_account`](Access::with_account).
    ///
    /// # Errors
    ///
    /// If the remaining configuration is invalid.
    pub fn without_accounts(&self, names: &[String], now: i64) -> Result<Self, OperatorError> {
        let mut config = self.config();
        for account in &mut config.accounts {
            if names.contains(&account.name) {
                *account = Account::new(account.name.as_str());
            }
        }
        resolve_imports::resolve_imports(&mut config.accounts, now);
        Ok(Access {
            as_of: now,
            ..self.successor(config)?
        })
    }

    /// Returns whether an account's token is loaded, so that its users can be checked.
    pub fn knows_authority(&self, name: &str) -> bool {
        let account = self.account_id(name).and_then(|id| self.account(id));
        account.is_some_and(|account| account.authority.is_some())
    }

    /// Returns accounts that are not loaded yet although loaded accounts import from them.
    pub fn missing_exporters(&self) -> Vec<&str> {
        let authorities = self.accounts().iter().filter_map(|a| a.authority.as_ref());
        let imports = authorities.flat_map(|authority| authority.exporters());
        let mut missing: Vec<&str> = imports.filter(|name| !self.knows_authority(name)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Authenticates a client by its token.
    pub(super) fn admit_by_token(
        &self,
        operators: &Operators,
        shown: &Credentials<'_>,
        peer: &Peer,
    ) -> Decision {
        let jwt = match shown.jwt {
            "" => peer.cookies.jwt.as_str(),
            jwt => jwt,
        };
        // Other credentials have no effect here. If the token's account has an auth callout service, the
        // service checks them.
        let jwt = match &operators.sentinel {
            Some(sentinel) if jwt.is_empty() => sentinel.as_str(),
            _ => jwt,
        };
        let Ok(token) = Unverified::<UserClaims>::read(jwt) else {
            return Decision::Refused;
        };
        let claims = token.peek();
        let account = match claims.body.issuer_account.as_str() {
            "" => claims.issuer.encode(),
            account => account.to_owned(),
        };
        // A name that is not a key cannot be an account, so it is not looked up.
        if PublicKey::parse_as(KeyKind::Account, &account).is_none() {
            return Decision::Refused;
        }
        let is_system = self.account_id(&account) == Some(AccountId::SYSTEM);
        let pinned = &operators.pinned;
        if !pinned.is_empty() && !pinned.contains(&account) && !is_system {
            return Decision::Refused;
        }
        match self.authority(&account) {
            None => Decision::Later(Check::account(account)),
            Some((id, authority)) => {
                let has_service = authority.is_authenticated_by_service(&token.peek().subject);
                let proof = Box::new(JwtProof {
                    token,
                    account: id,
                    authority: Arc::clone(authority),
                    ip: peer.ip.clone(),
                    kind: peer.kind,
                    nonce: peer.nonce.clone(),
                    signature: shown.sig.into(),
                });
                Decision::Later(match has_service {
                    true => {
                        let shown = Credentials {
                            jwt,
                            ..shown.clone()
                        };
                        Caller::check(&shown, peer, Some(proof))
                    }
                    false => Check {
                        proof: Proof::Token(proof),
                        grant: None,
                    },
                })
            }
        }
    }

    pub(super) fn authority(&self, name: &str) -> Option<(AccountId, &Arc<Authority>)> {
        let id = self.account_id(name)?;
        let authority = self.account(id)?.authority.as_ref()?;
        Some((id, authority))
    }
}

/// Returns the ids of accounts by name.
fn by_name(accounts: &[Account]) -> HashMap<String, AccountId> {
    let ids = (0..).map(AccountId);
    let names = accounts.iter().map(|account| account.name.clone());
    names.zip(ids).collect()
}
