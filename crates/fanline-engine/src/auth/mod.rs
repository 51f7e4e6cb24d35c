//! Authentication and authorization: users, accounts, and permissions.
//!
//! An [`AccessConfig`] is the configuration of a server; [`Access::new`] checks it and builds the directory
//! that all shards share. A directory is immutable; a reload replaces it as a whole.

mod account;
mod admit;
pub mod callout;
pub mod certificate;
mod check;
mod domains;
mod error;
mod imports;
pub mod jwt;
mod method;
pub mod nkey;
mod operator;
mod peer;
mod permissions;
mod proxies;
mod rights;
pub mod sealed;
mod system;
#[cfg(test)]
mod tests;
mod user;
mod vouched;
mod websocket;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nkey::{KeyKind, PublicKey};

pub use account::{
    ANYBODY, Account, AccountId, ClientLimits, Destination, Export, ExportKind, GLOBAL_ACCOUNT,
    Import, ImportKind, Latency, Mapping, ResponseKind, SYSTEM_ACCOUNT, Sampling, TraceTo,
};
pub use admit::{AccountExpiry, Credentials, Decision, Dismissal, Grant};
pub use callout::Callout;
pub use check::{Check, SALT_BYTES, hash_password, is_hash_of};
pub use domains::DefaultDomains;
pub use error::AccessError;
pub(crate) use imports::{covers, in_order_of_wildcards, is_exported, overlap};
pub use method::Auth;
pub use operator::{Authority, OperatorError, Operators, UserLimits};
pub use peer::{Peer, TlsPeer};
pub use permissions::{AllowResponses, Allowed, Pattern, Permissions};
pub(crate) use rights::Lists;
pub use rights::Rights;
pub(crate) use rights::{Permitted, RightsId};
pub(crate) use system::{imports as system_imports, own_import};
pub use user::{ConnectionKind, Identity, Password, User};
pub use vouched::Vouched;
use websocket::Door;
pub use websocket::ListenerAccess;

/// The configuration of accounts and users. The default admits every client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    /// One token for all clients, in place of users.
    pub token: Option<Password>,
    /// Accounts with their users; `$G` and the system account are added if missing.
    pub accounts: Vec<Account>,
    /// The user of clients that send no credentials.
    pub no_auth_user: Option<String>,
    /// The name of the system account; `$SYS` when `None`.
    pub system_account: Option<String>,
    /// Sends a nonce even if no user has to sign it.
    pub always_nonce: bool,
    /// In operator mode, the operators that sign accounts.
    pub operators: Option<Operators>,
    /// The service that decides which clients may connect.
    pub callout: Option<Callout>,
    /// Proxies that the server trusts to sign for a client.
    pub proxies: Vec<PublicKey>,
    /// Whether every client has to connect through such a proxy.
    pub proxy_required: bool,
    /// The JetStream domain that clients of an account use by default, by the account's name.
    pub default_domains: DefaultDomains,
    /// Credentials of WebSocket clients, where they differ.
    pub websocket: ListenerAccess,
    /// Credentials of MQTT clients, where they differ.
    pub mqtt: ListenerAccess,
    /// Connection kinds that take the user from the client certificate (`verify_and_map`). A user without a
    /// password that may use one of these kinds is identified by a certificate: no other kind admits it by
    /// name.
    pub certificate_kinds: Vec<ConnectionKind>,
}

impl AccessConfig {
    /// Returns the account of this name, and creates it if missing.
    pub fn account_mut(&mut self, name: &str) -> &mut Account {
        let at = self.accounts.iter().position(|a| a.name == name);
        let at = at.unwrap_or_else(|| {
            self.accounts.push(Account::new(name));
            self.accounts.len() - 1
        });
        &mut self.accounts[at]
    }
}

/// The directory of accounts and users, shared by all shards.
#[derive(Debug)]
pub struct Access {
    token: Option<Password>,
    /// Indexed by [`AccountId`].
    accounts: Vec<Account>,
    by_name: HashMap<String, AccountId>,
    users: Users,
    /// The rights of each user, by account and index; `None` may do everything.
    rights: Vec<Vec<Option<Arc<Rights>>>>,
    no_auth_user: Option<Place>,
    always_nonce: bool,
    operators: Option<Operators>,
    callout: Option<Callout>,
    proxies: Vec<PublicKey>,
    proxy_required: bool,
    default_domains: DefaultDomains,
    /// Credentials of WebSocket clients in place of `token` and `no_auth_user`.
    websocket: Option<Door>,
    /// Credentials of MQTT clients, likewise.
    mqtt: Option<Door>,
    certificate_kinds: Vec<ConnectionKind>,
    /// When it last received accounts' tokens, in seconds since 1970.
    as_of: i64,
}

/// The location of a user: its account, and its index among the users of that account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    account: AccountId,
    at: usize,
}

#[derive(Debug, Default)]
struct Users {
    by_name: HashMap<String, Place>,
    by_nkey: HashMap<String, Place>,
}

impl Eq for Access {}

