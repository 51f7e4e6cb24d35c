//! Operator mode: whom a server believes what accounts there are, and accounts whom users are theirs.
//!
//! An operator's keys sign accounts, an account's keys sign users. A user's token says by itself what
//! its bearer may do; the server knows accounts only, and is told of them as it needs them.

mod account;
mod grant;
mod networks;
mod settle;
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

/// Why an account or an operator is not taken.
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
    #[error("{0:?} has not signed it for himself")]
    NotSelfSigned(String),
    #[error("the token is that of account {0:?} and not of {1:?}")]
    Other(String, String),
    #[error("account {0:?}: {1}")]
    Content(String, String),
    #[error(transparent)]
    Access(#[from] AccessError),
}

/// Whose word is taken for what accounts there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operators {
    keys: Vec<PublicKey>,
    system_account: Option<String>,
    sentinel: Option<String>,
    /// The only accounts whose users are let in, if some are named.
    pinned: BTreeSet<String>,
}

impl Operators {
    /// Trusts an operator, as his token says; `now` is in seconds since 1970.
    ///
    /// # Errors
    /// When it is none, is not signed by himself, or has expired.
    pub fn trust(&mut self, token: &str, now: i64) -> Result<(), OperatorError> {
        let claims: Claims<OperatorClaims> = jwt::verified(token)?;
        if !claims.holds_at(now) {
            return Err(OperatorError::Expired(claims.subject));
        }
        // Who is an operator is for nobody else to say.
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
    /// When it is none.
    pub fn trust_key(&mut self, key: &str) -> Result<(), OperatorError> {
        let parsed = PublicKey::parse_as(KeyKind::Operator, key);
        self.keys
            .push(parsed.ok_or_else(|| OperatorError::OperatorKey(key.into()))?);
        Ok(())
    }

    /// The token of those who show none. It has to be one that is not signed by its bearer.
    ///
    /// # Errors
    /// When it is no user's token.
    pub fn set_sentinel(&mut self, token: &str) -> Result<(), OperatorError> {
        jwt::verified::<UserClaims>(token)?;
        self.sentinel = Some(token.into());
        Ok(())
    }

    /// Lets in users of these accounts only, by their keys (`A…`), and of the system account.
    ///
    /// # Errors
    /// When one is none.
    pub fn pin_accounts(&mut self, keys: &[String]) -> Result<(), OperatorError> {
        for key in keys {
            if PublicKey::parse_as(KeyKind::Account, key).is_none() {
                return Err(OperatorError::AccountKey(key.clone()));
            }
            self.pinned.insert(key.clone());
        }
        Ok(())
    }

    /// The key of the account that an operator has made the server's own.
    pub fn system_account(&self) -> Option<&str> {
        self.system_account.as_deref()
    }

    /// Whether nobody is trusted, as in a server that is told of accounts by its configuration.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The account of a token, if somebody has signed it who is trusted; `now` is in seconds since
    /// 1970. What it imports it has once it is part of an [`Access`].
    ///
    /// # Errors
    /// When it is none, nobody trusted has signed it, it has expired, or makes no sense.
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
    /// The accounts that somebody trusted wants to be forgotten, as the payload of
    /// `$SYS.REQ.CLAIMS.DELETE` says: generic claims with a list `accounts`. `now` is in seconds since
    /// 1970.
    ///
    /// # Errors
    /// When it is none, nobody trusted has signed it for himself, it has expired, or names something else.
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
            let what = "there is no list of accounts".into();
            return Err(OperatorError::Content(claims.subject, what));
        };
        let key = |account: &Value| -> Result<String, OperatorError> {
            let key = account.as_str().filter(|key| {
                // Names of files are made of them.
                PublicKey::parse_as(KeyKind::Account, key).is_some()
            });
            let wrong = || AccessError::InvalidAccountNkey(account.to_string());
            Ok(key.ok_or_else(wrong)?.to_owned())
        };
        accounts.iter().map(key).collect()
    }
}

impl Access {
    /// Whom this server believes what accounts there are, if it is in operator mode.
    pub fn operators(&self) -> Option<&Operators> {
        self.operators.as_ref()
    }

    /// The same with one more account, or another in the place of one that has its name: what a token
    /// says of it. Imports are settled anew for all of them, so that what waited for this account's
    /// exports is there now, and what it does not export any more is not. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// When the token is not taken. It takes a look at all accounts, so it is not for a shard's thread.
    pub fn with_account(&self, token: &str, now: i64) -> Result<Self, OperatorError> {
        self.with_accounts(&[token], now)
    }

    /// The same with several at once.
    ///
    /// # Errors
    /// When one of the tokens is not taken.
    pub fn with_accounts(&self, tokens: &[&str], now: i64) -> Result<Self, OperatorError> {
        let none = Operators::default();
        let operators = self.operators.as_ref().unwrap_or(&none);
        let mut config = self.config();
        for token in tokens {
            let account = operators.account(token, now)?;
            let name = account.name.clone();
            *config.account_mut(&name) = account;
        }
        settle::settle(&mut config.accounts, now);
        Ok(Access {
            as_of: now,
            ..self.successor(config)?
        })
    }

    /// The same without what is known of these accounts: users of theirs are not let in any more, until
    /// somebody tells of them anew. Imports are settled as with [`with_account`](Access::with_account).
    ///
    /// # Errors
    /// When what is left makes no sense.
    pub fn without_accounts(&self, names: &[String], now: i64) -> Result<Self, OperatorError> {
        let mut config = self.config();
        for account in &mut config.accounts {
            if names.contains(&account.name) {
                *account = Account::new(account.name.as_str());
            }
        }
        settle::settle(&mut config.accounts, now);
        Ok(Access {
            as_of: now,
            ..self.successor(config)?
        })
    }

    /// Whether an account of this name is known well enough for users to be of it.
    pub fn knows_authority(&self, name: &str) -> bool {
        let account = self.account_id(name).and_then(|id| self.account(id));
        account.is_some_and(|account| account.authority.is_some())
    }

    /// Accounts that others import from and of which nobody has told yet.
    pub fn missing_exporters(&self) -> Vec<&str> {
        let authorities = self.accounts().iter().filter_map(|a| a.authority.as_ref());
        let imports = authorities.flat_map(|authority| authority.exporters());
        let mut missing: Vec<&str> = imports.filter(|name| !self.knows_authority(name)).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Decides by a user's token.
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
        // Whatever else is shown: it is for the service that the sentinel's account may ask.
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
        // Whatever somebody else makes up is not asked for.
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
                let is_asked = authority.asks_about(&token.peek().subject);
                let proof = Box::new(JwtProof {
                    token,
                    account: id,
                    authority: Arc::clone(authority),
                    ip: peer.ip.clone(),
                    kind: peer.kind,
                    nonce: peer.nonce.clone(),
                    signature: shown.sig.into(),
                });
                Decision::Later(match is_asked {
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

/// Accounts by their names.
fn by_name(accounts: &[Account]) -> HashMap<String, AccountId> {
    let ids = (0..).map(AccountId);
    let names = accounts.iter().map(|account| account.name.clone());
    names.zip(ids).collect()
}
