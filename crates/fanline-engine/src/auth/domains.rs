//! Default JetStream domains (`default_js_domain`), for accounts without JetStream on this server.

use std::collections::BTreeMap;

use super::nkey::{KeyKind, PublicKey};
use super::{Access, AccessError, Account, AccountId, GLOBAL_ACCOUNT, Mapping, SYSTEM_ACCOUNT};
use crate::limits::AccountLimits;

/// Requests that clients send to `$JS.API`.
const REQUESTS: [&str; 7] = [
    "INFO",
    "STREAM.>",
    "CONSUMER.>",
    "DIRECT.>",
    "META.>",
    "SERVER.>",
    "ACCOUNT.>",
];
/// Subjects to which clients publish messages of key-value and object stores.
const STORES: [&str; 2] = ["$KV.>", "$OBJ.>"];

/// JetStream domains by account name. With an empty domain, leaf connections of the account do not separate
/// the JetStream of the two sides.
pub type DefaultDomains = BTreeMap<String, String>;

/// Checks the domains against the accounts.
pub(super) fn check(
    domains: &DefaultDomains,
    accounts: &[Account],
    is_operated: bool,
) -> Result<(), AccessError> {
    let reserved = [GLOBAL_ACCOUNT, SYSTEM_ACCOUNT];
    for (name, domain) in domains {
        let account = accounts.iter().find(|account| account.name == *name);
        let has_jetstream = account.is_some_and(|account| account.jetstream.is_some());
        if is_operated {
            // The account may be loaded later, so its name must be a public key.
            if PublicKey::parse(name).is_none_or(|key| key.kind() != KeyKind::Account) {
                return Err(AccessError::InvalidAccountNkey(name.clone()));
            }
        } else if account.is_none() && !reserved.contains(&&**name) {
            return Err(AccessError::UnknownDomainAccount(name.clone()));
        } else if has_jetstream && !domain.is_empty() {
            return Err(AccessError::DomainAndJetStream(name.clone()));
        }
        if domain.contains(|c: char| c.is_whitespace() || ".*>".contains(c)) {
            return Err(AccessError::InvalidDomain(domain.clone()));
        }
    }
    Ok(())
}

impl Access {
    /// Returns the JetStream limits of an account; `None` if it may not use JetStream. While `$G` is the only
    /// account, its JetStream is unlimited.
    pub(crate) fn jetstream_limits(&self, id: AccountId) -> Option<AccountLimits> {
        let is_alone = self.accounts.len() <= AccountId::SYSTEM.index() + 1;
        let configured = self.account(id)?.jetstream.clone();
        configured.or_else(|| (is_alone && id == AccountId::GLOBAL).then(AccountLimits::default))
    }

    /// Returns whether leaf connections separate the JetStream of the two sides in this account.
    pub(crate) fn separates_jetstream(&self, account: AccountId) -> bool {
        self.default_domain(account) != Some("")
    }

    /// Returns the mappings that direct an account's JetStream requests to its default domain. Returns no
    /// mapping if the account has JetStream on this server.
    pub(crate) fn domain_mappings(&self, id: AccountId, has_jetstream: bool) -> Vec<Mapping> {
        let domain = self.default_domain(id).filter(|domain| !domain.is_empty());
        let account = self.account(id);
        let lacks_jetstream = account.is_some_and(|account| account.jetstream.is_none());
        let has_all = has_jetstream && self.jetstream_limits(id).is_some();
        let Some(domain) = domain.filter(|_| lacks_jetstream && !has_all) else {
            return Vec::new();
        };
        let requests = REQUESTS.map(|what| (format!("$JS.API.{what}"), what));
        let stores = STORES.map(|what| (what.to_owned(), what));
        let all = requests.into_iter().chain(stores);
        let mapped = all.map(|(own, what)| Mapping::new(&own, &format!("$JS.{domain}.API.{what}")));
        // Domains were validated before, so no mapping is invalid.
        mapped.filter_map(Result::ok).collect()
    }

    fn default_domain(&self, account: AccountId) -> Option<&str> {
        let name = &self.account(account)?.name;
        self.default_domains.get(name).map(String::as_str)
    }
}