/// Compares the configurations.
impl PartialEq for Access {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token
            && self.accounts == other.accounts
            && self.no_auth_user == other.no_auth_user
            && self.always_nonce == other.always_nonce
            && self.operators == other.operators
            && self.callout == other.callout
            && self.proxies == other.proxies
            && self.proxy_required == other.proxy_required
            && self.default_domains == other.default_domains
            && self.websocket == other.websocket
            && self.mqtt == other.mqtt
            && self.certificate_kinds == other.certificate_kinds
    }
}

impl Default for Access {
    fn default() -> Self {
        Access::open()
    }
}

impl Access {
    /// Returns a directory that admits every client with all rights.
    #[expect(clippy::missing_panics_doc, reason = "nothing can be wrong with it")]
    pub fn open() -> Self {
        Access::new(AccessConfig::default()).expect("nothing can be wrong with nothing")
    }

    /// Returns a directory that admits clients with this token.
    #[expect(clippy::missing_panics_doc, reason = "nothing can be wrong with it")]
    pub fn token(token: impl Into<Password>) -> Self {
        let config = AccessConfig {
            token: Some(token.into()),
            ..AccessConfig::default()
        };
        Access::new(config).expect("there is nobody beside it")
    }

    /// Returns a directory with one user.
    #[expect(clippy::missing_panics_doc, reason = "nothing can be wrong with it")]
    pub fn user(name: impl Into<String>, password: impl Into<Password>) -> Self {
        let mut config = AccessConfig::default();
        let user = User::new(name, password);
        config.account_mut(GLOBAL_ACCOUNT).users.push(user);
        Access::new(config).expect("one user is nobody's duplicate")
    }

    /// Checks a configuration and builds its directory.
    ///
    /// # Errors
    /// Names what is wrong.
    pub fn new(config: AccessConfig) -> Result<Self, AccessError> {
        Access::after(&[], config)
    }

    /// Builds a directory that replaces this one. Accounts keep their ids; those that no longer exist keep
    /// theirs without users.
    ///
    /// # Errors
    /// Names what is wrong.
    pub fn successor(&self, config: AccessConfig) -> Result<Self, AccessError> {
        Access::after(&self.accounts, config)
    }

    /// Returns the same directory with the account ids of `before`.
    ///
    /// # Errors
    /// Names what is wrong.
    pub fn in_place_of(&self, before: &Access) -> Result<Self, AccessError> {
        Ok(Access {
            as_of: self.as_of,
            ..before.successor(self.config())?
        })
    }

    /// Returns the configuration that it was built from.
    fn config(&self) -> AccessConfig {
        let name_of = |place: Place| self.user_at(place).name().to_owned();
        AccessConfig {
            token: self.token.clone(),
            accounts: self.accounts.clone(),
            no_auth_user: self.no_auth_user.map(name_of),
            system_account: Some(self.accounts[AccountId::SYSTEM.index()].name.clone()),
            always_nonce: self.always_nonce,
            operators: self.operators.clone(),
            callout: self.callout.clone(),
            proxies: self.proxies.clone(),
            proxy_required: self.proxy_required,
            default_domains: self.default_domains.clone(),
            websocket: self.websocket_access(),
            mqtt: self.mqtt_access(),
            certificate_kinds: self.certificate_kinds.clone(),
        }
    }

    fn after(known: &[Account], config: AccessConfig) -> Result<Self, AccessError> {
        let accounts = in_order(known, &config)?;
        let by_name: HashMap<String, AccountId> = (0..)
            .map(AccountId)
            .zip(&accounts)
            .map(|(id, account)| (account.name.clone(), id))
            .collect();
        let users = Users::new(&accounts)?;
        if config.token.is_some() && !(users.by_name.is_empty() && users.by_nkey.is_empty()) {
            return Err(AccessError::TokenAndUsers);
        }
        if config.operators.is_some()
            && let Some(name) = users.by_name.keys().chain(users.by_nkey.keys()).next()
        {
            return Err(AccessError::OperatorAndUsers(name.clone()));
        }
        let no_auth_user = config
            .no_auth_user
            .map(|name| users.find(name))
            .transpose()?;
        let websocket = Door::new(config.websocket, &users)?;
        let mqtt = Door::new(config.mqtt, &users)?;
        imports::check(&accounts, &by_name)?;
        domains::check(
            &config.default_domains,
            &accounts,
            config.operators.is_some(),
        )?;
        let callout = config.callout.as_ref();
        if let Some(callout) = callout
            && !by_name.contains_key(&callout.account)
        {
            return Err(AccessError::UnknownCalloutAccount(callout.account.clone()));
        }
        let rights = accounts.iter().map(|a| rights_of(a, callout)).collect();
        Ok(Access {
            token: config.token,
            accounts,
            by_name,
            users,
            rights,
            no_auth_user,
            always_nonce: config.always_nonce,
            operators: config.operators,
            callout: config.callout,
            proxies: config.proxies,
            proxy_required: config.proxy_required,
            default_domains: config.default_domains,
            websocket,
            mqtt,
            certificate_kinds: config.certificate_kinds,
            as_of: 0,
        })
    }

    /// Returns all accounts, indexed by [`AccountId`].
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Returns the imports of an account, with those that every account has from the system account.
    pub fn imports_of(&self, id: AccountId) -> Vec<Import> {
        let Some(account) = self.account(id) else {
            return Vec::new();
        };
        let system = &self.accounts[AccountId::SYSTEM.index()];
        let mut imports = account.imports.clone();
        imports.extend(system_imports(account, &system.name));
        imports
    }

    /// Returns one account.
    pub fn account(&self, id: AccountId) -> Option<&Account> {
        self.accounts.get(id.index())
    }

    /// Returns the id of the account of this name.
    pub fn account_id(&self, name: &str) -> Option<AccountId> {
        self.by_name.get(name).copied()
    }

    /// Returns the user of clients that send no credentials.
    pub fn no_auth_user(&self) -> Option<&User> {
        self.no_auth_user.map(|place| self.user_at(place))
    }

    fn user_at(&self, place: Place) -> &User {
        &self.accounts[place.account.index()].users[place.at]
    }

    /// Returns whether a client over TCP has to authenticate: with credentials, or by a proxy's signature.
    pub fn is_required(&self) -> bool {
        self.proxy_required || self.asks_for_credentials()
    }

    fn asks_for_credentials(&self) -> bool {
        self.token.is_some()
            || self.operators.is_some()
            || self.callout.is_some()
            || !self.users.by_name.is_empty()
            || !self.users.by_nkey.is_empty()
    }

    /// Returns whether INFO has a nonce for clients to sign.
    pub fn needs_nonce(&self) -> bool {
        self.always_nonce
            || self.operators.is_some()
            || !self.users.by_nkey.is_empty()
            || !self.proxies.is_empty()
    }
}

/// Returns `$G` first, then the system account, then those known before, then the others in the order of the
/// configuration.
fn in_order(known: &[Account], config: &AccessConfig) -> Result<Vec<Account>, AccessError> {
    let system = config.system_account.as_deref().unwrap_or(SYSTEM_ACCOUNT);
    let given = |name: &str| {
        let mut found = config.accounts.iter().find(|a| a.name == name);
        if found.is_none() && config.operators.is_some() {
            // An account that the new configuration does not name stays as it was.
            let known = known.iter().find(|a| a.name == name);
            found = known.filter(|account| account.authority.is_some());
        }
        found.cloned().unwrap_or_else(|| Account::new(name))
    };
    let mut accounts = vec![given(GLOBAL_ACCOUNT), given(system)];
    for name in known
        .iter()
        .chain(&config.accounts)
        .map(|account| &account.name)
    {
        if !accounts.iter().any(|account| account.name == *name) {
            accounts.push(given(name));
        }
    }
    let mut names = HashSet::new();
    for account in config.accounts.iter() {
        if !names.insert(account.name.as_str()) {
            return Err(AccessError::DuplicateAccount(account.name.clone()));
        }
    }
    Ok(accounts)
}

/// Returns the rights of each user of an account.
fn rights_of(account: &Account, callout: Option<&Callout>) -> Vec<Option<Arc<Rights>>> {
    let compile = |permissions: &Permissions| {
        let restricted = callout.map(|callout| callout.restrict(&account.name, permissions));
        let permissions = restricted.as_ref().unwrap_or(permissions);
        let is_all = *permissions == Permissions::default();
        (!is_all).then(|| Arc::new(Rights::new(permissions)))
    };
    let default = account.default_permissions.clone().unwrap_or_default();
    let default = compile(&default);
    let of_user = |user: &User| match &user.permissions {
        Some(own) => compile(own),
        None => default.clone(),
    };
    account.users.iter().map(of_user).collect()
}

impl Users {
    /// Returns the location of `no_auth_user`, by its name or public key.
    fn find(&self, name: String) -> Result<Place, AccessError> {
        let known = self.by_name.get(&name).or_else(|| self.by_nkey.get(&name));
        known.copied().ok_or(AccessError::UnknownNoAuthUser(name))
    }

    fn new(accounts: &[Account]) -> Result<Self, AccessError> {
        let mut users = Users::default();
        for (id, account) in (0..).map(AccountId).zip(accounts) {
            for (at, user) in account.users.iter().enumerate() {
                let place = Place { account: id, at };
                if let Identity::Nkey(public) = &user.identity
                    && PublicKey::parse_as(KeyKind::User, public).is_none()
                {
                    return Err(AccessError::InvalidUserNkey(public.clone()));
                }
                let (known, duplicate): (_, fn(String) -> AccessError) = match &user.identity {
                    Identity::Name(..) => (&mut users.by_name, AccessError::DuplicateUser),
                    Identity::Nkey(_) => (&mut users.by_nkey, AccessError::DuplicateNkey),
                };
                if known.insert(user.name().into(), place).is_some() {
                    return Err(duplicate(user.name().into()));
                }
            }
        }
        Ok(users)
    }
}
